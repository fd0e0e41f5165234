"""pip as an installer only: it gets the files that were resolved, by hash, and is asked to decide nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from envforge.model.errors import EnvforgeError
from envforge.system import environ, process
from envforge.system.http import Proxies
from envforge.system.process import Completed

from .artefacts import Artefact
from .replies import HOST
from .router import Router


class Pip:
    """The pip of the environment itself. ``cache``: its cache folder; ``roots``: PEM."""

    def __init__(
        self, *, cache: Path, router: Router, proxies: Proxies, roots: Path, allow: Collection[str] = ()
    ) -> None:
        self._router = router
        self._allow = allow
        self._env = {
            "PIP_CACHE_DIR": str(cache),
            "PIP_NO_INPUT": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **proxies.for_engine(router.proxy, HOST, roots),
        }

    def install(
        self,
        prefix: Path,
        artefacts: Sequence[Artefact],
        scratch: Path,
        log: Path,
        watch: Callable[[int], None] | None = None,
        *,
        beside: Path | None = None,
    ) -> Completed:
        """Install exactly these files (each with its sha256) into ``prefix``. Raises EnvforgeError: no pip there.

        ``beside``: another folder that gets them instead, byte for byte as ``prefix`` would, scripts included.
        """
        python = prefix / "bin" / "python"
        if not list(prefix.glob("lib/python3.*/site-packages/pip/__main__.py")):
            raise EnvforgeError(
                "pip-missing",
                "`--engine pip` needs a pip in the environment, and this Python ships none",
                hint="install its ensurepip (Debian: the package `python3-venv`), or use `--engine uv`",
            )
        index = self._router.pin(artefacts)
        requirements = scratch / "pip-requirements.txt"
        lines = (f"{artefact.name}=={artefact.version} --hash=sha256:{artefact.sha256}\n" for artefact in artefacts)
        requirements.write_text("".join(lines))
        self._router.begin()
        argv = [
            str(python), "-I", "-m", "pip", "install", "--no-deps", "--no-compile", "--require-hashes",
            "--only-binary", ":all:", "--progress-bar", "off", "--index-url", index, "--trusted-host", HOST,
            "--requirement", str(requirements),
        ]  # fmt: skip
        # What the prefix holds already would else count as installed.
        argv += ["--ignore-installed", "--prefix", str(beside)] if beside is not None else []
        return process.run(argv, env=environ.hermetic(self._env, self._allow), log=log, on_start=watch)
