"""What a compiled file needs and nothing provides: a library, a symbol; and the guard ``symbol``."""

from __future__ import annotations

from collections.abc import Iterator

from envforge.model.finding import Finding, Severity
from envforge.model.native import Asked, Unfound, Unresolved
from envforge.model.profile import Symbol
from envforge.model.state import State, shown

from .context import Context
from .wording import below_site, called, guard_evidence, guard_text, reason

_SHOWN = 10
_NAMED = 3


def library_missing(context: Context) -> Iterator[Finding]:
    """One finding a file, with its path as subject; nothing while nobody has looked.

    An error where the library has to lie in the environment; else a warning, since what the file needs may be for
    hardware or programs that are absent by design. A driver's library is missed only beside a card.
    """
    if context.now.native is None:
        return
    for each in context.now.native.unfound:
        if not each.driver or context.cards:
            yield _missing(each, context.now.state)


def _missing(each: Unfound, state: State) -> Finding:
    names = ", ".join(f"`{name}`" for name in each.libraries)
    return Finding(
        id="library-missing",
        severity=Severity.ERROR if each.sought else Severity.WARNING,
        subject=below_site(each.path),
        message=f"`{below_site(each.path)}`{_of(each.owner, state)} cannot be loaded: {names} "
        f"{'is' if len(each.libraries) == 1 else 'are'} not found",
        evidence={"libraries": list(each.libraries), "distribution": _name(each.owner), "driver": each.driver},
        remedy="install the driver's libraries"
        if each.driver
        else "install what brings it; where the file is for something absent by design, list it under `ignore`",
    )


def symbol_undefined(context: Context) -> Iterator[Finding]:
    """One finding for every file, and library that should have what it needs; nothing while nobody has looked.

    An error where Python imports the file or another one needs it; a file beside those may be for another release.
    """
    if context.now.native is None:
        return
    for each in context.now.native.unresolved:
        yield _undefined(each, context.now.state)


def _undefined(each: Unresolved, state: State) -> Finding:
    names = ", ".join(f"`{name}`" for name in each.symbols[:_NAMED])
    more = f" and {len(each.symbols) - _NAMED} more" if len(each.symbols) > _NAMED else ""
    version = f" in version {each.version}" if each.version else ""
    return Finding(
        id="symbol-undefined",
        severity=Severity.ERROR if each.loaded else Severity.WARNING,
        subject=below_site(each.path),
        aspect=f"{each.library} {each.version}",
        message=f"`{below_site(each.path)}`{_of(each.owner, state)} needs {names}{more}{version}, "
        f"which {_provider(each, state)}",
        evidence={
            "distribution": _name(each.owner),
            "symbols": list(each.symbols[:_SHOWN]),
            "count": len(each.symbols),
            "version": each.version,
            "library": each.library,
            "found": each.provider and below_site(each.provider),
            "provider": _named(each.provides, state),
        },
        remedy=f"install another version of `{shown(each.provides)}`, or of what needs it"
        if each.provides
        else "install a build that is made for what is there",
    )


def _provider(each: Unresolved, state: State) -> str:
    if each.library is None:
        return "nothing in its reach defines"
    if each.provides is None:
        return f"`{each.library}`{f' ({each.provider})' if each.provider else ''} does not define"
    return f"`{each.library}`{_of(each.provides, state)} does not define"


def symbol_absent(context: Context) -> Iterator[Finding]:
    """One finding for every guard ``symbol`` that does not hold; nothing while nobody has looked."""
    if context.now.native is None:
        return
    answers = {(each.symbol, each.library): each for each in context.now.native.asked}
    for guard in context.profile.guards:
        if isinstance(guard, Symbol):
            asked = answers.get((guard.symbol, guard.library))
            if asked is not None and (asked.lacking or not asked.found):
                yield _absent(guard, asked, context)


def _absent(guard: Symbol, asked: Asked, context: Context) -> Finding:
    owners = {each.path: each.owner for each in context.now.native.objects} if context.now.native is not None else {}
    lacking = ", ".join(f"`{below_site(path)}`{_of(owners.get(path), context.now.state)}" for path in asked.lacking)
    return Finding(
        id="symbol-absent",
        severity=Severity.ERROR,
        subject=guard.library,
        aspect=guard_text(guard),
        message=(f"{lacking} does not define `{guard.symbol}`" if lacking else f"there is no `{guard.library}` here")
        + reason(guard),
        evidence={
            **guard_evidence(guard),
            "symbol": guard.symbol,
            "files": [below_site(path) for path in asked.found],
            "lacking": [below_site(path) for path in asked.lacking],
        },
        remedy="install the version of the library that the guard is there for",
    )


def _of(owner: str | None, state: State) -> str:
    if owner is None or owner not in state:
        return ""
    return f" of {called(state[owner])}"


def _name(owner: str | None) -> str | None:
    return shown(owner) if owner is not None else None


def _named(owner: str | None, state: State) -> str | None:
    """``nvidia-nccl-cu12 2.26.2``."""
    return f"{shown(owner)} {state[owner].version}" if owner is not None and owner in state else _name(owner)
