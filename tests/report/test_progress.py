"""Progress: a live line on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import io

import pytest
from report import samples

from envforge.model.progress import Note, StepDone, Working
from envforge.report import words
from envforge.report.progress import Teller


def teller(stream: io.StringIO, *, live: bool = False, quiet: bool = False, verbose: bool = False) -> Teller:
    ticks = iter(range(10_000))
    return Teller(stream, clock=lambda: next(ticks), live=live, quiet=quiet, verbose=verbose, width=60)


def steps() -> tuple[StepDone, ...]:
    return samples.build().steps


def test_a_line_for_every_finished_step_with_what_opened_and_healed() -> None:
    stream = io.StringIO()
    with teller(stream) as tell:
        for step in steps():
            tell(step)
    text = stream.getvalue()
    assert "[1/3] base install: 13 added (transformers, helper-0, helper-1, helper-10, … 9 more) in 1.2 s" in text
    assert "~ transformers 4.57.6 → 5.1.0, because xinference 2.7.0 requires transformers>=5" in text
    assert "✗ opens hold-violated transformers" in text
    assert "✓ heals hold-violated transformers" in text
    assert "\x1b" not in text


def test_quiet_says_nothing() -> None:
    stream = io.StringIO()
    with teller(stream, quiet=True, live=True) as tell:
        tell(steps()[0])
        tell(Working(what="downloading"))
        tell(Note(text="careful", level="warning"))
    assert not stream.getvalue()


def test_notes_by_level() -> None:
    stream = io.StringIO()
    with teller(stream) as tell:
        tell(Note(text="plain"))
        tell(Note(text="hidden", level="verbose"))
        tell(Note(text="careful", level="warning"))
    assert stream.getvalue() == "plain\ncareful\n"
    stream = io.StringIO()
    with teller(stream, verbose=True) as tell:
        tell(Note(text="hidden", level="verbose"))
        tell(Working(what="resolving"))
        tell(Working(what="resolving", done=1))
        tell(Working(what=None))
    assert stream.getvalue() == "hidden\nresolving ...\n"


def test_the_live_line_shows_bytes_and_time_and_is_gone_at_the_end() -> None:
    stream = io.StringIO()
    with teller(stream, live=True) as tell:
        tell(Working(what="downloading torch", done=5_000_000, total=10_000_000))
        tell(Working(what="unpacking " + "x" * 200))
        tell(Note(text="above"))
        tell(Working(what=None))
    text = stream.getvalue()
    assert "downloading torch  5.0 MB of 10.0 MB" in text
    assert "…" in text
    assert "above\n" in text
    assert text.rstrip("\r\n").endswith("\x1b[2K")


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (999_950, "1.0 MB"), (11.6e9, "11.6 GB")],
)
def test_sizes(count: float, text: str) -> None:
    assert words.size(int(count)) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (53.2, "53 s"), (725, "12 min 5 s"), (3720, "1 h 2 min")]
)
def test_durations(value: float, text: str) -> None:
    assert words.seconds(value) == text
