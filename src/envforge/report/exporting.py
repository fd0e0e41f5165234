"""What was locked or exported as text for a person."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from envforge.model.views import BundleView, ExportView, LockView

from . import words


def lock(value: LockView, *, verbose: bool) -> list[RenderableType]:
    """Where the lock is, and what it holds."""
    del verbose
    if not value.text:
        return [Text.assemble((value.subject, "bold"), (" is not locked", "bold red"), ", since its plan ends open")]
    what = f"{words.count(value.distributions, 'distribution')} after {words.count(len(value.steps), 'step')}"
    return [Text.assemble((value.subject, "bold"), f": {what}, locked in {value.file}")]


def export(value: ExportView, *, verbose: bool) -> list[RenderableType]:
    """Which files were written."""
    del verbose
    return [Text.assemble((value.snapshot, "bold"), f" as {value.format}: {path}") for path in value.written]


def bundle(value: BundleView, *, verbose: bool) -> list[RenderableType]:
    """Where it is, what it needs of another host, and how it is used there."""
    first, *others = value.written
    built = f", {value.built} of them built here" if value.built else ""
    minor = ".".join(value.python.split(".")[:2])
    pythons = f"a Python {minor}"
    if minor != value.program_python:
        pythons += f", and a Python {value.program_python} for envforge itself"
    lines: list[RenderableType] = [
        Text.assemble(
            (value.snapshot, "bold"),
            f": {words.count(value.wheels, 'file')}{built}, {words.size(value.bytes)}, in {first}",
        ),
        *(Text(f"  and {path}") for path in (others if verbose else others[-1:])),
        Text(f"sha256 {value.sha256}" + (" of all together" if others else "")),
        Text(f"it needs Linux{_of(value.architecture)}{_with(value.glibc)}, and {pythons}"),
        Text(f"there: sh {first}"),
    ]
    return lines


def _of(architecture: str | None) -> str:
    return f" on {architecture}" if architecture else ""


def _with(glibc: str | None) -> str:
    return f" with glibc {glibc} or newer" if glibc else ""
