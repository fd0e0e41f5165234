"""Requirements that name a commit, a folder, a file or an address."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from engines import house
from engines.house import House
from kit.index import Fault, Index, serve
from kit.wheels import Sdist, Wheel

from envforge.model.errors import EnvforgeError

SIX = Wheel(name="six", version="1.0.0")
TOOL = Wheel(name="tool", version="1.0.0", requires=("six",))


def sources(root: Path, sdist: Sdist) -> Path:
    """The tree of an sdist, as a checkout has it."""
    root.mkdir(parents=True, exist_ok=True)
    archive = root / sdist.filename
    archive.write_bytes(sdist.bytes())
    with tarfile.open(archive) as opened:
        opened.extractall(root, filter="data")
    archive.unlink()
    return root / sdist.filename.removesuffix(".tar.gz")


def git(folder: Path, *arguments: str) -> str:
    variables = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": "x@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }  # fmt: skip
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def committed(folder: Path) -> str:
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "x")
    return git(folder, "rev-parse", "HEAD")


def step(requirement: str, **more: object) -> dict[str, object]:
    return {"name": "direct", "install": [requirement], **more}


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


# -- Git -----------------------------------------------------------------------------------------------------------


def test_a_git_repository(tmp_path: Path) -> None:
    log = tmp_path / "log"
    one = sources(tmp_path / "one", Sdist(wheel=TOOL, log=str(log)))
    first = committed(one)
    git(one, "tag", "v1")
    (one / "more").write_text("more")
    second = committed(one)
    address = f"git+{one.as_uri()}"
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        for revision, commit in (("", second), ("@v1", first), (f"@{first}", first), ("", second)):
            planned = made.plan([step(f"tool @ {address}{revision}")])
            assert house.versions(planned.steps[0].state) == {"tool": "1.0.0", "six": "1.0.0"}
            origin = planned.steps[0].state["tool"].origin
            assert origin is not None
            assert (origin.kind, origin.commit, origin.url) == ("git", commit, one.as_uri())
        assert lines(log).count("tool-1.0.0 wheel") == 2
        with pytest.raises(EnvforgeError, match="cannot be fetched") as caught:
            made.plan([step(f"tool @ {address}@absent")])
        assert caught.value.code == "git-failed"


def test_a_folder_of_a_git_repository(tmp_path: Path) -> None:
    one = tmp_path / "one"
    sources(one / "packages", Sdist(wheel=TOOL))
    committed(one)
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        planned = made.plan([step(f"tool @ git+{one.as_uri()}#subdirectory=packages/tool-1.0.0")])
        assert "tool" in planned.steps[0].state
        with pytest.raises(EnvforgeError, match="no folder"):
            made.plan([step(f"tool @ git+{one.as_uri()}#subdirectory=absent")])


def test_a_revision_is_no_option_of_git(tmp_path: Path) -> None:
    one = sources(tmp_path / "one", Sdist(wheel=TOOL))
    committed(one)
    mark = tmp_path / "mark"
    with serve({"pypi": Index(artefacts=[SIX])}) as server, pytest.raises(EnvforgeError):
        House(tmp_path, server).plan([step(f"tool @ git+{one.as_uri()}@--upload-pack=touch${{IFS}}{mark};false")])
    assert not mark.exists()


def test_a_folder_stays_in_its_repository(tmp_path: Path) -> None:
    one = tmp_path / "one"
    sources(one, Sdist(wheel=SIX))
    committed(one)
    outside = sources(tmp_path / "outside", Sdist(wheel=TOOL))
    with serve({"pypi": Index(artefacts=[SIX])}) as server, pytest.raises(EnvforgeError):
        House(tmp_path, server).plan([step(f"tool @ git+{one.as_uri()}#subdirectory={outside}")])


# -- paths ---------------------------------------------------------------------------------------------------------


def test_a_wheel_an_sdist_and_a_folder_by_path(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        (made.folder / TOOL.filename).write_bytes(TOOL.bytes())
        old = Sdist(wheel=Wheel(name="old", version="2.0.0"), log=str(log))
        (made.folder / old.filename).write_bytes(old.bytes())
        sources(made.folder, Sdist(wheel=Wheel(name="tree", version="3.0.0"), log=str(log)))
        absolute = (made.folder / "tree-3.0.0").as_uri()
        steps: list[dict[str, object]] = [
            step(f"tool @ ./{TOOL.filename}"),
            {"name": "b", "install": [f"old @ {old.filename}"]},
        ]
        steps.append({"name": "c", "install": [f"tree @ {absolute}"]})
        planned = made.plan(steps)
        wanted = {"tool": "1.0.0", "six": "1.0.0", "old": "2.0.0", "tree": "3.0.0"}
        assert house.versions(planned.steps[-1].state) == wanted
        built = made.create(steps)
        assert built.exit == 0, built.findings
        assert made.installed() == wanted
        assert sorted(lines(log)) == ["old-2.0.0 wheel", "tree-3.0.0 wheel"]


def test_a_folder_that_changed_is_built_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        tree = sources(made.folder, Sdist(wheel=TOOL, log=str(log)))
        for _ in range(2):
            made.plan([step("tool @ ./tool-1.0.0")])
        (tree / "new").write_text("new")
        made.plan([step("tool @ ./tool-1.0.0")])
        assert lines(log).count("tool-1.0.0 wheel") == 2


def test_a_path_that_is_absent(tmp_path: Path) -> None:
    with serve({"pypi": Index()}) as server, pytest.raises(EnvforgeError, match="does not exist") as caught:
        House(tmp_path, server).plan([step("tool @ ./absent")])
    assert caught.value.code == "path-missing"


def test_what_is_no_wheel(tmp_path: Path) -> None:
    with serve({"pypi": Index()}) as server:
        made = House(tmp_path, server)
        (made.folder / "tool-1.0.0-py3-none-any.whl").write_text("nothing")
        (made.folder / "tool.whl").write_text("nothing")
        (made.folder / "tool-1.0.0.tar.gz").write_text("nothing")
        with pytest.raises(EnvforgeError, match="no wheel"):
            made.plan([step("tool @ ./tool.whl")])
        with pytest.raises(EnvforgeError, match="could not be built"):
            made.plan([step("tool @ ./tool-1.0.0.tar.gz")])


def test_a_damaged_wheel_by_path(tmp_path: Path) -> None:
    with serve({"pypi": Index()}) as server:
        made = House(tmp_path, server)
        (made.folder / TOOL.filename).write_bytes(TOOL.bytes()[:200])
        with pytest.raises(EnvforgeError, match="tool"):
            made.plan([step(f"tool @ ./{TOOL.filename}")])


def test_a_file_of_another_name_is_refused(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        (made.folder / TOOL.filename).write_bytes(TOOL.bytes())
        with pytest.raises(EnvforgeError, match="tool"):
            made.plan([step(f"other @ ./{TOOL.filename}")])


# -- addresses -----------------------------------------------------------------------------------------------------


def test_an_address_with_and_without_a_hash(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX]), "files": Index(artefacts=[TOOL])}) as server:
        made = House(tmp_path, server, only=("pypi",))
        address = f"{server.base}/files/files/{TOOL.filename}"
        digest = hashlib.sha256(TOOL.bytes()).hexdigest()
        for fragment in ("", f"#sha256={digest}"):
            planned = made.plan([step(f"tool @ {address}{fragment}")])
            assert planned.steps[0].state["tool"].sha256 == digest
        with pytest.raises(EnvforgeError) as caught:
            made.plan([step(f"tool @ {address}#sha256={'0' * 64}")])
        assert caught.value.code == "hash-mismatch"
        with pytest.raises(EnvforgeError) as caught:
            made.plan([step(f"tool @ {server.base}/files/files/absent-1.0-py3-none-any.whl")])
        assert caught.value.code == "url-unreachable"


@pytest.mark.parametrize("fragment", ["egg=tool&sha256=HASH", "sha256=HASH&subdirectory=x"])
def test_a_hash_among_other_things_is_checked(tmp_path: Path, fragment: str) -> None:
    with serve({"pypi": Index(artefacts=[SIX]), "files": Index(artefacts=[TOOL])}) as server:
        made = House(tmp_path, server, only=("pypi",))
        right = fragment.replace("HASH", hashlib.sha256(TOOL.bytes()).hexdigest())
        made.plan([step(f"tool @ {server.base}/files/files/{TOOL.filename}#{right}")])
        wrong = fragment.replace("HASH", "0" * 64)
        with pytest.raises(EnvforgeError, match="sha256"):
            made.plan([step(f"tool @ {server.base}/files/files/{TOOL.filename}#{wrong}")])


def test_an_address_does_not_say_where_its_file_is_written(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    with serve({"pypi": Index(artefacts=[SIX]), "files": Index(artefacts=[TOOL])}) as server:
        made = House(tmp_path, server, only=("pypi",))
        with pytest.raises(EnvforgeError):
            made.plan([step(f"tool @ {server.base}/files/files/{str(victim).replace('/', '%2F')}")])
    assert victim.read_text() == "precious"


def test_an_address_whose_file_ends_early(tmp_path: Path) -> None:
    files = Index(artefacts=[TOOL], faults=[Fault(file="*.whl", truncate=True)])
    with serve({"pypi": Index(artefacts=[SIX]), "files": files}) as server:
        made = House(tmp_path, server, only=("pypi",))
        with pytest.raises(EnvforgeError, match="tool"):
            made.plan([step(f"tool @ {server.base}/files/files/{TOOL.filename}")])


# -- what a plan may run -------------------------------------------------------------------------------------------


def test_nothing_is_built_where_that_is_forbidden(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        sources(made.folder, Sdist(wheel=TOOL, log=str(log)))
        with pytest.raises(EnvforgeError, match="--no-build"):
            made.plan([step("tool @ ./tool-1.0.0")], no_build=True)
    assert not lines(log)


def test_what_was_built_for_a_plan_is_named(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        sources(made.folder, Sdist(wheel=TOOL))
        planned = made.plan([step("tool @ ./tool-1.0.0")])
    assert any("tool" in each for each in planned.steps[0].builds)


def test_extras_and_markers_of_a_direct_requirement(tmp_path: Path) -> None:
    extra = Wheel(name="tool", version="1.0.0", extras={"more": ("six",)})
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        (made.folder / extra.filename).write_bytes(extra.bytes())
        planned = made.plan([step(f"tool[more] @ ./{extra.filename} ; python_version > '3'")])
        assert set(house.versions(planned.steps[0].state)) == {"tool", "six"}
        planned = made.plan([step(f"tool[more] @ ./{extra.filename} ; python_version < '3'")])
        assert not house.versions(planned.steps[0].state)
