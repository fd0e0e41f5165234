"""Which new files Python would import in place of those that somebody vouches for."""

from __future__ import annotations

import pytest

from envforge.probe.shadows import shadows

SITE = "lib/python3.11/site-packages"
VOUCHED = [
    f"{SITE}/{path}" for path in ("p/__init__.py", "p/mod.py", "p/fast.so", "p/data.txt", "space/in/x.py", "top.py")
]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("p/mod.cpython-311-x86_64-linux-gnu.so", True),
        ("p/mod.abi3.so", True),
        ("p/mod/__init__.py", True),
        ("p/fast/__init__.pyc", True),
        ("p/__init__.so", True),
        ("space/__init__.py", True),
        ("space/in/__init__.py", True),
        ("space/in/x/__init__.py", True),
        ("p/mod.pyc", False),  # the source comes first
        ("p/fast.py", False),  # so does the extension module
        ("p/other.py", False),
        ("p/mod.pyi", False),
        ("p/mod/data.txt", False),
        ("p/__pycache__/mod.cpython-311.pyc", False),
        ("p/sub/__init__.py", False),
        ("q/mod.so", False),
        ("top.so", False),  # the top is looked at elsewhere
    ],
)
def test_only_what_comes_first_is_told(path: str, *, told: bool) -> None:
    assert shadows(VOUCHED, [f"{SITE}/{path}", "bin/mod.so"], namespaces=True) == ((f"{SITE}/{path}",) if told else ())


def test_where_nothing_was_recorded_an_init_in_a_namespace_may_be_anybodys() -> None:
    assert shadows(VOUCHED, [f"{SITE}/space/__init__.py"], namespaces=False) == ()
