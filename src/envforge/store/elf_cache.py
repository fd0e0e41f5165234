"""What was read of compiled files, by the sha256 of their bytes: ``cache/elf/facts.sqlite``, one for all environments.

It only spares reading: what is not there, or cannot be read, is read anew from the files. Of a wheel it also keeps what
GPU code it brings, which a plan may ask for before anything is installed.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from envforge.model.native import Compiled, Elf
from envforge.model.typed import checked

from .elf_encoding import SCHEMA, codes, dump_elf, load_codes, load_elf

_PATIENCE = 2.0  # seconds for which another envforge may hold it
_TABLES = """
CREATE TABLE IF NOT EXISTS files (sha256 TEXT PRIMARY KEY, facts BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS wheels (sha256 TEXT PRIMARY KEY, code TEXT NOT NULL) WITHOUT ROWID;
"""
_AT_ONCE = 500  # variables of one statement


@dataclass(frozen=True, slots=True)
class ElfCache:
    """``folder`` is in the cache of the home, and made when something is first kept."""

    folder: Path

    def files(self, sha256s: Iterable[str]) -> dict[str, Elf]:
        """What is known of files with these digests."""
        wanted = list(dict.fromkeys(sha256s))
        found: dict[str, Elf] = {}
        with suppress(sqlite3.Error), self._open() as table:
            for start in range(0, len(wanted), _AT_ONCE):
                some = wanted[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                rows = table.execute(f"SELECT sha256, facts FROM files WHERE sha256 IN ({marks})", some)  # noqa: S608
                for sha256, facts in rows:
                    with suppress(ValueError, TypeError, zlib.error):
                        found[sha256] = load_elf(facts)
        return found

    def wheels(self) -> dict[str, tuple[Compiled, ...]]:
        """Digest of a wheel -> its files with GPU code; ``path`` as below site-packages, without an owner."""
        found: dict[str, tuple[Compiled, ...]] = {}
        with suppress(sqlite3.Error), self._open() as table:
            for sha256, text in table.execute("SELECT sha256, code FROM wheels"):
                with suppress(ValueError, TypeError):
                    found[sha256] = tuple(
                        checked(Compiled(path=path, owner=None, code=load_codes(code)))
                        for path, code in json.loads(text)
                    )
        return found

    def keep(self, files: Mapping[str, Elf], wheels: Mapping[str, Iterable[Compiled]]) -> None:
        """Add what is new; where the cache cannot be written, nothing happens."""
        if not files and not wheels:
            return
        brought = {
            sha256: json.dumps([[each.path, codes(each.code)] for each in objects])
            for sha256, objects in wheels.items()
        }
        with suppress(sqlite3.Error, OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._open(making=True) as table, table:
                table.executemany(
                    "INSERT OR IGNORE INTO files VALUES (?, ?)",
                    ((sha256, dump_elf(facts)) for sha256, facts in files.items()),
                )
                table.executemany("INSERT OR REPLACE INTO wheels VALUES (?, ?)", brought.items())

    @contextmanager
    def _open(self, *, making: bool = False) -> Iterator[sqlite3.Connection]:
        """Raises sqlite3.Error where it is not there, cannot be read, or is of another schema."""
        # A file for each schema: an older envforge goes on with its own.
        path = self.folder / f"facts-{SCHEMA}.sqlite"
        mode = "rwc" if making else "ro"
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_PATIENCE)) as table:
            try:
                if making:
                    table.executescript(_TABLES)
                yield table
            except sqlite3.DatabaseError as error:
                if making and "not a database" in str(error):
                    path.unlink(missing_ok=True)  # the next one begins anew
                raise
