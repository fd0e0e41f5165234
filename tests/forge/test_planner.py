"""What a plan asks, runs and says, of steps of every kind."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from engines import house
from engines.house import House
from kit.index import Index, serve
from kit.wheels import Sdist, Wheel

from envforge.model.errors import EnvforgeError, UsageError
from envforge.model.finding import Severity
from envforge.store import snapshots
from envforge.system import http

SIX = Wheel(name="six", version="1.0.0")
SEVEN = Wheel(name="six", version="2.0.0")
APP = Wheel(name="app", version="1.0.0", extras={"more": ("six<2",)})
NEEDY = Wheel(name="needy", version="1.0.0", requires=("six>=2",))


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def test_steps_of_every_kind(tmp_path: Path) -> None:
    steps = [
        {"name": "nothing", "install": ["six ; python_version < '3'"]},
        {"name": "extras", "install": ["app[more]"]},
        {"name": "twice", "install": ["six", "six", "SIX >= 1", "six ; python_version > '3'"]},
        {"name": "needy", "install": ["needy"]},
        {"name": "back", "pin": ["six<2"]},
        {"name": "run", "run": ["python", "-c", "1"]},
        {"name": "gone", "uninstall": ["six", "Never-There"]},
    ]
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, APP, NEEDY])}) as server:
        made = House(tmp_path, server)
        planned = made.plan(steps)
        assert not made.plan([]).steps
        assert not server.requests("file"), "a plan asks for metadata only"
    got = [house.versions(step.state) for step in planned.steps]
    assert got == [
        {},
        {"app": "1.0.0", "six": "1.0.0"},
        {"app": "1.0.0", "six": "1.0.0"},
        {"app": "1.0.0", "six": "2.0.0", "needy": "1.0.0"},
        {"app": "1.0.0", "six": "1.0.0", "needy": "1.0.0"},
        {"app": "1.0.0", "six": "1.0.0", "needy": "1.0.0"},
        {"app": "1.0.0", "needy": "1.0.0"},
    ]
    assert [step.assumed for step in planned.steps] == [False] * 6 + [True]
    assert planned.steps[6].notes == ("`never-there` is not installed",)
    assert (planned.steps[4].state["six"].requested, planned.steps[3].state["needy"].requested) == (True, True)
    assert "requirement-unmet" in {finding.id for finding in planned.steps[4].opens}


def test_a_pin_whose_marker_is_false_asks_nothing(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        planned = House(tmp_path, server).plan([{"name": "pin", "pin": ["six<2 ; python_version < '3'"]}])
    assert not planned.steps[0].changes


OPTIONS = [
    "--index-url http://127.0.0.1:1/", "--index-url=x", "-r other.txt", "-e .", "-c other.txt", "--find-links=/x",
    "six # why", "six --hash=sha256:00", "six\n-e .", "six \\\n-e .", "./folder", "http://127.0.0.1:1/six-1.0.tar.gz",
    "@other", "six;", "six\0",
]  # fmt: skip


@pytest.mark.parametrize("text", OPTIONS)
@pytest.mark.parametrize("field", ["install", "pin", "backfill", "constraints", "build_constraints"])
def test_an_option_is_no_requirement(tmp_path: Path, text: str, field: str) -> None:
    step = {"name": "a", "install": ["six"], field: [text]} if "constraints" in field else {"name": "a", field: [text]}
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        with pytest.raises(UsageError):
            House(tmp_path, server).plan([step])
        assert not server.requests()


@pytest.mark.parametrize("field", ["install", "constraints", "build_constraints"])
@pytest.mark.parametrize(
    "text",
    [
        "zzz @ https://x.invalid/y.whl\n--find-links=/x",
        "zzz @ https://x.invalid/y.whl\n--find-links=/x ; python_version > '3'",
        "zzz ; sys_platform != 'a\n--find-links=/x\n'",
    ],
)
def test_a_requirement_is_one_line(tmp_path: Path, field: str, text: str) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server, pytest.raises(UsageError):
        House(tmp_path, server).profile([{"name": "a", "install": ["six"], field: [text]}])


def test_a_very_long_name(tmp_path: Path) -> None:
    name = "n" * 300
    index = Index(artefacts=[Wheel(name=name, version="1.0")])
    with serve({"pypi": index}) as server, pytest.raises(EnvforgeError, match=r".+"):
        House(tmp_path, server).plan([{"name": "a", "install": [name]}])


@pytest.mark.parametrize("indexes", [[], ["absent"]])
def test_a_step_without_an_index(tmp_path: Path, indexes: list[str]) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server, pytest.raises(EnvforgeError, match=r".+"):
        House(tmp_path, server).plan([{"name": "a", "install": ["six"], "indexes": indexes}])


def test_conda_is_still_to_come(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server, pytest.raises(UsageError, match="conda"):
        House(tmp_path, server).plan([{"name": "a", "conda": ["six"]}])


# -- sdists --------------------------------------------------------------------------------------------------------


def test_a_plan_runs_only_what_must_run(tmp_path: Path) -> None:
    log = tmp_path / "log"
    static = Sdist(wheel=Wheel(name="static", version="1.0.0", requires=("six",)), log=str(log))
    dynamic = Sdist(wheel=Wheel(name="dynamic", version="1.0.0", requires=("six",)), metadata="dynamic", log=str(log))
    steps = [{"name": "static", "install": ["static"]}, {"name": "dynamic", "install": ["dynamic"]}]
    wanted = {"static": "1.0.0", "dynamic": "1.0.0", "six": "1.0.0"}
    with serve({"pypi": Index(artefacts=[static, dynamic, SIX])}) as server:
        made = House(tmp_path, server)
        planned = made.plan(steps)
        assert [step.builds for step in planned.steps] == [(), ("dynamic-1.0.0.tar.gz",)]
        assert not [line for line in lines(log) if line.startswith("static")]
        assert lines(log).count("dynamic-1.0.0 wheel") == 1
        assert house.versions(planned.steps[1].state) == wanted
        with pytest.raises(EnvforgeError) as caught:
            made.plan(steps[:1], no_build=True)
        assert caught.value.code in {"build-refused", "unsolvable"}
        built = made.create(steps)
        assert (built.exit, made.installed(), built.data.differs) == (0, wanted, ())
        assert lines(log).count("dynamic-1.0.0 wheel") == lines(log).count("static-1.0.0 wheel") == 1


class Inside(Sdist):
    """An sdist whose build imports what an earlier step installed."""

    def bytes(self) -> bytes:
        import gzip
        import io
        import tarfile

        plain = io.BytesIO()
        with tarfile.open(fileobj=io.BytesIO(super().bytes())) as old, tarfile.open(fileobj=plain, mode="w") as new:
            for member in old:
                file = old.extractfile(member)
                data = file.read() if file else b""
                if member.name.endswith("/backend.py"):
                    data = b"import six\n" + data
                member.size = len(data)
                new.addfile(member, io.BytesIO(data))
        return gzip.compress(plain.getvalue(), mtime=0)


def test_a_build_inside_the_environment(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ext = Inside(wheel=Wheel(name="ext", version="1.0.0", requires=("six",)), log=str(log))
    steps = [{"name": "six", "install": ["six"]}, {"name": "ext", "install": ["ext"], "no_build_isolation": ["Ext"]}]
    with serve({"pypi": Index(artefacts=[ext, SIX])}) as server:
        made = House(tmp_path, server)
        planned = made.plan(steps)
        assert (planned.steps[1].builds, lines(log)) == (("ext-1.0.0.tar.gz",), [])
        assert made.create(steps).exit == 0
        assert made.installed() == {"six": "1.0.0", "ext": "1.0.0"}
        assert lines(log).count("ext-1.0.0 wheel") == 1


@pytest.mark.parametrize("differs", ["installed", "environment", "build_constraints"])
def test_a_build_is_shared_only_where_it_would_be_the_same(tmp_path: Path, differs: str) -> None:
    log = tmp_path / "log"
    kind = Inside if differs == "installed" else Sdist
    ext = kind(
        wheel=Wheel(name="ext", version="1.0.0"), metadata="dynamic" if kind is Sdist else "static", log=str(log)
    )

    def steps(number: int) -> list[dict[str, object]]:
        own: dict[str, object] = {
            "installed": {"no_build_isolation": ["ext"]},
            "environment": {"environment": {"TORCH_CUDA_ARCH_LIST": f"{number}.0"}},
            "build_constraints": {"build_constraints": [f"setuptools<{number}"]},
        }[differs]  # type: ignore[assignment]
        version = number if differs == "installed" else 1
        return [{"name": "six", "install": [f"six=={version}"]}, {"name": "ext", "install": ["ext"], **own}]

    with serve({"pypi": Index(artefacts=[ext, SIX, SEVEN])}) as server:
        made = House(tmp_path, server)
        for number in (1, 2):
            made.create(steps(number), again=True)
        assert lines(log).count("ext-1.0.0 wheel") == 2


def test_a_build_inside_is_refused_too(tmp_path: Path) -> None:
    ext = Inside(wheel=Wheel(name="ext", version="1.0.0"))
    steps = [{"name": "ext", "install": ["ext"], "no_build_isolation": ["ext"]}]
    with serve({"pypi": Index(artefacts=[ext])}) as server, pytest.raises(EnvforgeError, match="build"):
        House(tmp_path, server).plan(steps, no_build=True)


# -- guards that the resolver is given -----------------------------------------------------------------------------


def test_a_constrained_keep_holds_until_a_step_may_change_it(tmp_path: Path) -> None:
    first = {"name": "six", "install": ["six<2"]}
    guards = [{"keep": ["six"], "constrain": True}]
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, NEEDY])}) as server:
        made = House(tmp_path, server)
        with pytest.raises(EnvforgeError) as caught:
            made.plan([first, {"name": "needy", "install": ["needy"]}], guards=guards)
        assert caught.value.code == "unsolvable"
        planned = made.plan([first, {"name": "needy", "install": ["needy"], "allow": ["six"]}], guards=guards)
        assert house.versions(planned.steps[1].state)["six"] == "2.0.0"
        assert not [finding for finding in planned.findings if finding.severity is Severity.ERROR]
        open_ = made.plan([first, {"name": "needy", "install": ["needy"]}], guards=[{"keep": ["six"]}])
        assert "kept-package-changed" in {finding.id for finding in open_.findings}


def test_a_constrained_hold_with_a_marker(tmp_path: Path) -> None:
    steps = [{"name": "six", "install": ["six"]}]
    with serve({"pypi": Index(artefacts=[SIX, SEVEN])}) as server:
        made = House(tmp_path, server)
        for marker, version in (("python_version > '3'", "1.0.0"), ("python_version < '3'", "2.0.0")):
            planned = made.plan(steps, guards=[{"hold": f"six<2 ; {marker}", "constrain": True}])
            assert house.versions(planned.steps[0].state) == {"six": version}


def test_a_backfill_changes_only_what_it_lists(tmp_path: Path) -> None:
    other = Wheel(name="other", version="1.0.0", requires=("six>=2",))
    first = {"name": "six", "install": ["six<2"]}
    with serve({"pypi": Index(artefacts=[SIX, SEVEN, other])}) as server:
        made = House(tmp_path, server)
        with pytest.raises(EnvforgeError) as caught:
            made.plan([first, {"name": "fill", "backfill": ["other"]}])
        assert caught.value.code == "unsolvable"
        planned = made.plan([first, {"name": "fill", "backfill": ["other", "six"]}])
        assert house.versions(planned.steps[1].state) == {"six": "2.0.0", "other": "1.0.0"}


@pytest.mark.parametrize("kind", ["differs", "lock"])
def test_versions_that_are_spelled_in_other_ways(tmp_path: Path, kind: str) -> None:
    odd = [
        Wheel(name="Odd.Name", version="2026.01.02"),
        Wheel(name="short", version="1.0"),
        Wheel(name="loc", version="1.0+CU.126"),
    ]
    steps = [{"name": "a", "install": ["odd_name==2026.1.2", "short==1", "loc==1.0"]}]
    with serve({"pypi": Index(artefacts=odd)}) as server:
        made = House(tmp_path, server)
        made.plan(steps)
        built = made.create(steps)
        assert built.exit == 0
        if kind == "differs":
            assert built.data.differs == ()
        else:
            kept = snapshots.read(made.shop.home, "demo", 1, 1).state
            assert {name for name, item in kept.items() if item.sha256 is None} == set()
