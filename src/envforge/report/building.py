"""A plan and a build on the screen."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from envforge.model.finding import Severity
from envforge.model.plan import GuardVerdict, Plan, StepPlan, Verdict
from envforge.model.profile import Action
from envforge.model.result import Build
from envforge.model.views import needs

from . import page, words
from .story import Chapter, chapters, scenes

_ARGUMENTS_SHOWN = 6


def plan(value: Plan, *, verbose: bool) -> list[RenderableType]:
    """Step by step what changes, then the verdict of every guard, then what it costs."""
    story = chapters(scenes(value.steps))
    lines = [*_heading(value), page.blank()]
    for position, step in enumerate(value.steps, start=1):
        lines += [*_step(step, position, story, verbose=verbose), page.blank()]
    lines += [*_verdicts(value.verdicts), page.blank()]
    lines += [page.indent(Text(f"smoke check {smoke.name}", style="dim")) for smoke in value.profile.smoke if verbose]
    lines += [Text(f"note: {note}", style="yellow") for note in value.notes]
    lines += [Text(f"`{index}` is substituted: {loss}", style="yellow") for index, loss in sorted(value.lost.items())]
    lines += [_cost(value), _conclusion(value, story)]
    return lines


def build(value: Build, *, verbose: bool) -> list[RenderableType]:
    """What now stands where, what happened on the way, and how to use it."""
    if not value.generation:
        return [*plan(value.plan, verbose=verbose), Text("nothing was built", style="bold red")]
    story = chapters(scenes(value.steps))
    state = Text.assemble((f"{value.environment}", "bold"), f" generation {value.generation}")
    if value.continued:
        state.append(f", taken up again after step `{value.continued}`", style="dim")
    lines: list[RenderableType] = [state]
    for chapter in story:
        lines += page.told(chapter)
    lines += [
        page.bullet(
            "✓" if result.ok else "✗",
            "green" if result.ok else "bold red",
            f"smoke {result.smoke.name}: {result.ending} in {words.seconds(result.seconds)}",
        )
        for result in value.smoke
        if verbose or not result.ok
    ]
    passed = sum(1 for result in value.smoke if result.ok)
    if passed and not verbose:
        lines.append(page.bullet("✓", "green", f"{words.count(passed, 'smoke check')} passed"))
    lines += [page.bullet("≠", "yellow", f"differs from the plan: {text}") for text in value.differs]
    lines.append(
        page.pairs(
            [
                ("holds", f"{words.count(value.files, 'file')}, {words.size(value.bytes)}"),
                ("took", words.seconds(value.seconds)),
                ("path", value.prefix),
            ]
        )
    )
    lines.append(_ending(value))
    return lines


def _ending(value: Build) -> RenderableType:
    if not value.switched:
        return Text("not in use: the environment stays as it was, this generation is kept to look at", style="bold red")
    command = next(iter(value.plan.profile.commands), "python")
    return Text.assemble(("ready: ", "bold green"), f"envforge run {value.environment} {command}")


def _heading(value: Plan) -> list[RenderableType]:
    profile = value.profile
    title = Text.assemble((profile.name, "bold"), f": {profile.summary}" if profile.summary else "")
    where = value.python or "not on this machine"
    facts = [f"Python {profile.python} ({where})", profile.backend.value, needs(profile.gpu)]
    return [
        title,
        Text(f"profile {profile.source}", style="dim"),
        Text(" · ".join(fact for fact in facts if fact), style="dim"),
    ]


def _step(step: StepPlan, position: int, story: tuple[Chapter, ...], *, verbose: bool) -> list[RenderableType]:
    asked = list(step.step.arguments)
    text = (
        " ".join(asked)
        if step.step.action is Action.RUN
        else words.cut(asked, len(asked) if verbose else _ARGUMENTS_SHOWN)
    )
    head = Text.assemble(
        (f"{position} {step.step.name}", "bold"), (f"  {step.step.action.value} ", "cyan"), (text, "dim")
    )
    if step.assumed:
        head.append("  assumed: a `run` step before it may change what it starts from", style="yellow")
    body: list[RenderableType] = list(page.changes(step.changes, verbose=verbose))
    if step.step.action is Action.RUN:
        body.append(Text("shown, not run: what it changes is not known before", style="yellow"))
    elif not body:
        body.append(Text("nothing changes", style="dim"))
    body += [page.bullet("!", "yellow", f"runs code of {file} to build it") for file in step.builds]
    body += [page.bullet("·", "dim", note) for note in step.notes]
    for chapter in story:
        if chapter.opened == step.step.name:
            body += page.opened(chapter)
    body += [page.healed(chapter) for chapter in story if chapter.healed == step.step.name]
    return [head, *(page.indent(item) for item in body)]


def _verdicts(verdicts: tuple[GuardVerdict, ...]) -> list[RenderableType]:
    lines: list[RenderableType] = [Text("guards", style="bold")] if verdicts else []
    for verdict in verdicts:
        sign, style, text = _verdict(verdict)
        line = Text.assemble((verdict.guard, "bold"), " ", (text, style))
        if verdict.because:
            line.append(f", because {verdict.because}" if verdict.opened else f" ({verdict.because})", style="dim")
        lines.append(page.indent(page.bullet(sign, style, line)))
    return lines


def _verdict(verdict: GuardVerdict) -> tuple[str, str, str]:
    if verdict.verdict is Verdict.OPEN:
        since = f" since step `{verdict.opened}`" if verdict.opened else ""
        return "✗", "bold red", f"ends open{since}"
    if verdict.verdict is Verdict.UNKNOWN:
        return "?", "yellow", "unknown"
    if verdict.opened:
        return "✓", "green", f"holds at the end: opened by step `{verdict.opened}`, healed by step `{verdict.healed}`"
    return "✓", "green", "holds"


def _cost(value: Plan) -> RenderableType:
    tight = value.disk > value.free
    return Text.assemble(
        f"download {words.size(value.download)} · disk {words.size(value.disk)} of ",
        (f"{words.size(value.free)} free", "bold red" if tight else ""),
    )


def _conclusion(value: Plan, story: tuple[Chapter, ...]) -> RenderableType:
    left = [finding for finding in value.findings if finding.severity is Severity.ERROR]
    if left:
        return Text(f"ends with {words.count(len(left), 'open finding')}: `create` refuses it", style="bold red")
    on_the_way = sum(1 for chapter in story if chapter.healed)
    if on_the_way:
        verb = "opens on the way and is" if on_the_way == 1 else "open on the way and are"
        return Text(
            f"everything holds at the end; {words.count(on_the_way, 'finding')} {verb} healed", style="bold green"
        )
    return Text("everything holds at the end", style="bold green")
