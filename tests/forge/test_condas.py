"""What the user's conda gets to know of an environment: a line in its list, and how to activate it."""

from __future__ import annotations

from pathlib import Path

import pytest
from forge.conda_house import house, profile
from kit.check import ended
from kit.plain import need_plain

from envforge.forge.condas import found
from envforge.model.views import Activation
from envforge.probe.condas import Condas


def there(*configured: Path, roots: tuple[Path, ...] = (), fixed: tuple[Path, ...] = ()) -> Condas:
    return Condas(roots=tuple(map(str, roots)), configured=tuple(map(str, configured)), fixed=tuple(map(str, fixed)))


def made(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir(parents=True)


def test_by_its_path_and_after_one_command_by_name(tmp_path: Path) -> None:
    place, more = tmp_path / "my forge/envs/demo", tmp_path / "more"
    made(place)
    by_path = f"conda activate '{place}'"
    enable = f"conda config --append envs_dirs '{place.parent}'"
    assert found(there(), str(place)) == Activation(by_path=by_path, enable=enable)
    assert found(there(more), str(place)) == Activation(by_path=by_path, enable=enable)


def test_where_new_environments_go_stays_as_it_was(tmp_path: Path) -> None:
    place, root = tmp_path / "envs/demo", tmp_path / "conda"
    made(place)
    condas = there(roots=(root,), fixed=(root / "envs", tmp_path / ".conda/envs"))
    told = found(condas, str(place))
    assert told.enable == f"conda config --append envs_dirs {root}/envs --append envs_dirs {place.parent}"
    assert found(there(tmp_path / "own", roots=(root,), fixed=(root / "envs",)), str(place)).enable == (
        f"conda config --append envs_dirs {place.parent}"
    )


def test_by_name_where_conda_looks_there(tmp_path: Path) -> None:
    place, link = tmp_path / "envs/demo", tmp_path / "link"
    made(place)
    link.symlink_to(place.parent)
    named = Activation(by_path=f"conda activate {place}", by_name="conda activate demo")
    assert found(there(tmp_path / "empty", place.parent), str(place)) == named
    assert found(there(link), str(place)) == named
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/demo").symlink_to(place)
    assert found(there(tmp_path / "elsewhere"), str(place)) == named


def test_another_of_that_name_that_comes_first_is_named(tmp_path: Path) -> None:
    place, other, later = tmp_path / "envs/demo", tmp_path / "other/demo", tmp_path / "later/demo"
    made(place, other, later)
    hidden = Activation(by_path=f"conda activate {place}", other=str(other))
    assert found(there(other.parent, place.parent), str(place)) == hidden
    assert found(there(other.parent), str(place)) == hidden
    assert found(there(roots=(tmp_path,), fixed=(other.parent, later.parent)), str(place)) == hidden
    told = found(there(tmp_path / "empty", fixed=(later.parent,)), str(place))
    assert (told.other, told.enable) == (str(later), f"conda config --append envs_dirs {place.parent}")


def test_a_name_that_conda_keeps_for_itself(tmp_path: Path) -> None:
    place = tmp_path / "envs/base"
    made(place)
    told = found(there(place.parent, roots=(tmp_path / "conda",)), str(place))
    assert (told.by_name, told.other) == (None, f"{tmp_path}/conda")


def test_it_is_listed_as_long_as_it_is_one_of_condas(tmp_path: Path) -> None:
    with house(tmp_path) as (cli, server):
        registry = cli.user / ".conda/environments.txt"
        profile(cli, server)
        answer = ended(cli.run("create", "demo"))
        assert registry.read_text() == f"{cli.link()}\n"
        folder = cli.link().parent
        activation = {
            "by_path": f"conda activate {cli.link()}",
            "by_name": None,
            "enable": f"conda config --append envs_dirs {folder}",
            "other": None,
        }
        assert answer.data["activation"] == activation
        assert ended(cli.run("show", "demo")).data["activation"] == activation
        registry.write_text("/opt/conda")
        ended(cli.run("rebuild", "demo"))
        assert registry.read_text() == f"/opt/conda\n{cli.link()}\n"
        ended(cli.run("rollback", "demo"))
        profile(cli, server, environment={"A": "b"})
        ended(cli.run("update", "demo"))
        assert registry.read_text() == f"/opt/conda\n{cli.link()}\n"
        (cli.user / ".condarc").write_text(f"envs_dirs: [{folder}]\n")
        assert ended(cli.run("show", "demo")).data["activation"]["by_name"] == "conda activate demo"
        cli.profile(server.url("pypi"), [])
        answer = ended(cli.run("create", "demo", "--replace"))
        assert (registry.read_text(), answer.data["activation"]) == ("/opt/conda\n", None)
        assert ended(cli.run("show", "demo")).data["activation"] is None
        ended(cli.run("rollback", "demo"))
        assert registry.read_text() == f"/opt/conda\n{cli.link()}\n"
        ended(cli.run("remove", "demo"))
        assert registry.read_text() == "/opt/conda\n"


@pytest.mark.slow
def test_a_list_that_cannot_be_written_is_but_a_warning(tmp_path: Path) -> None:
    need_plain(tmp_path)
    with house(tmp_path, plain=True) as (cli, server):
        profile(cli, server)
        cli.user.chmod(0o500)
        try:
            answer = ended(cli.run("create", "demo"))
            assert (
                f"conda does not list `demo`: `{cli.user}/.conda/environments.txt` cannot be written" in answer.stderr
            )
            ended(cli.run("remove", "demo"))
        finally:
            cli.user.chmod(0o700)


@pytest.mark.slow
def test_a_venv_makes_no_list(tmp_path: Path) -> None:
    with house(tmp_path) as (cli, server):
        cli.profile(server.url("pypi"), [])
        ended(cli.run("create", "demo"))
        ended(cli.run("remove", "demo"))
        assert not (cli.user / ".conda").exists()
