"""Where the user's conda looks for environments, read from its files and variables alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from envforge.probe import condarc, condas


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home, on a host without any conda."""
    for name in ("CONDA_EXE", "CONDA_PREFIX", "CONDARC", "CONDA_ENVS_DIRS", "CONDA_ENVS_PATH", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(condas, "conda_bases", lambda: iter([tmp_path / "miniconda3"]))
    return tmp_path


def root(place: Path, *, writable: bool = True) -> Path:
    (place / "condabin").mkdir(parents=True)
    (place / "condabin/conda").write_text("#!/bin/sh\n")
    (place / "condabin/conda").chmod(0o755)
    if writable:
        (place / "conda-meta").mkdir()
        (place / "conda-meta/history").write_text("")
    return place


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        ("channels: [a]\nenvs_dirs:\n  - /a\n  - ~/b\n", ("/a", "~/b")),
        ("envs_path: [/c]\nenvs_dirs: [/a]\n", ("/a", "/c")),
        ("envs_dirs: /a\n", ()),
        ("envs_dirs:\n", ()),
        ("- envs_dirs\n", ()),
        ("envs_dirs: [/a\n", ()),
        ("envs_dirs: [1]\n", ("1",)),
        ("channels: [a]\n", ()),
    ],
)
def test_a_file_of_its_configuration(text: str, folders: tuple[str, ...]) -> None:
    assert condarc.parse(text) == folders


def test_folders_in_their_order(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA", "/data")
    monkeypatch.setenv("CONDA_ENVS_DIRS", "/variable:~/also")
    monkeypatch.setenv("CONDARC", str(home / "named"))
    (home / "named").write_text("envs_dirs: [/named]\n")
    (home / ".condarc").write_text("envs_dirs: ['$DATA/x', '${DATA}/y/../z', /named, $NOT_SET]\n")
    (home / ".conda").mkdir()
    (home / ".conda/condarc").write_text("envs_dirs: [/lower]\n")
    unset = str(Path.cwd() / "$NOT_SET")
    assert condarc.envs_dirs() == ("/variable", f"{home}/also", "/named", "/data/x", "/data/z", unset, "/lower")


def test_without_a_conda(home: Path) -> None:
    assert condas.look() == condas.Condas(roots=(), configured=(), fixed=(f"{home}/.conda/envs",))


def test_condas_are_found_where_they_are_told_of(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, active, listed = root(home / "first"), root(home / "active", writable=False), root(home / "listed")
    known = root(home / "miniconda3")
    monkeypatch.setenv("CONDA_EXE", str(first / "bin/conda"))
    monkeypatch.setenv("CONDA_PREFIX", str(active))
    (home / ".conda").mkdir()
    condas.registry().write_text(f"{home}/env\n{listed}\n# no path\n{first}\n")
    own = f"{home}/.conda/envs"
    assert condas.look() == condas.Condas(
        roots=tuple(map(str, (first, active, listed, known))),
        configured=(),
        fixed=(f"{first}/envs", own, f"{active}/envs", f"{listed}/envs", f"{known}/envs"),
    )


def test_what_its_user_may_not_write_comes_after_the_users_own(home: Path) -> None:
    known = root(home / "miniconda3", writable=False)
    assert condas.look().envs_dirs == (f"{home}/.conda/envs", f"{known}/envs")
