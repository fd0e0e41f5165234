"""Child processes, every one through `sh`; each in a process group of its own, so that all of it can be ended."""

from __future__ import annotations

import errno
import os
import signal as signals
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from . import clock
from .environ import scrubbed

_GRACE = 3.0
_INTERRUPTS = frozenset({signals.SIGINT, signals.SIGTERM})
_PR_SET_PDEATHSIG = 1  # prctl(2)
_LINE = 400
_RUNNING: dict[int, Any] = {}
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A child that ended. ``status`` is its exit status, or None if ``signal`` (a name such as ``SIGSEGV``) ended it.

    ``stdout`` and ``stderr`` are text (undecodable bytes replaced); ``timed_out``: envforge ended it.
    """

    argv: tuple[str, ...]
    status: int | None
    signal: str | None = None
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.status == 0

    def ending(self) -> str:
        """How it ended, in words: ``exit status 1``, ``killed by SIGSEGV``, ``ended after its time limit``."""
        if self.timed_out:
            return "ended after its time limit"
        return f"killed by {self.signal}" if self.signal else f"exit status {self.status}"

    def tail(self, lines: int = 12) -> str:
        """The last lines of what it said, stderr first choice; of a long line its end."""
        text = self.stderr.strip() or self.stdout.strip()
        return "\n".join(line[-_LINE:] for line in text[-lines * _LINE * 4 :].splitlines()[-lines:])


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    timeout: float | None = None,
    log: Path | None = None,
    on_start: Callable[[int], None] | None = None,
) -> Completed:
    """Run ``argv`` (an absolute path first) to its end and return how it ended; a failure is no exception.

    ``log`` gets both streams appended as they come; ``on_start`` the child's process id. When this process is
    interrupted or the time is over, the child's whole group is ended: SIGTERM, after a grace SIGKILL.

    Raises OSError when it cannot be started.
    """
    import sh  # noqa: PLC0415 - 40 ms that commands without a child need not pay

    program, *arguments = (str(word) for word in argv)
    if not Path(program).is_absolute():
        message = f"`{program}` is no absolute path"
        raise FileNotFoundError(message)
    try:
        command = sh.Command(program)
    except sh.CommandNotFound as error:
        kind = PermissionError if Path(program).exists() else FileNotFoundError
        raise kind(program) from error
    out: list[str] = []
    err: list[str] = []
    sink = log.open("a", encoding="utf-8") if log is not None else None

    def take(lines: list[str]) -> Callable[[str], None]:
        def consume(chunk: str) -> None:
            lines.append(chunk)
            if sink is not None:
                with suppress(OSError):  # a log on a full disk: what the child does matters more
                    sink.write(scrubbed(chunk))
                    sink.flush()

        return consume

    expired = threading.Event()
    nothing = Path(os.devnull).open("rb")  # noqa: SIM115 - closed below, after the child has ended
    try:
        child = _uninterrupted(
            lambda: command(
                *arguments,
                _in=nothing,
                _env=dict(env),
                _cwd=str(cwd) if cwd is not None else None,
                _out=take(out),
                _err=take(err),
                _bg=True,
                _bg_exc=False,
                _tty_out=False,
                _new_session=True,
                _new_group=False,
                _preexec_fn=_first(),
                _encoding="utf-8",
                _decode_errors="replace",
                _out_bufsize=1,
                _err_bufsize=1,
                _return_cmd=True,
            )
        )
        if on_start is not None:
            on_start(child.pid)
        _await(child, timeout, expired)
        code = child.process.exit_code or 0
    except (sh.ForkException, ValueError, UnicodeError) as error:
        # A bad interpreter line, a folder that is gone, too many or unspeakable arguments.
        reason = str(error).strip().splitlines()
        raise OSError(
            errno.EINVAL, f"it cannot be started ({reason[-1] if reason else type(error).__name__})"
        ) from error
    finally:
        nothing.close()
        if sink is not None:
            sink.close()
    return Completed(
        argv=(program, *arguments),
        status=None if code < 0 else code,
        signal=_signal(-code) if code < 0 else None,
        stdout=scrubbed("".join(out)),
        stderr=scrubbed("".join(err)),
        timed_out=expired.is_set(),
    )


def _uninterrupted(start: Callable[[], Any]) -> Any:
    """Start a child with SIGINT and SIGTERM held back: an interrupt in the middle of a fork is lost, or the child is.

    In the child `_first` lets them through again.
    """
    before = signals.pthread_sigmask(signals.SIG_BLOCK, _INTERRUPTS)
    child = None
    try:
        child = start()
    finally:
        try:
            signals.pthread_sigmask(signals.SIG_SETMASK, before)
        except BaseException:
            if child is not None:
                _end(child)
            raise
    return child


def _await(child: Any, timeout: float | None, expired: threading.Event) -> None:
    """Wait for the child's end, or bring it about when the time is over or this process is interrupted."""
    import sh  # noqa: PLC0415 - loaded already by whoever has a child

    with _LOCK:
        _RUNNING[child.pid] = child
    # sh's own time limit polls; a timer costs nothing until it fires.
    alarm = threading.Timer(min(timeout or 0, threading.TIMEOUT_MAX), _expire, args=(child, expired))
    alarm.daemon = True
    try:
        if timeout is not None:
            alarm.start()
        child.wait()
    except (sh.ErrorReturnCode, KeyError):
        pass  # a KeyError is sh's for a signal without a name
    except BaseException:
        _end(child)
        raise
    finally:
        alarm.cancel()
        with _LOCK:
            _RUNNING.pop(child.pid, None)
        # What it left in the background would work on, unseen, in what is judged next.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signals.SIGKILL)


def end_all() -> None:
    """End every child that another thread waits for, with its group."""
    with _LOCK:
        children = tuple(_RUNNING.values())
    for child in children:
        _kill(child)


def _signal(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _first() -> Callable[[], None]:
    """What a child does first: listen to signals again, and ask the kernel to end it should envforge be killed."""
    import ctypes  # noqa: PLC0415 - before the fork, since nothing may be loaded after it

    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        prctl = None

    def prepare() -> None:
        signals.pthread_sigmask(signals.SIG_UNBLOCK, _INTERRUPTS)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, int(signals.SIGKILL), 0, 0, 0)

    return prepare


def _expire(child: Any, expired: threading.Event) -> None:
    expired.set()
    _kill(child)


def _end(child: Any) -> None:
    """End the child and its group, and wait until all that it said has been taken."""
    _kill(child)
    child.process.wait()


def _kill(child: Any) -> None:
    """SIGTERM to the child's group; after a grace, or once the child is gone, SIGKILL to all that is left of it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signals.SIGTERM)
    last = clock.monotonic() + _GRACE
    while child.process.is_alive()[0] and clock.monotonic() < last:
        time.sleep(0.02)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signals.SIGKILL)


def replace(argv: Sequence[str], *, env: Mapping[str, str]) -> NoReturn:
    """Become ``argv`` (an exec): its status and signals are then the caller's own.

    Raises FileNotFoundError or PermissionError when it cannot be started.
    """
    os.execve(argv[0], list(argv), dict(env))  # noqa: S606 - an exec is what `run` promises
