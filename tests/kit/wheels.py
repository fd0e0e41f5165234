"""Real wheels and sdists, the same bytes every time, made with the standard library alone."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

_EPOCH = (2020, 1, 1, 0, 0, 0)

RecordKind = Literal["right", "wrong", "absent"]
Bytes = bytes  # in a class that has a method of that name
MetadataKind = Literal["static", "dynamic"]


def canonical(name: str) -> str:
    """The PEP 503 form of ``name``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _filename_part(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name)


def noise(size: int, seed: str = "") -> str:
    """Text of ``size`` characters that hardly compresses, the same every time."""
    blocks = (hashlib.sha512(f"{seed}{number}".encode()).hexdigest() for number in range(size // 128 + 1))
    return "".join(blocks)[:size]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """What a wheel (or the wheel that an sdist builds) holds.

    ``files``: path inside the wheel -> text or bytes; a module named like the distribution is always there. ``extras``:
    name -> requirements. ``scripts``: console scripts, name -> ``module:function``. ``record``: ``wrong`` gives
    hashes of other bytes, ``absent`` leaves RECORD out. ``core``: further METADATA lines.
    """

    name: str
    version: str
    requires: tuple[str, ...] = ()
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    files: Mapping[str, str | Bytes] = field(default_factory=dict)
    build: str | None = None
    tag: str = "py3-none-any"
    scripts: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    record: RecordKind = "right"
    core: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        return _filename_part(self.name).lower()

    @property
    def stem(self) -> str:
        return f"{_filename_part(self.name)}-{self.version}"

    @property
    def filename(self) -> str:
        build = f"-{self.build}" if self.build else ""
        return f"{self.stem}{build}-{self.tag}.whl"

    def metadata(self, *, version: str = "2.1") -> str:
        """The text of METADATA."""
        lines = [f"Metadata-Version: {version}", f"Name: {self.name}", f"Version: {self.version}"]
        if self.python:
            lines.append(f"Requires-Python: {self.python}")
        lines += [f"Requires-Dist: {requirement}" for requirement in self.requires]
        for extra, requirements in self.extras.items():
            lines.append(f"Provides-Extra: {extra}")
            lines += [f"Requires-Dist: {_with_extra(requirement, extra)}" for requirement in requirements]
        lines += self.core
        return "\n".join(lines) + "\n"

    def contents(self) -> dict[str, str | Bytes]:
        """Every file of the wheel but RECORD: path -> text or bytes."""
        info = f"{self.stem}.dist-info"
        contents: dict[str, str | Bytes] = {
            f"{self.module}/__init__.py": f'__version__ = "{self.version}"\n',
            **self.files,
        }
        contents[f"{info}/METADATA"] = self.metadata()
        build = f"Build: {self.build}\n" if self.build else ""
        contents[f"{info}/WHEEL"] = (
            f"Wheel-Version: 1.0\nGenerator: kit\nRoot-Is-Purelib: true\nTag: {self.tag}\n{build}"
        )
        if self.scripts:
            scripts = "".join(f"{name} = {target}\n" for name, target in self.scripts.items())
            contents[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}"
        return contents

    def tampered(self) -> Bytes:
        """Another, valid wheel under the same name."""
        return replace(self, files={**self.files, f"{self.module}/other.py": "other = True\n"}).bytes()

    def bytes(self) -> Bytes:
        """The wheel file."""
        rows = []
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, text in self.contents().items():
                data = text.encode() if isinstance(text, str) else text
                archive.writestr(zipfile.ZipInfo(path, _EPOCH), data, zipfile.ZIP_DEFLATED)
                hashed = data + b"?" if self.record == "wrong" else data
                digest = base64.urlsafe_b64encode(hashlib.sha256(hashed).digest()).rstrip(b"=").decode()
                rows.append(f"{path},sha256={digest},{len(data)}\n")
            if self.record != "absent":
                path = f"{self.stem}.dist-info/RECORD"
                archive.writestr(zipfile.ZipInfo(path, _EPOCH), "".join([*rows, f"{path},,\n"]))
        return output.getvalue()


def _with_extra(requirement: str, extra: str) -> str:
    base, _, marker = requirement.partition(";")
    condition = f'extra == "{extra}"'
    return f"{base.strip()} ; ({marker.strip()}) and {condition}" if marker else f"{base.strip()} ; {condition}"


# The backend of every sdist of the kit: one file, no requirement. A build adds a line to a log outside, and
# puts a random value into the wheel, so that two builds of one sdist are told apart.
_BACKEND = """
import base64, hashlib, json, os, uuid, zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
KIT = json.loads((HERE / "kit.json").read_text())


def _note(what):
    if KIT["log"]:
        with open(KIT["log"], "a") as log:
            log.write(KIT["stem"] + " " + what + "\\n")


def prepare_metadata_for_build_wheel(directory, config_settings=None):
    _note("metadata")
    info = KIT["stem"] + ".dist-info"
    for path, text in KIT["files"].items():
        if path.startswith(info):
            target = Path(directory, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    return info


def build_wheel(directory, config_settings=None, metadata_directory=None):
    _note("wheel")
    if KIT["fails"]:
        raise SystemExit(KIT["fails"])
    files = dict(KIT["files"])
    files[KIT["module"] + "/built.py"] = "token = " + repr(uuid.uuid4().hex) + "\\n"
    record = KIT["stem"] + ".dist-info/RECORD"
    rows = []
    with zipfile.ZipFile(Path(directory, KIT["wheel"]), "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            rows.append(f"{path},sha256={digest},{len(text.encode())}")
        archive.writestr(record, "\\n".join([*rows, record + ",,", ""]))
    return KIT["wheel"]


def build_sdist(directory, config_settings=None):
    raise SystemExit("not needed")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdist:
    """An sdist that builds ``wheel`` with a backend of its own (nothing to download, no setuptools).

    ``metadata``: ``static`` = a PKG-INFO that may be trusted; ``dynamic`` = its requirements are known only after
    the backend ran. ``log``: path of a file that gets a line at each run. ``fails``: what the build dies of.
    """

    wheel: Wheel
    metadata: MetadataKind = "static"
    log: str | None = None
    fails: str | None = None

    @property
    def name(self) -> str:
        return self.wheel.name

    @property
    def version(self) -> str:
        return self.wheel.version

    @property
    def python(self) -> str | None:
        return self.wheel.python

    def tampered(self) -> bytes:
        """Other bytes under the same name."""
        return self.bytes() + b"\0"

    @property
    def filename(self) -> str:
        return f"{_filename_part(self.wheel.name).lower()}-{self.wheel.version}.tar.gz"

    def bytes(self) -> bytes:
        """The ``.tar.gz`` file."""
        if self.metadata == "static":
            info = self.wheel.metadata(version="2.2")
        else:
            info = f"Metadata-Version: 2.2\nName: {self.wheel.name}\nVersion: {self.wheel.version}\n"
            info += "Dynamic: Requires-Dist\nDynamic: Provides-Extra\nDynamic: Requires-Python\n"
        files = {
            "PKG-INFO": info,
            "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
            "backend.py": _BACKEND,
            "kit.json": self._settings(),
        }
        return _tar(self.filename.removesuffix(".tar.gz"), files)

    def _settings(self) -> str:
        return json.dumps(
            {
                "stem": self.wheel.stem,
                "module": self.wheel.module,
                "wheel": self.wheel.filename,
                "files": self.wheel.contents(),
                "log": self.log,
                "fails": self.fails,
            }
        )


def _tar(top: str, files: Mapping[str, str]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{top}/{path}")
            entry.size = len(text.encode())
            entry.mtime = 1577836800
            archive.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(plain.getvalue(), mtime=0)


Artefact = Wheel | Sdist
