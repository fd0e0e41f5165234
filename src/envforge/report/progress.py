"""A listener that tells a person on stderr what is being done: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from envforge.model.finding import Finding, Severity
from envforge.model.plan import Change
from envforge.model.progress import Progress, StepDone, Working

from . import words

if TYPE_CHECKING:
    from rich.live import Live

_NAMES_SHOWN = 4
_FINDINGS_SHOWN = 5
_LINES_A_SECOND = 8
_CODES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "bold": "1", "dim": "2"}


class Teller:
    """Call it with every piece of progress; use it as a context manager, so that the live line is gone at the end.

    ``live``: ``stream`` is a terminal that may be animated; ``clock`` gives seconds from an arbitrary start.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        clock: Callable[[], float],
        live: bool = False,
        quiet: bool = False,
        verbose: bool = False,
        width: int = 100,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._live = live
        self._quiet = quiet
        self._verbose = verbose
        self._width = width
        self._line: Live | None = None
        self._working: Working | None = None
        self._since = 0.0
        # A use case may tell from a thread that watches a child.
        self._one_at_a_time = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def __call__(self, progress: Progress) -> None:
        if self._quiet:
            return
        with self._one_at_a_time:
            self._tell(progress)

    def _tell(self, progress: Progress) -> None:
        if isinstance(progress, Working):
            self._work(progress)
        elif isinstance(progress, StepDone):
            for line in step(progress, paint=self._paint, verbose=self._verbose):
                self._say(line)
        elif progress.level != "verbose" or self._verbose:
            self._say(self._paint(progress.text, "yellow") if progress.level == "warning" else progress.text)

    def _work(self, working: Working) -> None:
        if working.what is None:
            self._end()
            return
        fresh = self._working is None or self._working.what != working.what
        if fresh:
            self._since = self._clock()
        self._working = working
        if not self._live:
            if fresh and self._verbose:
                self._say(f"{working.what} ...")
            return
        if self._line is None:
            self._line = self._start()
            self._line.start(refresh=True)
        elif fresh:
            self._line.refresh()

    def _start(self) -> Live:
        from rich.console import Console  # noqa: PLC0415 - only a terminal gets the live line, and pays for rich
        from rich.live import Live  # noqa: PLC0415 - as above

        console = Console(file=self._stream, force_terminal=True, highlight=False, markup=False, _environ={})
        return Live(
            console=console,
            get_renderable=self._now,
            refresh_per_second=_LINES_A_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def _now(self) -> str:
        """The live line of this moment, never wider than the terminal."""
        working = self._working
        if working is None or working.what is None:
            return ""
        elapsed = self._clock() - self._since
        tail = f"  {words.seconds(elapsed)}"
        if working.done is not None:
            total = f" of {words.size(working.total)}" if working.total else ""
            tail = f"  {words.size(working.done)}{total}{tail}"
        room = max(self._width - len(tail) - 1, 1)
        what = working.what if len(working.what) <= room else working.what[: room - 1] + "…"
        return what + tail

    def _end(self) -> None:
        line, self._line, self._working = self._line, None, None
        if line is not None:
            line.stop()

    def _say(self, text: str) -> None:
        if self._line is not None:
            # What is printed through the live line's own console appears above it.
            self._line.console.out(text, highlight=False)
            return
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def _paint(self, text: str, *styles: str) -> str:
        if not self._live or not text:
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"


def step(done: StepDone, *, paint: Callable[..., str], verbose: bool = False) -> list[str]:
    """A finished step: what changed in a line, then what opened and through what, then what healed."""
    head = paint(f"[{done.position}/{done.count}] {done.name}", "bold")
    lines = [f"{head} {done.action}: {_summary(done.changes)} in {words.seconds(done.seconds)}"]
    moved = [change for change in done.changes if change.before is not None]
    lines += [f"      {_moved(change, paint)}" for change in (moved if verbose else moved[:_FINDINGS_SHOWN])]
    if len(moved) > _FINDINGS_SHOWN and not verbose:
        lines.append(f"      … {len(moved) - _FINDINGS_SHOWN:,} more replaced (--verbose shows them)")
    opens = words.worst_first(done.opens)
    for finding in opens if verbose else opens[:_FINDINGS_SHOWN]:
        lines += _opened(finding, done.changes, paint)
    if len(opens) > _FINDINGS_SHOWN and not verbose:
        lines.append(f"      … {len(opens) - _FINDINGS_SHOWN:,} more opened (--verbose shows them)")
    lines += [f"    {paint('✓ heals', 'green')} {finding.id} {finding.subject}" for finding in done.heals]
    lines += [f"    {paint('≠ differs from the plan', 'yellow')}: {text}" for text in done.differs]
    return lines


def _summary(changes: tuple[Change, ...]) -> str:
    added = [change.label for change in words.by_weight(change for change in changes if change.before is None)]
    removed = sum(1 for change in changes if change.after is None)
    swapped = len(changes) - len(added) - removed
    parts = []
    if swapped:
        parts.append(f"{swapped:,} replaced")
    if removed:
        parts.append(f"{removed:,} removed")
    if added:
        parts.append(f"{len(added):,} added ({words.cut(added, _NAMES_SHOWN)})")
    return ", ".join(parts) or "nothing changed"


def _moved(change: Change, paint: Callable[..., str]) -> str:
    old, new = words.replaced(change)
    because = f", because {change.because}" if change.because else ""
    return f"{paint('~' if change.after else '-', 'yellow')} {change.label} {old} → {new}{because}"


def _opened(finding: Finding, changes: tuple[Change, ...], paint: Callable[..., str]) -> list[str]:
    style = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}[finding.severity]
    sign = "✗" if finding.severity is Severity.ERROR else "!"
    lines = [f"    {paint(f'{sign} opens', style)} {finding.id} {finding.subject}: {finding.message}"]
    cause = words.unsaid(words.cause(finding, changes), finding.message)
    if cause:
        lines.append(f"      because {cause}")
    return lines
