from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from forge import small_home
from kit.check import contract
from kit.cli import PYTHON, Cli
from kit.index import Index, serve
from kit.wheels import Wheel

from envforge.forge.diff import diff
from envforge.model.errors import EnvforgeError


def test_between_two_snapshots(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    data = diff(shop, "small/1.1", "small/1.2").data
    (change,) = data.changes
    assert (data.before, data.after) == ("small/1.1", "small/1.2")
    assert change.before is not None
    assert change.after is not None
    assert (change.name, change.before.version, change.after.version) == ("six", "2.0", "1.0")


def test_nothing_differs_right_after_the_build(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    data = diff(shop, "small").data
    assert (data.before, data.after, data.changes) == ("small/1.2", "small", ())
    assert diff(shop, "small", "small").data.changes == ()


def test_one_snapshot_alone_is_compared_with_now(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    data = diff(shop, "small/1.1").data
    assert (data.before, data.after) == ("small/1.1", "small")
    assert [change.name for change in data.changes] == ["six"]


def test_what_was_installed_behind_its_back(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    small_home.put(small_home.site(shop), "extra", "3.0")
    (change,) = diff(shop, "small").data.changes
    assert (change.name, change.before) == ("extra", None)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("small/9.1", "snapshot-not-found"),
        ("other/1.1", "no-such-environment"),
        ("small/x", "invalid-name"),
        ("small/1.2.3", "invalid-name"),
        ("a b", "invalid-name"),
    ],
)
def test_a_side_that_does_not_exist(tmp_path: Path, text: str, code: str) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    with pytest.raises(EnvforgeError) as caught:
        diff(shop, text, "small")
    assert caught.value.code == code


SIX = Wheel(name="six", version="1.0.0", files={"six/more.py": "more = 1\n"})
SEVEN = Wheel(name="six", version="2.0.0", files={"six/more.py": "more = 2\n"})
DEP = Wheel(name="dep", version="1.0.0", requires=("six",), scripts={"dep": "dep:main"})


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """`demo`, of which generation 2 has another six after a second step; `second` as that, `copied` without links."""
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, DEP])}) as server:
        cli = Cli(root=tmp_path_factory.mktemp("diff"))
        file = cli.work / "profiles/demo.yaml"
        profile: dict[str, Any] = {
            "schema": 1,
            "name": "demo",
            "python": PYTHON,
            "indexes": [{"name": "pypi", "url": server.url("pypi")}],
            "steps": [{"name": "all", "install": ["dep", "six<2"]}],
        }
        file.write_text(yaml.safe_dump(profile, sort_keys=False))
        assert cli.run("create", "demo").exit == 0
        profile["steps"].append({"name": "up", "install": ["six>=2"]})
        file.write_text(yaml.safe_dump(profile, sort_keys=False))
        assert cli.run("update", "demo").exit == 0
        assert cli.run("create", "demo", "--name", "second").exit == 0
        copying = Cli(root=cli.root, variables={"ENVFORGE_LINK_MODE": "copy"})
        assert copying.run("create", "demo", "--name", "copied", "--engine", "pip").exit == 0
        yield cli


def files(cli: Cli, *words: str) -> dict[str, str]:
    """Path below site-packages -> kind."""
    answer = cli.run("diff", *words, "--files")
    contract(answer)
    assert answer.exit == 0, str(answer)
    return {each["path"].partition("site-packages/")[2] or each["path"]: each["kind"] for each in answer.data["files"]}


@pytest.mark.parametrize(
    "words",
    [
        ("demo",),
        ("demo", "second"),
        ("demo", "copied"),
        ("copied/1.2", "demo"),
        ("demo/1.1", "demo/2.1"),
        ("demo/2.2",),
    ],
)
def test_what_was_built_alike_has_the_same_files(built: Cli, words: tuple[str, ...]) -> None:
    assert files(built, *words) == {}


def test_files_are_looked_at_only_when_asked_for(built: Cli) -> None:
    assert built.run("diff", "demo", "second").data["files"] is None


OTHER_SIX = {
    "six-1.0.0.dist-info/METADATA": "removed",
    "six-1.0.0.dist-info/WHEEL": "removed",
    "six-2.0.0.dist-info/METADATA": "added",
    "six-2.0.0.dist-info/WHEEL": "added",
    "six/__init__.py": "changed",
    "six/more.py": "changed",
}


@pytest.mark.parametrize(
    "words", [("demo/1.1",), ("demo/1.1", "demo"), ("demo/1.1", "demo/2.2"), ("demo/1.1", "copied")]
)
def test_another_generation_differs_in_what_was_replaced(built: Cli, words: tuple[str, ...]) -> None:
    assert files(built, *words) == OTHER_SIX


def test_what_a_later_step_wrote_over_is_unknown_where_its_size_is_the_same(built: Cli) -> None:
    assert files(built, "demo/2.1", "demo/2.2")["six/more.py"] == "unknown"


def test_one_changed_byte_is_found_in_the_present_state(built: Cli) -> None:
    site = built.site("second")
    kept = built.root / "kept"
    shutil.copy2(site / "six/more.py", kept)
    (site / "six/more.py").unlink()
    (site / "six/more.py").write_text("more = 3\n")
    (site / "new.pth").touch()
    try:
        assert files(built, "second") == {"six/more.py": "changed", "new.pth": "added"}
        assert files(built, "demo", "second") == {"six/more.py": "changed", "new.pth": "added"}
        assert files(built, "second", "copied") == {"six/more.py": "changed", "new.pth": "removed"}
    finally:
        (site / "new.pth").unlink()
        kept.replace(site / "six/more.py")
