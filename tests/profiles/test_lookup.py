"""Which file a name means."""

from __future__ import annotations

from pathlib import Path

import pytest

from envforge.model.errors import InvalidFileError, UsageError
from envforge.profiles import loader, lookup


def put(folder: Path, kind: str, name: str, text: str = "schema: 1\nname: x\n") -> Path:
    path = folder / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    (tmp_path / "cwd").mkdir()
    return tmp_path / "cwd"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


def test_the_order(cwd: Path, config: Path) -> None:
    assert lookup.find("xin", cwd=cwd, config=config) == lookup.shipped("profiles") / "xin.yaml"
    user = put(config, "profiles", "xin.yaml")
    assert lookup.find("xin", cwd=cwd, config=config) == user
    own = put(config, "profiles", "mine.yml")
    assert lookup.find("mine", cwd=cwd, config=config) == own
    local = put(cwd, "profiles", "mine.yaml")
    assert lookup.find("mine", cwd=cwd, config=config) == local


def test_a_path_is_taken_as_such(cwd: Path, config: Path) -> None:
    local = put(cwd, "profiles", "xin.yaml")
    assert lookup.find("./profiles/xin.yaml", cwd=cwd, config=config) == local
    assert lookup.find(str(local), cwd=cwd, config=config) == local
    beside = put(cwd, ".", "p.yml")
    assert lookup.find("p.yml", cwd=cwd, config=config).samefile(beside)
    with pytest.raises(UsageError, match=r"there is no profile at `.*/gone\.yaml`") as caught:
        lookup.find("gone.yaml", cwd=cwd, config=config)
    assert caught.value.code == "unknown-profile"


def test_a_foreign_profile_must_not_take_a_shipped_name(cwd: Path, config: Path) -> None:
    put(cwd, "profiles", "xin.yaml")
    with pytest.raises(UsageError) as caught:
        lookup.find("xin", cwd=cwd, config=config)
    assert caught.value.code == "hidden-profile"
    assert caught.value.hint == "give its path, `./profiles/xin.yaml`, or rename it"


def test_nor_with_the_other_ending_nor_as_a_bare_file(cwd: Path, config: Path) -> None:
    put(cwd, ".", "xin")
    assert lookup.find("xin", cwd=cwd, config=config) == lookup.shipped("profiles") / "xin.yaml"
    put(cwd, "profiles", "xin.yml")
    with pytest.raises(UsageError, match="hides the shipped profile"):
        lookup.find("xin", cwd=cwd, config=config)


def test_the_same_content_hides_nothing(cwd: Path, config: Path) -> None:
    text = (lookup.shipped("profiles") / "xin.yaml").read_text(encoding="utf-8")
    local = put(cwd, "profiles", "xin.yaml", text)
    assert lookup.find("xin", cwd=cwd, config=config) == local


def test_a_bare_file_of_another_name(cwd: Path, config: Path) -> None:
    path = put(cwd, ".", "mine")
    assert lookup.find("mine", cwd=cwd, config=config).samefile(path)


def test_a_foreign_recipe_must_not_take_a_shipped_name(cwd: Path, config: Path) -> None:
    put(cwd, "recipes", "torch.yaml")
    with pytest.raises(InvalidFileError) as caught:
        loader.loads("schema: 1\nname: x\nsteps: [{recipe: torch}]\n", "p.yaml", cwd=cwd, config=config)
    [mistake] = caught.value.mistakes
    assert str(mistake).startswith(f"p.yaml:3:18: `{cwd}/recipes/torch.yaml` hides the shipped recipe `torch`")


def test_an_unknown_name(cwd: Path, config: Path) -> None:
    with pytest.raises(UsageError) as caught:
        lookup.find("xinv10", cwd=cwd, config=config)
    assert caught.value.code == "unknown-profile"
    assert caught.value.message == "there is no profile `xinv10`; did you mean `xinv100`?"
    assert caught.value.cause == (f"looked in `{cwd}/profiles`, `{config}/profiles`, `{lookup.shipped('profiles')}`")
    assert caught.value.hint == "there are: quickstart, xin, xinv100"


def test_a_folder_is_named_once(config: Path) -> None:
    checkout = lookup.shipped("profiles").parent
    with pytest.raises(UsageError) as caught:
        lookup.find("nope", cwd=checkout, config=config)
    assert caught.value.cause == f"looked in `{config}/profiles`, `{checkout}/profiles`"


def test_a_file_beside_you_is_suggested(cwd: Path, config: Path) -> None:
    put(cwd, ".", "notebook.yaml")
    with pytest.raises(UsageError) as caught:
        lookup.find("notebook", cwd=cwd, config=config)
    assert caught.value.message == "there is no profile `notebook`"
    assert "`./notebook.yaml`" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["", "..", "a b", "x" * 5000, "a\0b", "~nobody-here/x.yaml"])
def test_names_that_cannot_be(name: str, cwd: Path, config: Path) -> None:
    with pytest.raises(UsageError):
        lookup.find(name, cwd=cwd, config=config)


def test_the_catalogue_repeats_no_name(cwd: Path, config: Path) -> None:
    local, user = put(cwd, "profiles", "mine.yaml"), put(config, "profiles", "mine.yaml")
    other = put(config, "profiles", "other.yaml")
    put(cwd, "profiles", "profile.schema.json")
    found = lookup.catalogue(cwd=cwd, config=config)
    assert found[:2] == (local, other)
    assert user not in found
    assert [path.stem for path in found[2:]] == ["quickstart", "xin", "xinv100"]


def test_a_working_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="the working folder is gone"):
        lookup.find("xin")
