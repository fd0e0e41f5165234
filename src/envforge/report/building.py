"""A plan and a build on the screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from rich.console import RenderableType
from rich.text import Text

from envforge.model.drift import Switch
from envforge.model.finding import Severity
from envforge.model.plan import GuardVerdict, Plan, StepPlan, Verdict
from envforge.model.profile import Action, Guard, Hold, Keep, Profile, SmokeKind
from envforge.model.result import Build
from envforge.model.views import needs

from . import page, proving, words
from .story import Chapter, chapters, scenes

_ARGUMENTS_SHOWN = 6
_KEPT_SHOWN = 4
_HOLDS = "holds"


def plan(value: Plan, *, verbose: bool) -> list[RenderableType]:
    """Step by step what changes, then the verdict of every guard, then what it costs."""
    story = chapters(scenes(value.steps))
    lines = [*_heading(value, verbose=verbose), page.blank()]
    if value.founded:
        lines += [Text("base", style="bold"), *page.changes(value.founded, verbose=verbose), page.blank()]
    for position, step in enumerate(value.steps, start=1):
        lines += [*_step(step, position, story, verbose=verbose), page.blank()]
    lines += [*_verdicts(value), page.blank()]
    lines += _smoke(value.profile, verbose=verbose)
    lines += [Text(f"note: {note}", style="yellow") for note in value.notes]
    lines += [Text(f"`{index}` is substituted: {loss}", style="yellow") for index, loss in sorted(value.lost.items())]
    lines += [_cost(value), _conclusion(value, story)]
    if value.lost:
        lines.append(
            Text("whether the substitutes have code for your GPU and its driver is not judged", style="yellow")
        )
    return lines


def build(value: Build, *, verbose: bool, program: str = "envforge") -> list[RenderableType]:
    """What now stands where, what happened on the way, and how to use it (``program``: what is typed for that)."""
    if not value.generation:
        return [*plan(value.plan, verbose=verbose), Text("nothing was built", style="bold red")]
    story = chapters(scenes(value.steps))
    state = Text.assemble((f"{value.environment}", "bold"), f" generation {value.generation}")
    if value.continued:
        state.append(f", taken up again after step `{value.continued}`", style="dim")
    lines: list[RenderableType] = [state]
    for chapter in story if verbose else ():
        lines += page.told(chapter)
    healed = sum(1 for chapter in story if chapter.healed)
    if healed and not verbose:
        all_of_them = "healed" if healed == 1 else "all healed"
        lines.append(page.bullet("✓", "green", f"{words.count(healed, 'finding')} opened on the way, {all_of_them}"))
    lines += proving.checks(value.smoke) if verbose else proving.tally(value.smoke)
    lines += [page.bullet("≠", "yellow", f"differs from the plan: {text}") for text in value.differs]
    lines.append(
        page.pairs(
            [
                ("holds", f"{words.count(value.files, 'file')}, {words.size(value.bytes)}"),
                ("took", words.seconds(value.seconds)),
                ("path", value.prefix),
                *page.activation(value.activation, value.environment),
            ]
        )
    )
    lines.append(_ending(value, program))
    return lines


def switch(value: Switch, *, verbose: bool) -> list[RenderableType]:
    """From which generation to which, and what that changes."""
    before = f"generation {value.before}" if value.before is not None else "no generation"
    if not value.switched:
        stays = f"{value.environment} stays at {before}" if value.before is not None else "nothing is in use"
        kept = f"; generation {value.after} is kept to look at" if value.after else "; nothing was built"
        return [Text(stays + kept, style="bold red")]
    if value.before == value.after:
        return [Text(f"{value.environment} is at generation {value.after} already", style="green")]
    head = Text.assemble((value.environment, "bold"), f" {before} → ", (f"generation {value.after}", "bold"))
    if value.built:
        head.append(f", built from {value.snapshot} in {words.seconds(value.seconds)}", style="dim")
    return [head, *(page.changes(value.changes, verbose=verbose) or [Text("the same distributions", style="dim")])]


def _ending(value: Build, program: str) -> RenderableType:
    if not value.switched:
        stays = (
            "nothing is in use yet" if value.in_use is None else f"not in use: generation {value.in_use} stays in place"
        )
        return Text(f"{stays}; generation {value.generation} is kept to look at", style="bold red")
    command = next(iter(value.plan.profile.commands), "python")
    return Text.assemble(("ready: ", "bold green"), f"{program} run {value.environment} {command}")


def _heading(value: Plan, *, verbose: bool) -> list[RenderableType]:
    """One heading. Where the profile lies was told when it was found."""
    profile = value.profile
    facts = [words.python(value.python_version, profile.python), profile.backend.value, needs(profile.gpu)]
    if value.python is None:
        facts[0] += ", which is not on this machine"
    facts += [f"fits {', '.join(value.cards)}"] if value.cards else []
    lines: list[RenderableType] = [
        Text.assemble(
            (profile.name, "bold"),
            f": {profile.summary}" if profile.summary else "",
            (f" · {' · '.join(facts)}", "dim"),
        )
    ]
    if verbose:
        lines += [Text(f"profile {profile.source}", style="dim"), Text(f"Python {value.python or 'none'}", style="dim")]
    return lines


def _smoke(profile: Profile, *, verbose: bool) -> list[RenderableType]:
    """Every check by name; with ``verbose`` also the code that is run."""
    if not profile.smoke:
        return []
    if not verbose:
        return [page.bullet("·", "dim", f"then smoke checks: {'; '.join(smoke.name for smoke in profile.smoke)}")]
    lines: list[RenderableType] = [Text("then smoke checks", style="bold")]
    for smoke in profile.smoke:
        lines.append(page.indent(Text(smoke.name)))
        if smoke.kind is SmokeKind.PYTHON:
            lines += [page.indent(Text(line, style="dim"), 4) for line in smoke.arguments[0].splitlines()]
        if smoke.generate is not None:
            asked = smoke.generate
            lines.append(page.indent(Text(f"{asked.model}, {asked.dtype}: {asked.prompt}", style="dim"), 4))
    return [*lines, page.blank()]


def _builds(step: StepPlan) -> list[RenderableType]:
    """Whose code has run to learn its metadata, and whose runs when the step is done."""
    later = [file for file in step.builds if _sdist_name(file) in step.step.no_build_isolation]
    ran = [file for file in step.builds if file not in later]
    lines: list[RenderableType] = []
    if ran:
        text = f"to plan this, code of {words.count(len(ran), 'sdist')} has been run already: {', '.join(ran)}"
        lines.append(page.bullet("!", "yellow", text))
    if later:
        text = f"the step itself will run code of {words.count(len(later), 'sdist')}: {', '.join(later)}"
        lines.append(page.bullet("!", "yellow", text))
    return lines


def _sdist_name(file: str) -> str:
    """The canonical name of the distribution in ``name-version.tar.gz``."""
    return _canonical(file.rpartition("-")[0])


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


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
    body += _builds(step)
    body += [page.bullet("·", "dim", note) for note in step.notes]
    for chapter in story:
        if chapter.opened == step.step.name:
            body += page.opened(chapter, brief=True)
    body += [page.healed(chapter) for chapter in story if chapter.healed == step.step.name]
    return [head, *(page.indent(item) for item in body)]


def _verdicts(value: Plan) -> list[RenderableType]:
    """Why a guard opened is told where it does."""
    lines: list[RenderableType] = [Text("guards", style="bold")] if value.verdicts else []
    watched = {text: found for guard in value.profile.guards for text, found in _watched(guard, value)}
    for verdict in value.verdicts:
        sign, style, text = _verdict(verdict)
        versions = watched.get(verdict.guard)
        if versions is None:
            line = Text.assemble((verdict.guard, "bold"), " ", (text, style))
        else:
            said = "" if text == _HOLDS else f", {text}"
            line = Text.assemble((verdict.guard, "bold"), f": {versions}", (said, style))
        if verdict.because and not verdict.opened:
            line.append(f" ({verdict.because})", style="dim")
        lines.append(page.indent(page.bullet(sign, style, line)))
    return lines


def _watched(guard: Guard, value: Plan) -> Iterator[tuple[str, str]]:
    """The guard as verdicts name it, and the versions at the end of what it watches."""
    end = value.steps[-1].state if value.steps else value.base
    if isinstance(guard, Hold):
        name = _canonical(re.split(r"[^A-Za-z0-9._-]", guard.requirement.strip(), maxsplit=1)[0])
        found = end.get(name)
        yield f"hold {guard.requirement}", found.version if found else "not installed"
    elif isinstance(guard, Keep):
        names = sorted(name for name in end if any(fnmatchcase(name, pattern) for pattern in guard.names))
        several = [f"{name} {end[name].version}" for name in names] if names != list(guard.names) else []
        versions = several or [end[name].version for name in names]
        yield f"keep {', '.join(guard.names)}", words.cut(versions, _KEPT_SHOWN) or "not installed"


def _verdict(verdict: GuardVerdict) -> tuple[str, str, str]:
    if verdict.verdict is Verdict.OPEN:
        since = f" since step `{verdict.opened}`" if verdict.opened else ""
        return "✗", "bold red", f"ends open{since}"
    if verdict.verdict is Verdict.UNKNOWN:
        return "?", "yellow", "unknown"
    if verdict.opened:
        return "✓", "green", f"holds at the end: opened by step `{verdict.opened}`, healed by step `{verdict.healed}`"
    return "✓", "green", _HOLDS


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
