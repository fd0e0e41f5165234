"""The phantom environment: only the dist-info stubs of what would be installed, so that an engine can be asked on.

uv decides from the dist-info folders in the target's site-packages, whether or not a single module is there. Applying
its answer to the stubs and asking for the next step predicts a whole profile without one wheel.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path


class Phantom:
    """``root`` is a folder of its own. ``python``: the base interpreter, or None where this host lacks it.

    ``version`` as ``3.10.13``; ``platform`` as uv names it (``x86_64-manylinux_2_36``), needed only without a Python.
    """

    def __init__(self, root: Path, *, python: str | None, version: str, platform: str, runner: str) -> None:
        self._root = root
        self._python = python
        self._version = version
        self._platform = platform
        self._runner = runner
        minor = ".".join(version.split(".")[:2])
        if python is None:
            self._site = root / "site"
        else:
            self._site = root / "lib" / f"python{minor}" / "site-packages"
            (root / "bin").mkdir(parents=True)
            (root / "bin" / "python").symlink_to(python)
            (root / "pyvenv.cfg").write_text(
                f"home = {Path(python).parent}\ninclude-system-site-packages = false\nversion = {version}\n"
            )
        self._site.mkdir(parents=True)

    @property
    def target(self) -> tuple[str, ...]:
        """Arguments by which uv finds the phantom."""
        if self._python is not None:
            return ("--python", str(self._root / "bin" / "python"))
        return (
            "--python", self._runner, "--target", str(self._site), "--python-version", self._version,
            "--python-platform", self._platform,
        )  # fmt: skip

    def add(self, name: str, version: str, metadata: bytes) -> None:
        """A stub with the real METADATA, of which the headers are enough; uv asks for nothing else."""
        folder = self._site / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        head, _, _ = metadata.replace(b"\r\n", b"\n").partition(b"\n\n")
        (folder / "METADATA").write_bytes(head + b"\n")

    def remove(self, names: Iterable[tuple[str, str]]) -> None:
        """Take away the stubs of these (name, version)."""
        for name, version in names:
            shutil.rmtree(self._site / f"{name.replace('-', '_')}-{version}.dist-info")
