"""A plan and a build as a small profile would give them: one step opens a hold, a later one heals it."""

from __future__ import annotations

from envforge.model.finding import Finding, Severity
from envforge.model.plan import Because, Change, GuardVerdict, Plan, StepPlan, Verdict
from envforge.model.profile import Action, Profile, Smoke, SmokeKind, Step
from envforge.model.progress import StepDone
from envforge.model.result import Build
from envforge.model.smoked import SmokeResult
from envforge.model.state import Distribution

MEGA = 1_000_000


def dist(name: str, version: str, *, index: str = "pypi", size: int = MEGA) -> Distribution:
    return Distribution(name=name, version=version, index=index, size=size, file=f"{name}-{version}-py3-none-any.whl")


OPENED = Finding(
    id="hold-violated",
    severity=Severity.ERROR,
    subject="transformers",
    step="tool",
    message="`transformers` 5.1.0 violates hold transformers<5",
    evidence={"cause": "xinference 2.7.0 requires transformers>=5", "came_with": "tool"},
    remedy="add `constrain: true` to the hold",
)

BASE = (
    Change(
        name="transformers",
        before=None,
        after=dist("transformers", "4.57.6", size=12 * MEGA),
        because=Because(requirement="transformers>=4.53"),
    ),
    *(
        Change(
            name=f"helper-{number}",
            before=None,
            after=dist(f"helper-{number}", "1.0"),
            because=Because(requirement="helper", distribution="transformers", version="4.57.6"),
        )
        for number in range(12)
    ),
)
REPLACED = Change(
    name="transformers",
    before=dist("transformers", "4.57.6"),
    after=dist("transformers", "5.1.0"),
    because=Because(
        requirement="transformers>=5", distribution="xinference", version="2.7.0", via=("tool", "xinference")
    ),
)
HEALING = Change(
    name="transformers",
    before=dist("transformers", "5.1.0"),
    after=dist("transformers", "4.57.6"),
    because=Because(requirement="transformers<5"),
)

STEPS = (
    Step(name="base", action=Action.INSTALL, arguments=("transformers>=4.53",)),
    Step(name="tool", action=Action.INSTALL, arguments=("xinference[all]",)),
    Step(name="pin", action=Action.PIN, arguments=("transformers<5",)),
)
PROFILE = Profile(
    name="small",
    source="/profiles/small.yaml",
    text="name: small\n",
    summary="one install undoes another",
    python="3.11",
    steps=STEPS,
    smoke=(Smoke(kind=SmokeKind.IMPORT, arguments=("transformers",), name="import transformers"),),
    commands={"serve": ("python", "-m", "http.server")},
)


def plan(*, healed: bool = True) -> Plan:
    steps = [
        StepPlan(step=STEPS[0], changes=BASE, state={}, seconds=0.51),
        StepPlan(step=STEPS[1], changes=(REPLACED,), state={}, opens=(OPENED,), builds=("old-1.0.tar.gz",)),
    ]
    if healed:
        steps.append(StepPlan(step=STEPS[2], changes=(HEALING,), state={}, heals=(OPENED,)))
    verdict = GuardVerdict(
        guard="hold transformers<5",
        verdict=Verdict.HOLDS if healed else Verdict.OPEN,
        because="the server calls a method that 5 lacks",
        opened="tool",
        healed="pin" if healed else None,
    )
    unknown = GuardVerdict(guard="symbol f in libf.so", verdict=Verdict.UNKNOWN)
    return Plan(
        profile=PROFILE,
        steps=tuple(steps),
        findings=() if healed else (OPENED,),
        verdicts=(verdict, unknown, GuardVerdict(guard="one CUDA major", verdict=Verdict.HOLDS)),
        download=55 * MEGA,
        disk=180 * MEGA,
        free=25_000 * MEGA,
        python="/usr/bin/python3.11",
        python_version="3.11.7",
    )


def build() -> Build:
    made = plan()
    return Build(
        plan=made,
        environment="small",
        generation=1,
        prefix="/home/generations/small/1",
        switched=True,
        continued=None,
        steps=tuple(
            StepDone(
                name=step.step.name,
                action=step.step.action.value,
                position=position,
                count=3,
                seconds=1.25,
                changes=step.changes,
                opens=step.opens,
                heals=step.heals,
            )
            for position, step in enumerate(made.steps, start=1)
        ),
        smoke=(SmokeResult(smoke=PROFILE.smoke[0], ok=True, ending="exit status 0", tail="", seconds=0.4),),
        differs=(),
        files=1234,
        bytes=180 * MEGA,
        seconds=42.0,
    )
