"""The looking commands on the screen: profiles, machine, list, show, path, history, diff, seal, remove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from envforge.model.machine import Machine, Slice
from envforge.model.views import (
    Audited,
    DiffView,
    EnvironmentEntry,
    FileChange,
    GenerationRecord,
    HistoryView,
    ListView,
    ProfileEntry,
    ProfilesView,
    RemoveView,
    Sealed,
    ShowView,
    StepRecord,
)

from . import page, words
from .story import Chapter, chapters, scenes

_GIB = 1024**3
_SNAPSHOTS_SHOWN = 8
_ADDITIONS_LISTED = 40
_NO_STEPS = frozenset({"adopt", "accept"})  # their name says what was done
_FILES_SHOWN = 5


def profiles(value: ProfilesView, *, verbose: bool) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for entry in value.profiles:
        lines += _profile(entry, verbose=verbose)
    if not value.profiles:
        lines.append(Text("no profiles: put one into `./profiles/`"))
    if value.gpus_status != "found":
        lines.append(Text(f"GPUs of `{value.machine}`: {value.gpus_status}", style="dim"))
    return lines


def _profile(entry: ProfileEntry, *, verbose: bool) -> list[RenderableType]:
    title = Text.assemble((entry.name, "bold"), f": {entry.summary}" if entry.summary else "")
    lines: list[RenderableType] = [title]
    if entry.problem:
        return [*lines, page.indent(Text(entry.problem, style="red"))]
    facts = f"{entry.origin}, {entry.source}" if verbose or entry.origin != "shipped" else entry.origin
    lines.append(page.indent(Text(f"{facts} · {entry.needs or 'any machine'}", style="dim")))
    for fit in entry.cards:
        label = f"GPU {fit.index} {fit.card} (compute capability {fit.compute_capability})"
        lines.append(page.indent(_fit(label, fits=fit.fits, reason=fit.reason)))
    if not entry.cards or (not entry.fits and entry.reason):
        lines.append(page.indent(_fit("this machine", fits=entry.fits, reason=entry.reason)))
    return lines


def _fit(label: str, *, fits: bool, reason: str | None) -> RenderableType:
    if fits:
        return page.bullet("✓", "green", f"fits {label}")
    return page.bullet("✗", "yellow", f"does not fit {label}: {reason or 'unknown reason'}")


def machine(value: Machine, *, verbose: bool) -> list[RenderableType]:
    lines: list[RenderableType] = [
        page.pairs(
            [
                ("host", value.hostname),
                ("system", f"{value.system} {value.architecture}"),
                ("glibc", value.glibc or "none: another C library"),
                ("driver", value.driver or "none"),
                ("CUDA", f"up to {value.cuda}" if value.cuda else "none"),
                ("disk", f"{words.size(value.disk_free)} free at the home"),
                ("GPUs", str(len(value.gpus)) if value.gpus else value.gpus_status),
            ]
        )
    ]
    for card in value.gpus:
        text = Text.assemble(
            (f"{card.index} {card.name}", "bold"),
            f"  compute capability {card.compute_capability}, {card.memory / _GIB:.1f} GiB",
            ", MIG" if card.mig else "",
            (f"  {card.uuid}", "dim") if verbose else "",
        )
        lines.append(page.indent(text))
        lines += [page.indent(page.indent(_part(part, verbose=verbose))) for part in card.slices]
    if len(value.asked) > 1:
        lines += [page.indent(Text(f"{each.who}: {each.status}", style="dim")) for each in value.asked]
    if value.toolkits:
        lines.append(Text("CUDA toolkits", style="bold"))
    for kit in value.toolkits:
        lines.append(page.indent(Text(f"{kit.version or 'version unknown'}  {kit.path}  ({kit.how})")))
    if value.proxies:
        lines.append(Text("proxies", style="bold"))
    lines += [page.indent(Text(f"${each.variable}  {each.url}")) for each in value.proxies]
    lines.append(Text("Pythons", style="bold"))
    lines += [page.indent(Text(f"{one.version}  {one.path}  ({one.how})")) for one in value.pythons]
    if not value.pythons:
        lines.append(page.indent(Text("none found", style="yellow")))
    if value.ambient or value.user_site:
        lines.append(Text("configuration of this host that envforge keeps out of a build", style="bold"))
    for ambient in value.ambient:
        names = f": {', '.join(ambient.settings)}" if ambient.settings else ""
        lines.append(page.indent(Text(f"{ambient.tool}  {ambient.source}{names}")))
    if value.user_site:
        lines.append(page.indent(Text(f"python  {value.user_site} (user site)")))
    return lines


def _part(part: Slice, *, verbose: bool) -> Text:
    facts = f"MIG {part.profile or 'part'}, {part.memory / _GIB:.1f} GiB"
    return Text.assemble(facts, (f"  {part.uuid}", "dim") if verbose else "")


def listing(value: ListView, *, verbose: bool) -> list[RenderableType]:
    if not value.environments:
        return [Text(f"no environments in {value.home}: `envforge create quickstart` makes a first one")]
    headings = ["environment", "generation", "profile", "verdict"]
    sized = any(entry.bytes is not None for entry in value.environments)
    if sized:
        headings += ["own", "shared"]
    lines: list[RenderableType] = [page.table(headings, [_entry(entry, sized=sized) for entry in value.environments])]
    return [*lines, Text(value.home, style="dim")] if verbose else lines


def _entry(entry: EnvironmentEntry, *, sized: bool) -> list[str | Text]:
    row: list[str | Text] = [
        Text(entry.name, style="bold"),
        str(entry.generation) if entry.generation is not None else "none",
        entry.profile or "unknown",
        _verdict(entry.verdict),
    ]
    if sized:
        row += [words.size(number) if number is not None else "" for number in (entry.bytes, entry.shared)]
    return row


def _verdict(text: str) -> Text:
    return Text(text, style="green" if text == "conforms" else "yellow")


def show(value: ShowView, *, verbose: bool) -> list[RenderableType]:
    built = value.built
    rows: list[tuple[str, str | Text | None]] = [
        ("environment", Text(value.environment, style="bold")),
        ("generation", str(value.generation) if value.generation is not None else "none in use"),
        ("path", value.prefix),
        ("verdict", _verdict(value.verdict)),
        ("profile", f"{value.profile}: {value.summary}" if value.summary else value.profile),
        ("from", value.source),
        ("outdated", _outdated(value)),
        ("for", value.card),
        ("python", _python(value)),
        ("adopted" if value.adopted else "built", f"{built.made} by {built.by} on {built.machine}" if built else None),
        ("with", f"{built.engine}, driver {built.driver or 'none'}" if built and not value.adopted else None),
        ("holds", words.count(value.distributions, "distribution") if value.distributions else None),
        ("steps", ", ".join(value.steps) or None),
        ("smoke", value.smoke),
        ("last audit", _audited(value.audited)),
        (
            "restorable",
            None if value.restorable is None else ("yes" if value.restorable else "no lock holds what it is"),
        ),
        ("sealed", None if value.sealed is None else ("yes" if value.sealed else "no")),
        ("commands", ", ".join(value.commands) or None),
        *page.activation(value.activation, value.environment),
        ("generations", ", ".join(str(number) for number in value.generations) or None),
        ("snapshots", words.cut(value.snapshots, len(value.snapshots) if verbose else _SNAPSHOTS_SHOWN) or None),
        ("in use by", None if value.used_by else "no process"),
    ]
    lines: list[RenderableType] = [page.pairs(rows)]
    lines += [page.bullet("✗", "red", problem) for problem in value.problems]
    if value.used_by:
        lines.append(Text("in use by", style="dim"))
    lines += [page.indent(Text(f"{user.pid}  {user.user}  {user.command}")) for user in value.used_by]
    return lines


def _audited(value: Audited | None) -> str | None:
    if value is None:
        return "none"
    counts = [(value.errors, "error"), (value.warnings, "warning")]
    found = ", ".join(words.count(number, what) for number, what in counts if number) or "nothing wrong"
    return f"{value.at}{', every file hashed' if value.deep else ''}: {found}"


def _python(value: ShowView) -> str | None:
    if value.python is None:
        return value.built.python if value.built else None
    taken = words.python(value.built.python if value.built else None, value.python).removeprefix("Python ")
    return f"{taken}, {value.backend}" if value.backend else taken


def _outdated(value: ShowView) -> str | Text | None:
    if value.outdated is None:
        return f"unknown: {value.outdated_why}" if value.outdated_why else None
    if not value.outdated:
        return "no"
    return Text(value.outdated_why or f"yes: `envforge update {value.environment}`", style="yellow")


def history(value: HistoryView, *, verbose: bool) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for record in value.generations:
        lines += [*_generation(value.environment, record, verbose=verbose), page.blank()]
    return lines[:-1]


def _generation(environment: str, record: GenerationRecord, *, verbose: bool) -> list[RenderableType]:
    head = Text.assemble(
        (f"{environment} generation {record.number}", "bold"),
        (" in use" if record.current else "", "green"),
        "  ",
        _verdict(record.verdict),
        (f"  {record.started}" if record.started else "", "dim"),
        ("" if record.built else "  its folder is gone", "dim"),
    )
    lines: list[RenderableType] = [head]
    if record.problem:
        lines.append(page.indent(Text(record.problem, style="red")))
    if record.reason:
        lines.append(page.indent(Text(record.reason, style="red")))
    story = chapters(scenes(record.steps))
    for step in record.steps:
        lines += _step(step, story, verbose=verbose)
    return lines


def _step(step: StepRecord, story: tuple[Chapter, ...], *, verbose: bool) -> list[RenderableType]:
    head = Text.assemble(
        (step.snapshot or "no snapshot", "cyan"),
        (f" {step.name}", "bold"),
        (f"{'' if step.action in _NO_STEPS else f'  {step.action}'} in {words.seconds(step.seconds)}", "dim"),
    )
    body = page.changes(step.changes, verbose=verbose)
    if step.files:
        body.append(page.bullet("~", "yellow", f"{words.count(step.files, 'other file')} not as before"))
    body = body or [Text("nothing changed", style="dim")]
    for chapter in story:
        if chapter.opened == step.name:
            body += page.opened(chapter)
    body += [page.healed(chapter) for chapter in story if chapter.healed == step.name]
    body += [page.bullet("≠", "yellow", f"differs from the plan: {text}") for text in step.differs]
    return [page.indent(head), *(page.indent(item, 4) for item in body)]


def diff(value: DiffView, *, verbose: bool) -> list[RenderableType]:
    lines: list[RenderableType] = [Text.assemble((value.before, "bold"), " → ", (value.after, "bold"))]
    if value.changes:
        lines += page.changes(value.changes, verbose=verbose or len(value.changes) < _ADDITIONS_LISTED)
    elif not value.files:
        lines.append(Text("no difference", style="green"))
    if value.files is not None:
        lines += _files(value.files, verbose=verbose)
    return lines


_FILE_SIGN = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow"), "unknown": ("?", "dim")}


def _files(values: Sequence[FileChange], *, verbose: bool) -> list[RenderableType]:
    """By whose they are: how many, and the first paths (all where ``verbose``)."""
    owned: dict[tuple[str, ...], list[FileChange]] = {}
    for each in values:
        owned.setdefault(each.owners, []).append(each)
    lines: list[RenderableType] = [Text(f"files: {_counted(values)}")]
    for owners in sorted(owned, key=lambda names: (not names, names)):
        group = owned[owners]
        lines.append(Text.assemble((", ".join(owners) or "of no distribution", "bold"), f": {_counted(group)}"))
        shown = group if verbose else group[:_FILES_SHOWN]
        lines += [page.indent(page.bullet(*_FILE_SIGN[each.kind], each.path)) for each in shown]
        if len(shown) < len(group):
            lines.append(page.indent(Text(f"… {len(group) - len(shown):,} more (--verbose shows them)", style="dim")))
    if any(each.kind == "unknown" for each in values):
        lines.append(Text("?: neither the records nor the disk still tell whether they differ", style="dim"))
    return lines


def _counted(values: Sequence[FileChange]) -> str:
    numbers = Counter(each.kind for each in values)
    return ", ".join(f"{numbers[kind]:,} {kind}" for kind in _FILE_SIGN if numbers[kind]) or "no difference"


def remove(value: RemoveView, *, verbose: bool) -> list[RenderableType]:
    del verbose
    number = words.count(len(value.generations), "generation")
    return [Text(f"removed {value.environment}: {number}, {words.size(value.bytes)} freed")]


def sealed(value: Sealed, *, verbose: bool) -> list[RenderableType]:
    """What got other permissions, and what stays closed because others share it."""
    del verbose
    state = "sealed" if value.sealed else "open"
    head = Text.assemble((f"{value.environment} generation {value.generation}", "bold"), f" is {state}")
    if not value.changed:
        return [head.append(" already: nothing changed")]
    kind = "read-only" if value.sealed else "writable"
    counted = f"{words.count(value.files, 'file')} and {words.count(value.folders, 'folder')} are {kind} now"
    lines: list[RenderableType] = [head.append(f": {counted}, {words.seconds(value.seconds)}")]
    if value.shared:
        shared = f"{words.count(value.shared, 'file')} that the cache or other environments hold, too,"
        verb = (
            "cannot be written there either"
            if value.sealed
            else f"{'stays' if value.shared == 1 else 'stay'} read-only"
        )
        lines.append(page.bullet("·", "cyan", f"{shared} {verb}"))
    return lines
