"""When the interpreter looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for cyclic garbage: for who makes some 100,000 values and no cycle.

    Each search would pass over all of them again, which is a fifth of a look.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
