"""What a person reads: the step that opens, through whom, and the step that heals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from report import samples

from envforge.model.drift import Audit, Checked, Switch
from envforge.model.finding import Finding, Severity
from envforge.model.machine import Ambient, Card, Interpreter, Machine
from envforge.model.plan import Change
from envforge.model.profile import Hold, Keep, Smoke, SmokeKind
from envforge.model.result import Result
from envforge.model.views import (
    Activation,
    BundleView,
    DiffView,
    EnvironmentEntry,
    FileChange,
    Fit,
    GenerationRecord,
    HistoryView,
    ListView,
    Maker,
    ProfileEntry,
    ProfilesView,
    Pruned,
    PruneView,
    RemoveView,
    Sealed,
    ShowView,
    Skipped,
    StepRecord,
    Unrestorable,
    User,
)
from envforge.report.console import render


def read(data: Any, *, width: int = 100, verbose: bool = False, findings: tuple[Finding, ...] = ()) -> str:
    return render(Result(command="any", data=data, findings=findings), width=width, verbose=verbose)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_plan_tells_who_opened_through_whom_and_who_heals() -> None:
    text = flat(read(samples.plan()))
    assert "opens hold-violated transformers" in text
    assert "because xinference 2.7.0 requires transformers>=5" in text
    assert "healed by step `pin`" in text
    assert "heals hold-violated transformers, open since step `tool`" in text
    assert "opened by step `tool`, healed by step `pin`" in text
    assert "everything holds at the end; 1 finding opens on the way and is healed" in text
    assert "symbol f in libf.so unknown" in text
    assert "download 55.0 MB · disk 180.0 MB of 25.0 GB free" in text
    assert "code of 1 sdist has been run already: old-1.0.tar.gz" in text
    assert "small: one install undoes another · Python 3.11.7 (3.11) · venv · any machine" in text
    assert "then smoke checks: import transformers" in text
    assert text.count("xinference 2.7.0 requires transformers>=5") == 2, "at the change, and where it opens"


def test_a_guard_is_told_with_the_version_that_it_watches() -> None:
    plan = samples.plan()
    last = replace(plan.steps[-1], state={"transformers": samples.dist("transformers", "4.57.6")})
    quiet = replace(plan.verdicts[0], opened=None, healed=None, because=None)
    profile = replace(plan.profile, guards=(Hold(requirement="transformers<5"), Keep(names=("torch*", "transformers"))))
    verdicts = (quiet, replace(quiet, guard="keep torch*, transformers"))
    text = flat(read(replace(plan, profile=profile, verdicts=verdicts, steps=(*plan.steps[:-1], last))))
    assert "✓ hold transformers<5: 4.57.6" in text
    assert "✓ keep torch*, transformers: transformers 4.57.6" in text
    gone = replace(last, state={})
    text = flat(read(replace(plan, profile=profile, verdicts=verdicts, steps=(*plan.steps[:-1], gone))))
    assert text.count(": not installed") == 2


def test_code_that_will_run_later_is_told_apart_and_many_sdists_are_one_line() -> None:
    plan = samples.plan()
    step = replace(plan.steps[1].step, no_build_isolation=("late",))
    files = ("a-1.tar.gz", "b-c-2.tar.gz", "Late-3.0.tar.gz")
    text = flat(read(replace(plan, steps=(plan.steps[0], replace(plan.steps[1], step=step, builds=files)))))
    assert "code of 2 sdists has been run already: a-1.tar.gz, b-c-2.tar.gz" in text
    assert "the step itself will run code of 1 sdist: Late-3.0.tar.gz" in text


def test_the_code_of_a_smoke_check_is_shown_to_who_asks() -> None:
    plan = samples.plan()
    smoke = Smoke(kind=SmokeKind.PYTHON, arguments=("import six\nassert six",), name="it works")
    plan = replace(plan, profile=replace(plan.profile, smoke=(smoke,)))
    assert "then smoke checks: it works" in read(plan)
    assert "assert six" not in read(plan)
    assert "    assert six" in read(plan, verbose=True)


def test_cards_that_fit_and_substitutes_that_nobody_judges() -> None:
    plan = replace(samples.plan(), cards=("GPU 0 Tesla V100",), lost={"torch": "2.7.1 instead of 2.7.1+cu126"})
    text = flat(read(plan))
    assert "fits GPU 0 Tesla V100" in text
    assert "healed whether the substitutes have code for your GPU and its driver is not judged" in text


def test_a_plan_that_ends_open_is_refused_and_says_what_to_do() -> None:
    plan = samples.plan(healed=False)
    text = flat(read(plan, findings=plan.findings))
    assert "ends open since step `tool`" in text
    assert "ends with 1 open finding: `create` refuses it" in text
    assert "do: add `constrain: true` to the hold" in text
    assert "healed by" not in text


def test_many_additions_are_one_line_that_begins_with_what_was_asked_for() -> None:
    text = flat(read(samples.plan()))
    assert "13 added (24.0 MB): transformers 4.57.6, helper-0 1.0" in text
    assert "… 5 more" in text
    assert "helper-9" not in text
    assert "helper-9" in read(samples.plan(), verbose=True)


def test_a_cause_that_the_message_tells_is_not_told_twice() -> None:
    said = replace(samples.OPENED, message="5.1.0 is out: `xinference` 2.7.0 requires `transformers>=5`")
    plan = samples.plan()
    step = replace(plan.steps[1], opens=(said,))
    text = flat(read(replace(plan, steps=(plan.steps[0], step, plan.steps[2]))))
    assert "because xinference" not in text


def test_no_space_is_seen_at_once() -> None:
    plan = replace(samples.plan(), free=1)
    assert "of 1 B free" in read(plan)
    assert "\x1b[1;31m1 B free" in render(Result(command="plan", data=plan), color=True)


def test_a_build_tells_the_story_and_what_to_do_next() -> None:
    text = flat(read(samples.build()))
    assert "✓ 1 finding opened on the way, healed" in text
    assert "✗" not in text
    assert "ready: envforge run small serve" in text
    assert "1 smoke check passed" in text
    text = flat(read(samples.build(), verbose=True))
    assert "step `tool` opened hold-violated transformers: xinference 2.7.0 requires transformers>=5" in text
    assert "healed by step `pin`" in text


def test_what_to_type_next_is_what_was_typed() -> None:
    result = Result(command="create", data=samples.build())
    assert "ready: ./bootstrap.sh run small serve" in render(result, program="./bootstrap.sh")


def test_a_build_that_did_not_switch_says_so() -> None:
    built = samples.build()
    failed = replace(built.smoke[0], ok=False, ending="killed by SIGSEGV")
    said = "\n".join(f"line {number}" for number in range(20))
    finding = Finding(
        id="smoke-failed",
        severity=Severity.ERROR,
        subject="import transformers",
        message="the smoke check `import transformers` failed: killed by SIGSEGV",
        evidence={"tail": said, "log": "/records/small/1/logs/smoke.log"},
    )
    refused = replace(built, switched=False, smoke=(failed,))
    text = flat(read(refused, findings=(finding,)))
    assert "nothing is in use yet; generation 1 is kept to look at" in text
    assert "ready" not in text
    assert text.count("killed by SIGSEGV") == 1
    assert "line 10 line 11" in text
    assert "line 9 " not in text
    assert "all that it said: /records/small/1/logs/smoke.log" in text
    assert "line 9" in read(refused, findings=(finding,), verbose=True)
    again = replace(refused, generation=3, in_use=2)
    assert "not in use: generation 2 stays in place; generation 3 is kept to look at" in flat(read(again))


def test_a_build_that_is_refused_tells_the_plan() -> None:
    plan = samples.plan(healed=False)
    refused = replace(samples.build(), plan=plan, generation=0, prefix="", switched=False, steps=(), smoke=())
    text = flat(read(refused, findings=plan.findings))
    assert "opens hold-violated transformers, and nothing heals it: see below" in text
    assert text.count("violates hold transformers<5") == 1
    assert "`create` refuses it" in text
    assert "nothing was built" in text


def test_two_findings_about_one_subject_are_healed_one_by_one() -> None:
    first = replace(samples.OPENED, evidence={"guard": "hold transformers<5"})
    second = replace(samples.OPENED, evidence={"guard": "keep transformers"})
    plan = samples.plan()
    steps = (plan.steps[0], replace(plan.steps[1], opens=(first, second)), replace(plan.steps[2], heals=(second,)))
    text = flat(read(replace(plan, steps=steps)))
    assert text.count("✓ healed by step `pin`") == 1
    assert text.count("opens hold-violated") == 2


@pytest.mark.parametrize("width", [1, 40, 57, 80, 200])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_the_terminal(width: int, *, verbose: bool) -> None:
    for data in (samples.plan(), samples.build(), samples.plan(healed=False), machine()):
        lines = read(data, width=width, verbose=verbose, findings=(samples.OPENED,)).splitlines()
        assert max(len(line) for line in lines) <= max(width, 40)
        assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_nothing_is_cut_where_it_is_narrow(width: int) -> None:
    text = flat(read(samples.plan(), width=width))
    assert "transformers 4.57.6 → 5.1.0 xinference 2.7.0 requires transformers>=5" in text
    entry = EnvironmentEntry(
        name="e", generation=2, profile="xinv100", verdict="failed at xinference", bytes=5, shared=9
    )
    text = read(ListView(home="/h", environments=(entry,)), width=width)
    for words in ("generation", "profile", "shared", "failed at xinference"):
        assert words in text


def test_colour_only_where_it_is_wanted() -> None:
    result = Result(command="plan", data=samples.plan())
    assert "\x1b" not in render(result)
    assert "\x1b[" in render(result, color=True)


def test_nothing_in_a_name_is_read_as_markup() -> None:
    strange = Change(name="[red]x[/red]", before=None, after=samples.dist("[red]x[/red]", ":smile:"))
    text = read(DiffView(before="e/1.1", after="e", changes=(strange,)), verbose=True)
    assert "[red]x[/red]" in text
    assert ":smile:" in text


def test_findings_stand_worst_first_and_remarks_are_counted() -> None:
    def finding(severity: Severity, subject: str) -> Finding:
        return Finding(id="ambient-config", severity=severity, subject=subject, message="kept out")

    found = (
        finding(Severity.INFO, "a"), finding(Severity.WARNING, "b"), finding(Severity.ERROR, "c"),
    )  # fmt: skip
    view = RemoveView(environment="e", generations=(1,), bytes=0)
    text = read(view, findings=(*found, replace(found[0], id="file-clobbered")))
    assert text.index("error ambient-config c") < text.index("warning ambient-config b")
    assert "the configuration of a here was kept out (1 source); 1 remark file-clobbered; --verbose shows" in text
    assert "info ambient-config a" in read(view, findings=found, verbose=True)


def machine() -> Machine:
    return Machine(
        system="Linux",
        architecture="x86_64",
        glibc="2.36",
        hostname="box",
        gpus_status="found",
        gpus=(Card(index=0, uuid="GPU-1", name="Tesla V100", compute_capability="7.0", memory=32 << 30),),
        driver="550.54",
        cuda="12.4",
        disk_free=10**12,
        pythons=(Interpreter(path="/usr/bin/python3.11", version="3.11.2", how="PATH"),),
        ambient=(Ambient(tool="pip", source="/etc/pip.conf", settings=("index-url",)),),
        user_site="/home/me/.local",
    )


def test_a_machine() -> None:
    text = flat(read(machine()))
    assert "0 Tesla V100 compute capability 7.0, 32.0 GiB" in text
    assert "pip /etc/pip.conf: index-url" in text
    assert "3.11.2 /usr/bin/python3.11 (PATH)" in text
    bare = replace(machine(), gpus=(), gpus_status="absent", pythons=(), ambient=(), user_site=None, glibc=None)
    assert "GPUs absent" in flat(read(bare))


def test_profiles_with_cards_and_reasons() -> None:
    fit = Fit(index=0, card="Tesla V100", uuid="GPU-a", compute_capability="7.0", fits=True)
    why = "compute capability 8.6"
    other = Fit(index=1, card="RTX 3090", uuid="GPU-b", compute_capability="8.6", fits=False, reason=why)
    entries = (
        ProfileEntry(name="one", source="/p/one.yaml", origin="shipped", summary="first", cards=(fit, other)),
        ProfileEntry(name="two", source="/p/two.yaml", origin="user", problem="/p/two.yaml:1:1: no mapping"),
        ProfileEntry(name="three", source="/p/3.yaml", origin="user", fits=False, reason="no GPU was found"),
    )
    text = flat(read(ProfilesView(profiles=entries, machine="box", gpus_status="found")))
    assert "fits GPU 0 Tesla V100" in text
    assert "does not fit GPU 1 RTX 3090 (compute capability 8.6): compute capability 8.6" in text
    assert "/p/two.yaml:1:1: no mapping" in text
    assert "does not fit this machine: no GPU was found" in text


def test_a_list_with_and_without_sizes() -> None:
    entry = EnvironmentEntry(name="xin", generation=2, profile="xin", verdict="conforms")
    assert "own" not in read(ListView(home="/h", environments=(entry,)))
    sized = replace(entry, bytes=5_000_000, shared=2_000)
    text = read(ListView(home="/h", environments=(sized, replace(entry, name="b", generation=None))))
    assert "5.0 MB" in text
    assert "2.0 kB" in text
    assert "none" in text
    assert "envforge create" in read(ListView(home="/h", environments=()))


def test_show_names_the_users_and_what_is_outdated() -> None:
    view = ShowView(
        environment="xin",
        prefix="/h/generations/xin/2",
        generation=2,
        verdict="conforms",
        profile="xin",
        built=Maker(by="me", made="2026-11-30T09:16:25Z", machine="box", driver=None, python="3.11.2", engine="uv"),
        python=">=3.11",
        backend="venv",
        outdated=True,
        outdated_why="yes, `/p/xin.yaml` changed: `envforge update xin`",
        used_by=(User(pid=7, user="me", command="python serve.py"),),
    )
    text = flat(read(view))
    assert "built 2026-11-30T09:16:25Z by me on box" in text
    assert "python 3.11.2 (>=3.11), venv" in text
    assert "`envforge update xin`" in text
    assert "7 me python serve.py" in text


def test_history_tells_the_story_of_every_generation() -> None:
    steps = (
        StepRecord(
            name="tool", action="install", snapshot="e/1.1", changes=(samples.REPLACED,), opens=(samples.OPENED,)
        ),
        StepRecord(name="pin", action="pin", snapshot="e/1.2", heals=(("hold-violated", "transformers"),)),
    )
    record = GenerationRecord(number=1, current=True, built=True, verdict="conforms", steps=steps)
    broken = GenerationRecord(number=2, current=False, built=False, verdict="failed at tool", reason="no disk")
    text = flat(read(HistoryView(environment="e", generations=(record, broken))))
    assert "e/1.1 tool install" in text
    assert "because xinference 2.7.0 requires transformers>=5" in text
    assert "heals hold-violated transformers, open since step `tool`" in text
    assert "failed at tool" in text
    assert "no disk" in text
    assert "its folder is gone" in text


def test_a_rollback_says_from_what_to_what() -> None:
    view = Switch(
        environment="e", before=3, after=2, snapshot=None, built=False, seconds=0.01, changes=(samples.REPLACED,)
    )
    text = flat(read(view))
    assert text.startswith("e generation 3 → generation 2")
    assert "transformers" in text
    assert "the same distributions" in read(replace(view, changes=()))
    assert "e is at generation 3 already" in read(replace(view, after=3, changes=()))
    assert "no generation → generation 2" in flat(read(replace(view, before=None)))
    built = replace(view, built=True, snapshot="e/1.1", after=4, seconds=2.0)
    assert "e generation 3 → generation 4, built from e/1.1 in 2.0 s" in flat(read(built))
    failed = replace(built, switched=False, changes=())
    assert "e stays at generation 3; generation 4 is kept to look at" in flat(read(failed))
    assert "e stays at generation 3; nothing was built" in flat(read(replace(failed, after=0)))


@pytest.mark.parametrize(
    ("activation", "lines"),
    [
        (Activation(by_path="conda activate /e/xin", by_name="conda activate xin"), "conda conda activate xin"),
        (
            Activation(by_path="conda activate /e/xin", enable="conda config --append envs_dirs /e"),
            "conda conda activate /e/xin by name after `conda config --append envs_dirs /e`",
        ),
        (
            Activation(by_path="conda activate /e/xin", other="/c/envs/xin"),
            "conda conda activate /e/xin `conda activate xin` takes /c/envs/xin",
        ),
    ],
)
def test_how_conda_activates_it(activation: Activation, lines: str) -> None:
    view = ShowView(environment="xin", prefix="/h/1", generation=1, verdict="conforms", activation=activation)
    assert f"last audit none {lines} in use by" in flat(read(view))


def test_a_diff_shows_builds_of_one_version_apart() -> None:
    before, after = samples.dist("torch", "2.7.1", index="torch"), samples.dist("torch", "2.7.1", index="pypi")
    text = flat(read(DiffView(before="e/1.1", after="e", changes=(Change(name="torch", before=before, after=after),))))
    assert "2.7.1 (torch) → 2.7.1 (pypi)" in text
    assert "no difference" in read(DiffView(before="e/1.1", after="e", changes=()))


def pruned() -> PruneView:
    return PruneView(
        dry_run=True,
        bytes=5_000_012_300,
        removed=(
            Pruned(kind="old", what="demo/1", environment="demo", generation=1, bytes=12_000),
            Pruned(kind="cache", what="six", bytes=300),
            Pruned(kind="cache", what="torch", bytes=5_000_000_000),
        ),
        skipped=(
            Skipped(what="demo/2", why="in use", processes=(User(pid=7, user="me", command="python serve.py"),)),
            Skipped(what="cache", why="it is in use: something is being planned or built"),
        ),
        unrestorable=(
            Unrestorable(snapshot="demo/1.1", distributions=("six==1.0",)),
            Unrestorable(snapshot="demo/1.2", distributions=("six==1.0", "torch==2.0"), built=("torch==2.0",)),
        ),
    )


def test_what_would_be_pruned() -> None:
    text = flat(read(pruned()))
    assert "would remove old generations: 12.0 kB demo/1 (12.0 kB)" in text
    assert "would remove cache: 5.0 GB torch (5.0 GB), six (300 B)" in text
    assert "demo/2 stays: in use by process 7 of me (python serve.py); --in-use removes it all the same" in text
    assert "cache stays: it is in use" in text
    assert "could then no longer be restored offline demo/1.2: six==1.0, torch==2.0 built here" in text
    assert text.endswith("would free 5.0 GB")
    assert "demo/1.1" in read(pruned(), verbose=True)
    done = flat(read(replace(pruned(), dry_run=False)))
    assert "removed old generations" in done
    assert done.endswith("5.0 GB freed")
    assert read(PruneView(dry_run=False, bytes=0)) == "nothing to remove\n"


def test_a_diff_tells_files_by_whose_they_are() -> None:
    many = tuple(FileChange(path=f"lib/{number}", kind="added", owners=("torch",)) for number in range(7))
    lone = FileChange(path="bin/x", kind="unknown")
    value = DiffView(before="e/1.1", after="e", changes=(), files=(lone, *many))
    text = read(value)
    assert "no difference" not in text
    assert "files: 7 added, 1 unknown" in text
    assert text.index("torch: 7 added") < text.index("of no distribution: 1 unknown")
    assert "+ lib/4" in text
    assert "lib/5" not in text
    assert "2 more" in text
    assert "? bin/x" in text
    assert "+ lib/6" in read(value, verbose=True)
    assert "files: no difference" in read(DiffView(before="e/1.1", after="e", changes=(), files=()))


def test_a_seal_says_what_it_closed_and_what_others_share() -> None:
    value = Sealed(
        environment="e", generation=2, sealed=True, changed=True, files=1200, folders=30, shared=1100, seconds=0.4
    )
    text = flat(read(value))
    assert "e generation 2 is sealed: 1,200 files and 30 folders are read-only now, 0.4 s" in text
    assert "1,100 files that the cache or other environments hold, too, cannot be written there either" in text
    text = flat(read(replace(value, sealed=False, shared=1)))
    assert "e generation 2 is open: 1,200 files and 30 folders are writable now" in text
    assert "1 file that the cache or other environments hold, too, stays read-only" in text
    assert "hold, too" not in read(replace(value, shared=0))
    assert flat(read(replace(value, changed=False))) == "e generation 2 is sealed already: nothing changed"


def test_an_audit_groups_findings_by_what_to_do_about_them() -> None:
    def found(subject: str, remedy: str | None, severity: Severity = Severity.ERROR) -> Finding:
        return Finding(id="file-missing", severity=severity, subject=subject, message="gone", remedy=remedy)

    value = Audit(
        environment="e",
        profile="e",
        generation=1,
        deep=False,
        checked=Checked(distributions=1, files=2, bytes=0, seconds=0.1),
    )
    findings = (found("a", "mend it", Severity.WARNING), found("b", "repair"), found("c", "repair"), found("d", None))
    text = render(Result(command="audit", data=value, findings=findings))
    assert text.index("2 errors: repair") < text.index("  error file-missing b") < text.index("\nerror file-missing d")
    assert text.index("error file-missing d") < text.index("1 warning: mend it\n  warning file-missing a")


def test_a_bundle_says_what_it_needs_there_and_how_it_is_started() -> None:
    view = BundleView(
        environment="demo", snapshot="demo/1.2", written=("d.tar.001", "d.tar.002", "d.tar.003"), bytes=4_200_000_000,
        sha256="0" * 64, wheels=12, built=1, packages=0, models=0, python="3.10.13", python_from="host",
        architecture="x86_64", glibc="2.28", program_python="3.11", lost=(),
    )  # fmt: skip
    text = render(Result(command="bundle", data=view), width=200)
    assert "demo/1.2: 12 wheels, 1 of them built here, 4.2 GB, in d.tar.001 to d.tar.003" in text
    assert "Linux on x86_64 with glibc 2.28 or newer, and a Python 3.10 for the environment, and a Python 3.11" in text
    assert "there   sh d.tar.001\n" in text
    plain = replace(view, written=("d.tar",), built=0, python="3.11.7", glibc=None)
    text = render(Result(command="bundle", data=plain), width=200)
    assert "demo/1.2: 12 wheels, 4.2 GB, in d.tar\n" in text
    assert "needs   Linux on x86_64, and a Python 3.11\n" in text
    conda = replace(plain, wheels=2, packages=90, python_from="bundle")
    text = render(Result(command="bundle", data=conda), width=200)
    assert "demo/1.2: 90 conda packages and 2 wheels, 4.2 GB, in d.tar\n" in text
    assert "needs   Linux on x86_64, and a Python 3.11 for envforge itself\n" in text
    text = render(Result(command="bundle", data=replace(conda, wheels=0, packages=1)), width=200)
    assert "demo/1.2: 1 conda package, 4.2 GB" in text
