from __future__ import annotations

from dataclasses import replace

from report import samples

from envforge.model.profile import Device, Generate, Generator, Smoke, SmokeKind
from envforge.model.result import Result
from envforge.model.smoked import Beside, Compared, Generated, Proved, SmokeResult, SmokeView
from envforge.report.console import render

ASKED = Generate(engine=Generator.VLLM, model="/models/small", prompt="once upon a time", dtype="float16")
SMOKE = Smoke(kind=SmokeKind.GENERATE, arguments=(), name="it speaks", device=Device.CUDA, generate=ASKED)
OLD = Generated(
    text="there was\nlight",
    tokens=32,
    seconds=0.8,
    load_seconds=12.0,
    attention="Flash Attention",
    memory=13_400_000_000,
    device="Tesla V100",
    versions={"vllm": "0.10.0"},
)
NEW = replace(OLD, seconds=1.0, attention=None)
PASSED = SmokeResult(smoke=SMOKE, ok=True, ending="exit status 0", tail="", seconds=15.0, generated=OLD)
SKIPPED = SmokeResult(smoke=SMOKE, ok=False, ending="skipped", tail="", seconds=0.0, skipped="no GPU was found")


def read(view: SmokeView, *, verbose: bool = False) -> str:
    return render(Result(command="smoke", data=view), verbose=verbose)


def proved(name: str, *checks: SmokeResult) -> Proved:
    return Proved(environment=name, generation=2, profile=name, cards=("GPU 1 Tesla V100",), checks=checks)


def test_one_environment_with_what_it_generated() -> None:
    text = read(SmokeView(environments=(proved("old", PASSED, SKIPPED),)))
    assert "old generation 2 on GPU 1 Tesla V100" in text
    assert "✓ smoke it speaks: exit status 0 in 15 s" in text
    assert "40.0 tokens/s, attention Flash Attention, 13.4 GB on Tesla V100, loaded in 12 s" in text
    assert "there was light" in text
    assert "! smoke it speaks: skipped, no GPU was found" in text


def test_several_stand_side_by_side() -> None:
    answers = (
        Beside(environment="old", engine="vllm", generated=OLD),
        Beside(environment="new", engine="vllm", generated=NEW),
    )
    compared = Compared(model=ASKED.model, prompt=ASKED.prompt, equal=True, answers=answers)
    text = read(SmokeView(environments=(proved("old", PASSED), proved("new", PASSED)), compared=(compared,)))
    rows = [line.split("  ") for line in text.splitlines() if line.startswith(("old  ", "new  "))]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["old", "vllm", "40.0", "Flash Attention", "13.4 GB", "Tesla V100"],
        ["new", "vllm", "32.0 (-20 %)", "not told", "13.4 GB", "Tesla V100"],
    ]
    assert "✓ the same text" in text
    other = read(SmokeView(environments=(), compared=(replace(compared, equal=False),)))
    assert "≠ not the same text" in other


def test_a_build_counts_what_was_skipped_with_nothing_that_passed() -> None:
    built = replace(samples.build(), smoke=(PASSED, SKIPPED))
    text = render(Result(command="create", data=built))
    assert "✓ 1 smoke check passed" in text
    assert "! smoke it speaks: skipped, no GPU was found" in text
    alone = render(Result(command="create", data=replace(built, smoke=(SKIPPED,))))
    assert "passed" not in alone
    broken = replace(PASSED, ok=False, ending="killed by SIGSEGV")
    failed = render(Result(command="create", data=replace(built, smoke=(PASSED, SKIPPED, broken))))
    assert "✗ 1 of 3 smoke checks failed" in failed


def test_a_plan_shows_what_will_be_asked_to_who_wants_it() -> None:
    plan = samples.plan()
    plan = replace(plan, profile=replace(plan.profile, smoke=(SMOKE,)))
    text = render(Result(command="plan", data=plan), verbose=True)
    assert "/models/small, float16: once upon a time" in text
