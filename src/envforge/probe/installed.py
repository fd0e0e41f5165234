"""One installed distribution as its metadata folder tells it, read as text; nothing is imported."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache, lru_cache

_DIST_INFO = ".dist-info"
_EGG_INFO = ".egg-info"
_SECTION = re.compile(r"\[(?P<extra>[^:\]]*)(:(?P<marker>.*))?\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """A ``.dist-info`` or ``.egg-info``: ``folder`` in ``site`` (its site-packages, relative to the prefix).

    ``record``: the bytes of RECORD (of installed-files.txt, in an egg-info); None where absent. ``missing`` names
    which of METADATA and RECORD a ``.dist-info`` lacks; ``unreadable``: file name -> why.
    """

    site: str
    folder: str
    name: str
    version: str
    build: str | None
    installer: str | None
    requested: bool
    requires: tuple[str, ...]
    requires_python: str | None
    scripts: frozenset[str]
    record: bytes | None
    missing: tuple[str, ...]
    unreadable: tuple[tuple[str, str], ...]

    @property
    def path(self) -> str:
        """Relative to the prefix."""
        return f"{self.site}/{self.folder}"

    @property
    def agrees(self) -> bool:
        """Whether the folder is called as its metadata says."""
        name, version = _from_folder(self.folder)
        return (canonical(name), _normal(version)) == (self.name, self.version)

    @property
    def legacy(self) -> bool:
        """Whether it is an ``.egg-info``, whose table has no hashes and starts from the folder itself."""
        return self.folder.endswith(_EGG_INFO)


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """The name as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def is_info(folder: str) -> bool:
    """Whether an entry of site-packages describes a distribution."""
    return folder.endswith((_DIST_INFO, _EGG_INFO)) and not folder.startswith("~")


def read(root: str, site: str, folder: str) -> Info:
    """Read ``root/site/folder``; whatever is missing or unreadable is told in the value, never raised."""
    place = _Folder(f"{root}/{site}/{folder}")
    old = folder.endswith(_EGG_INFO)
    if old and not place.names:
        headers = _headers(place.itself())
    else:
        headers = _headers(place.data("PKG-INFO" if old else "METADATA"))
    name, version = _from_folder(folder)
    told = "name" in headers and "version" in headers
    if told:
        name, version = headers["name"][0], headers["version"][0]
    record = place.data("installed-files.txt" if old else "RECORD")
    requires = tuple(headers.get("requires-dist", ()))
    if old and not requires:
        requires = _requires_txt(place.text("requires.txt"))
    unread = {file for file, _ in place.unreadable}
    lacks = () if old else tuple(
        file
        for file, there in (("METADATA", told), ("RECORD", record is not None))
        if not there and file not in unread
    )  # fmt: skip
    return Info(
        site=site,
        folder=folder,
        name=canonical(name),
        version=_normal(version),
        build=_headers(place.data("WHEEL")).get("build", [None])[0],
        installer=place.text("INSTALLER").strip() or None,
        requested="REQUESTED" in place.names,
        requires=requires,
        requires_python=headers.get("requires-python", [None])[0],
        scripts=_scripts(place.text("entry_points.txt")),
        record=record,
        missing=lacks,
        unreadable=tuple(place.unreadable),
    )


class _Folder:
    """Files of one folder, by name; remembers what could not be read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.unreadable: list[tuple[str, str]] = []
        try:
            self.names = frozenset(os.listdir(path))  # noqa: PTH208 - names, not paths
        except NotADirectoryError:
            self.names = frozenset()
        except OSError as error:
            self.names = frozenset()
            self.unreadable.append(("", error.strerror or str(error)))

    def data(self, name: str) -> bytes | None:
        return self._read(f"{self.path}/{name}", name) if name in self.names else None

    def itself(self) -> bytes | None:
        return self._read(self.path, "")

    def text(self, name: str) -> str:
        return decode(self.data(name) or b"")

    def _read(self, path: str, name: str) -> bytes | None:
        try:
            # A planted pipe must not block, a planted symlink not lead elsewhere.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor, not a path
                return stream.read()
        except OSError as error:
            self.unreadable.append((name, error.strerror or str(error)))
            return None


def decode(data: bytes) -> str:
    """UTF-8, or Latin-1 where it is not: metadata of old tools comes in either."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _headers(data: bytes | None) -> dict[str, list[str]]:
    """The fields of an RFC 822 head, names in lower case; folded lines are joined; the body is not looked at."""
    found: dict[str, list[str]] = {}
    if not data:
        return found
    last: list[str] | None = None
    head = data.replace(b"\r\n", b"\n").lstrip(b"\n").partition(b"\n\n")[0]
    for line in decode(head).split("\n"):
        if line[:1] in {" ", "\t"}:
            if last is not None:
                last[-1] = f"{last[-1]} {line.strip()}"
            continue
        name, colon, value = line.partition(":")
        if colon:
            last = found.setdefault(name.strip().lower(), [])
            last.append(value.strip())
    return {name: kept for name, values in found.items() if (kept := [value for value in values if value])}


def _from_folder(folder: str) -> tuple[str, str]:
    name, _, rest = folder.removesuffix(_DIST_INFO).removesuffix(_EGG_INFO).partition("-")
    return name, re.sub(r"-py\d+(\.\d+)?.*$", "", rest) or "0"


def _scripts(text: str) -> frozenset[str]:
    names = set()
    inside = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            inside = line in {"[console_scripts]", "[gui_scripts]"}
        elif inside and "=" in line and not line.startswith(("#", ";")):
            names.add(line.partition("=")[0].strip())
    return frozenset(names)


def _requires_txt(text: str) -> tuple[str, ...]:
    """The requirements of an ``.egg-info`` as Requires-Dist lines."""
    lines = []
    condition = ""
    for raw in text.splitlines():
        line = raw.strip()
        section = _SECTION.fullmatch(line)
        if section:
            extra, marker = section["extra"], section["marker"]
            parts = [f"({marker})"] if marker else []
            parts += [f'extra == "{extra}"'] if extra else []
            condition = " and ".join(parts)
        elif line:
            lines.append(f"{line} ; {condition}" if condition else line)
    return tuple(lines)


@cache
def _normal(version: str) -> str:
    """The version as PEP 440 writes it, as a resolver names it; as it stands where it is none."""
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415 - for who looks at an environment

    try:
        return str(Version(version))
    except InvalidVersion:
        return version
