"""The journal of a generation: one event a line, each on disk before the next thing is done."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envforge.model.errors import EnvforgeError
from envforge.model.snapshot import Event
from envforge.system import clock

from .atomic import corrupt, not_writable, read_bytes, write_text

QUARANTINED = "quarantined"
"""The event that says that lines before it may be missing."""


@dataclass(frozen=True, slots=True)
class Journal:
    """An append-only file of events; it need not exist yet."""

    path: Path

    def append(self, kind: str, **data: Any) -> Event:
        """Write one event and return it once it is on disk. ``data`` holds JSON-able values only.

        Half a line that an interrupted writer left is cut off first. Raises EnvforgeError ``home-not-writable``.
        """
        event = Event(kind=kind, at=clock.now(), data=data)
        line = _line(event)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            with open(descriptor, "r+b") as stream:  # noqa: PTH123 - a descriptor, not a path
                content = stream.read()
                stream.seek(content.rfind(b"\n") + 1)
                stream.truncate()
                stream.write(line.encode("ascii"))
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise not_writable(self.path, error) from error
        return event

    def events(self) -> tuple[Event, ...]:
        """All events, oldest first; none where there is no journal. A torn last line is dropped.

        Raises EnvforgeError ``corrupt-record`` naming file and line.
        """
        lines = self._lines()
        return tuple(self._event(line, number) for number, line in enumerate(lines, start=1))

    def begin_anew(self, aside: str) -> None:
        """Keep the lines that can be read, and a line that says where the damaged journal is now.

        Raises EnvforgeError ``home-not-writable``.
        """
        kept: list[bytes] = []
        with suppress(EnvforgeError):
            for number, line in enumerate(self._lines(), start=1):
                with suppress(EnvforgeError):
                    self._event(line, number)
                    kept.append(line)
        told = _line(Event(kind=QUARANTINED, at=clock.now(), data={"file": aside}))
        write_text(self.path, "".join(f"{line.decode()}\n" for line in kept) + told)

    def _lines(self) -> list[bytes]:
        *lines, _torn = (read_bytes(self.path, what="the journal") or b"").split(b"\n")
        return lines

    def _event(self, line: bytes, number: int) -> Event:
        try:
            match json.loads(line):
                case {"kind": str(kind), "at": str(at), "data": dict(data)}:
                    return Event(kind=kind, at=at, data=data)
        except (ValueError, RecursionError) as error:
            raise self._corrupt(number, str(error)) from error
        raise self._corrupt(number, "it is no event")

    def _corrupt(self, number: int, why: str) -> EnvforgeError:
        return corrupt(self.path, what="the journal", cause=f"line {number}: {why}")


def _line(event: Event) -> str:
    return json.dumps({"kind": event.kind, "at": event.at, "data": dict(event.data)}, sort_keys=True) + "\n"
