"""An environment that somebody else made comes under care, and not one byte or time of it changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from engines.house import House
from forge.by_hand import PROFILE, add, made, profile, site, stamps
from forge.small_home import PYTHON, shop
from kit.check import contract
from kit.cli import Cli
from kit.index import Index, serve
from kit.wheels import Wheel

from envforge.forge.accept import accept
from envforge.forge.adopt import adopt
from envforge.forge.audit import audit
from envforge.forge.diff import diff
from envforge.forge.history import history
from envforge.forge.listing import listing
from envforge.forge.path import path as where
from envforge.forge.prune import prune
from envforge.forge.rebuild import rebuild
from envforge.forge.remove import remove
from envforge.forge.repair import repair
from envforge.forge.rollback import rollback
from envforge.forge.seal import seal
from envforge.forge.show import show
from envforge.forge.update import update
from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.finding import Finding
from envforge.model.progress import Note, Progress
from envforge.store import contents, snapshots
from envforge.store.journal import Journal

SIX = Wheel(name="six", version="1.0.0")
IDNA = Wheel(name="idna", version="1.0.0", scripts={"idna": "idna:main"})


def errors(findings: tuple[Finding, ...]) -> set[tuple[str, str]]:
    return {(each.id, each.subject) for each in findings if each.severity == "error"}


@pytest.mark.slow
def test_pip_s_own_environment_is_adopted_looked_at_and_left_again_untouched(tmp_path: Path) -> None:
    """By the real command, on what `python -m venv` and pip made."""
    cli = Cli(root=tmp_path)
    place = tmp_path / "by hand"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    (cli.work / "profiles/mine.yaml").write_text(PROFILE)
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        pip = [str(place / "bin/python"), "-m", "pip", "install", "-q", "--index-url", server.url("pypi"), "six"]
        subprocess.run(pip, check=True, env={**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""})
    before = stamps(place)

    answer = cli.run("adopt", str(place), "--profile", "mine", "--name", "demo")
    contract(answer)
    assert answer.exit == 0, str(answer)
    assert answer.data["path"] == str(place)
    assert (answer.data["snapshot"], answer.data["backend"]) == ("demo/1.1", "venv")
    assert answer.data["python"].startswith(PYTHON)
    assert cli.link().resolve() == place

    strict = ["run", "--strict", "demo", "true"]
    assert subprocess.run([*_command(cli), *strict], check=False).returncode == 0
    for words in (["audit", "demo"], ["audit", "demo", "--deep"], ["audit", str(place)], ["show", "demo"], ["list"]):
        answer = cli.run(*words)
        contract(answer)
        assert answer.exit == 0, str(answer)
    assert cli.run("path", "demo").data["path"] == str(place)
    assert cli.run("diff", "demo").data["changes"] == []
    ran = subprocess.run(
        [*_command(cli), "run", "demo", "python", "-c", "import sys, six; print(sys.prefix)"],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert ran.stdout.strip() == str(place)

    answer = cli.run("remove", "demo")
    contract(answer)
    assert answer.exit == 0, str(answer)
    assert not cli.link().is_symlink()
    assert list((cli.home / "generations").iterdir()) == []
    assert list((cli.home / "records").iterdir()) == []
    assert stamps(place) == before


def _command(cli: Cli) -> list[str]:
    return [sys.executable, "-m", "envforge", "--home", str(cli.home)]


def test_virtualenv_s_own_code_is_no_code_of_nobody_and_other_code_is(tmp_path: Path) -> None:
    there = shop(tmp_path / "home")
    place = tmp_path / "v"
    inside = made(place, SIX, by_uv=True)
    (inside / "_virtualenv.pth").write_text("import _virtualenv")
    (inside / "_virtualenv.py").write_text("")
    assert errors(adopt(there, place, profile(), name="clean").findings) == set()
    remove(there, "clean")
    (inside / "_virtualenv.pth").write_text("import os\n")
    (inside / "more.pth").write_text("import os\n")
    subjects = {subject.rpartition("/")[2] for _, subject in errors(adopt(there, place, profile()).findings)}
    assert subjects == {"_virtualenv.pth", "more.pth"}


def test_what_its_records_say_against_it_is_told_once_and_is_the_reference_from_then_on(tmp_path: Path) -> None:
    there = shop(tmp_path / "home")
    place = tmp_path / "v"
    inside = made(place, SIX, IDNA)
    (inside / "six/__init__.py").write_text("patched = 1\n")
    (inside / "idna/__init__.py").unlink()
    before = stamps(place)

    result = adopt(there, place, profile())
    wrong = {("file-modified", "six"), ("file-missing", "idna")}
    assert (result.exit, errors(result.findings)) == (3, wrong)
    assert where(there, "mine").data.path == str(place)
    with pytest.raises(EnvforgeError) as caught:
        seal(there, "mine")
    assert caught.value.code == "not-sealable"
    assert listing(there).data.environments[0].verdict == "2 findings"
    kept = next(
        row
        for row in snapshots.read(there.home, "mine", 1, 1, files=True).files
        if row.path.endswith("six/__init__.py")
    )
    assert kept.sha256 is not None
    assert contents.path(there.home, "mine", 1, kept.sha256).read_bytes() == b"patched = 1\n"

    for deep in (False, True):
        assert errors(audit(there, "mine", deep=deep).findings) == set()
    assert prune(there).data.removed == ()
    assert stamps(place) == before
    (inside / "six/__init__.py").write_text("patched = 2\n")
    (place / "bin/activate").unlink()
    assert errors(audit(there, "mine").findings) == {("file-modified", "six"), ("file-missing", "bin/activate")}
    assert repair(there, "mine").exit == 0
    assert (inside / "six/__init__.py").read_text() == "patched = 1\n"
    (inside / "six/__init__.py").write_text("patched = 3\n")

    accepted = accept(there, "mine")
    assert accepted.exit == 0
    assert accepted.data.snapshot == "mine/1.2"
    assert set(accepted.data.not_reproducible.distributions) == {"six 1.0.0", "idna 1.0.0"}
    assert errors(audit(there, "mine", deep=True).findings) == set()
    assert listing(there).data.environments[0].verdict == "conforms"
    told = show(there, "mine").data
    assert (told.adopted, told.restorable, told.steps) == (True, False, ("adopted", "accepted"))
    assert [step.name for step in history(there, "mine").data.generations[0].steps] == ["adopted", "accepted"]


def test_guards_and_debris_are_told_at_once_and_do_not_keep_it_away(tmp_path: Path) -> None:
    there = shop(tmp_path / "home")
    place = tmp_path / "v"
    inside = made(place, SIX, Wheel(name="dep", version="1.0.0", requires=("idna",)))
    (inside / "~ix").mkdir()
    guarded = profile(PROFILE + 'guards:\n  - {forbid: [six]}\n  - {hold: "dep>1"}\n  - {keep: [six]}\n')
    wanted = {
        ("package-forbidden", "six"),
        ("hold-violated", "dep"),
        ("requirement-unmet", "dep"),
        ("leftover", "~ix"),
    }
    assert errors(adopt(there, place, guarded).findings) == wanted
    assert errors(audit(there, "mine").findings) == wanted
    refused = accept(there, "mine")
    assert (refused.exit, refused.data.snapshot) == (3, None)


def test_what_the_base_python_may_bring_is_no_error(tmp_path: Path) -> None:
    there = shop(tmp_path / "home")
    place = tmp_path / "v"
    made(place, Wheel(name="dep", version="1.0.0", requires=("idna",)))
    settings = place / "pyvenv.cfg"
    settings.write_text(settings.read_text().replace("packages = false", "packages = true"))
    result = adopt(there, place, profile())
    assert result.exit == 0
    assert {each.id for each in result.findings if each.severity == "warning"} >= {
        "requirement-unmet",
        "user-site-visible",
    }


def test_a_conda_environment_is_known_by_its_python_and_its_scripts_are_conda_s(tmp_path: Path) -> None:
    told: list[Progress] = []
    there = shop(tmp_path / "home", told)
    place = tmp_path / "c"
    made(place, IDNA)
    (place / "pyvenv.cfg").unlink()
    (place / "conda-meta").mkdir()
    record = {"name": "python", "version": "3.10.4", "build": "abc_0"}
    (place / "conda-meta/python-3.10.4-abc_0.json").write_text(json.dumps(record))
    info = site(place) / "idna-1.0.0.dist-info"
    (info / "INSTALLER").write_text("conda")
    rows = [row for row in (info / "RECORD").read_text().splitlines() if "INSTALLER" not in row]
    (info / "RECORD").write_text("\n".join(rows) + "\n")
    (place / "bin/idna").write_text("#!/bin/sh\n# as conda writes it\n")
    result = adopt(there, place, profile())
    assert errors(result.findings) == set()
    assert (result.data.backend, result.data.python) == ("conda", "3.10.4")
    warnings = " ".join(each.text for each in told if isinstance(each, Note) and each.level == "warning")
    assert "of conda" in warnings
    assert "3.10.4" in warnings
    assert errors(audit(there, "mine").findings) == set()


def test_what_cannot_be_adopted_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    there = shop(tmp_path / "home")
    place = tmp_path / "v"
    made(place)

    def code(path: Path, name: str = "mine", root: Path = tmp_path / "home") -> str:
        with pytest.raises(UsageError) as caught:
            adopt(shop(root) if root != tmp_path / "home" else there, path, profile(), name=name)
        return caught.value.code

    assert code(tmp_path) == "not-an-environment"
    assert code(tmp_path / "nowhere") == "not-an-environment"
    assert code(place, name="../x") == "invalid-name"
    inner = there.home.root / "generations/inner"
    shutil.copytree(place, inner, symlinks=True)
    assert code(inner) == "already-kept"
    assert there.home.environments() == ()
    adopt(there, place, profile())
    assert code(place, name="other") == "already-kept"
    assert code(there.home.link("mine"), name="other") == "already-kept"
    second = tmp_path / "w"
    made(second)
    assert code(second) == "environment-exists"
    assert there.home.environments() == ("mine",)
    orphan = there.home.prefix("orphan", 1)
    orphan.mkdir(parents=True)
    assert code(second, name="orphan") == "environment-exists"
    assert orphan.is_dir()
    colon = tmp_path / "a:b"
    shutil.copytree(second, colon, symlinks=True)
    assert code(colon, name="colon") == "not-adoptable"


def test_a_home_inside_of_it_is_refused_before_anything_is_written_there(tmp_path: Path) -> None:
    place = tmp_path / "v"
    made(place)
    cli = Cli(root=tmp_path, variables={"ENVFORGE_HOME": str(place / "home")})
    (cli.work / "profiles/mine.yaml").write_text(PROFILE)
    before = stamps(place)
    answer = cli.run("adopt", str(place), "--profile", "mine")
    assert (answer.exit, answer.document["error"]["code"]) == (2, "not-adoptable")
    assert stamps(place) == before


def test_a_failure_half_way_leaves_no_half_and_not_a_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = shop(tmp_path / "home")
    place = tmp_path / "v"
    made(place, SIX)
    before = stamps(place)

    def full(*_: object, **__: object) -> None:
        raise EnvforgeError("home-not-writable", "the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "write", full)
        with pytest.raises(EnvforgeError, match="full"):
            adopt(there, place, profile())
    assert there.home.environments() == ()
    assert stamps(place) == before
    assert adopt(there, place, profile()).exit == 0


def test_a_link_that_leads_elsewhere_than_recorded_is_no_generation(tmp_path: Path) -> None:
    there = shop(tmp_path / "home")
    place, other = tmp_path / "v", tmp_path / "w"
    made(place)
    made(other)
    adopt(there, place, profile())
    link = there.home.prefix("mine", 1)
    link.unlink()
    link.symlink_to(other)
    assert there.home.current("mine") is None
    link.unlink()
    link.symlink_to(place)
    assert there.home.current("mine") == 1
    place.rename(tmp_path / "moved")
    assert there.home.current("mine") is None
    place.symlink_to(other)
    assert there.home.current("mine") is None
    with pytest.raises(EnvforgeError, match="was adopted as generation 1 of `mine`, is gone"):
        audit(there, "mine")
    remove(there, "mine")
    assert (other / "pyvenv.cfg").exists()


@pytest.mark.slow
def test_a_new_generation_comes_from_the_profile_and_the_adopted_one_stays(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        house = House(tmp_path, server)
        there, home = house.shop, house.shop.home
        place = tmp_path / "v"
        made(place, SIX)
        before = stamps(place)
        wanted = house.profile([{"name": "base", "install": ["six"]}])
        adopt(there, place, wanted)
        with pytest.raises(EnvforgeError, match="adopted") as caught:
            rebuild(there, "demo")
        assert caught.value.code == "not-restorable"
        assert "--fresh" in (caught.value.hint or "")
        assert rebuild(there, "demo", fresh=True).exit == 0
        assert home.current("demo") == 2
        assert [change.name for change in diff(there, "demo/1.1", "demo/2.1").data.changes] == ["pip"]
        assert rollback(there, "demo").data.after == 1
        assert where(there, "demo").data.path == str(place)
        house.profile([{"name": "base", "install": ["six"]}, {"name": "more", "install": ["idna"]}])
        assert update(there, "demo").exit == 0
        assert home.current("demo") == 3
        assert rollback(there, "demo", "demo/1.1").data.built is False
        assert where(there, "demo").data.path == str(place)
        assert remove(there, "demo").data.generations == (1, 2, 3)
        assert stamps(place) == before


def test_no_build_goes_on_in_what_a_killed_adoption_left(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        house = House(tmp_path, server)
        home = house.shop.home
        place = tmp_path / "v"
        made(place, SIX)
        home.ensure()
        adopt(house.shop, place, house.profile([{"name": "base", "install": ["six"]}]))
        home.unlink("demo")
        journal = home.journal("demo", 1)
        lines = journal.read_text().splitlines(keepends=True)
        journal.write_text("".join(line for line in lines if '"switched"' not in line))
        assert [event.kind for event in Journal(journal).events()] == ["adopted"]
        before = stamps(place)
        assert house.create([{"name": "base", "install": ["six"]}]).exit == 0
        assert home.current("demo") == 2
        add(tmp_path / "v")
        assert stamps(place) == before
        with pytest.raises(EnvforgeError) as caught:
            rollback(house.shop, "demo", "demo/1")
        assert caught.value.code == "generation-unproven"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_this_user_cannot_read_is_not_taken_for_known(tmp_path: Path) -> None:
    there = shop(tmp_path / "home")
    place = tmp_path / "v"
    inside = made(place, SIX)
    for hidden in (inside / "six/__init__.py", inside / "six"):
        mode = hidden.stat().st_mode
        hidden.chmod(0)
        with pytest.raises(UsageError) as caught:
            adopt(there, place, profile())
        assert caught.value.code == "not-adoptable"
        assert errors(audit(there, str(place), profile=profile()).findings) == set()
        hidden.chmod(mode)
    assert there.home.environments() == ()
