"""What was locked or exported as text for a person."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from envforge.model.bundle import HOST
from envforge.model.views import BundleView, ExportView, LockView

from . import words


def lock(value: LockView, *, verbose: bool) -> list[RenderableType]:
    """Where the lock is, and what it holds."""
    del verbose
    if not value.text:
        return [Text.assemble((value.subject, "bold"), (" is not locked", "bold red"), ", since its plan ends open")]
    what = f"{words.count(value.distributions, 'distribution')} after {words.count(len(value.steps), 'step')}"
    lines = [Text.assemble((value.subject, "bold"), f": {what}, locked in {value.file}")]
    return [*lines, Text(f"its conda packages as conda takes them: {value.explicit}")] if value.explicit else [*lines]


def export(value: ExportView, *, verbose: bool) -> list[RenderableType]:
    """Which files were written."""
    del verbose
    return [Text.assemble((value.snapshot, "bold"), f" as {value.format}: {path}") for path in value.written]


def bundle(value: BundleView, *, verbose: bool) -> list[RenderableType]:
    """Where it is, what it needs of another host, and how it is used there."""
    del verbose
    first, last = value.written[0], value.written[-1]
    held = [words.count(value.packages, "conda package")] if value.packages else []
    held += [words.count(value.wheels, "wheel")] if value.wheels or not held else []
    built = f", {value.built} of them built here" if value.built else ""
    what = f"{' and '.join(held)}{built}, {words.size(value.bytes)}"
    minor = ".".join(value.python.split(".")[:2])
    host = f"Linux on {value.architecture}" + (f" with glibc {value.glibc} or newer" if value.glibc else "")
    pythons = [f"a Python {minor}"] if value.python_from == HOST else []
    if pythons and minor != value.program_python:
        pythons = [f"a Python {minor} for the environment"]
    if not pythons or minor != value.program_python:
        pythons.append(f"a Python {value.program_python} for envforge itself")
    return [
        Text.assemble((value.snapshot, "bold"), f": {what}, in {first}" + (f" to {last}" if last != first else "")),
        Text(f"sha256  {value.sha256}"),
        Text(f"needs   {host}, and {', and '.join(pythons)}"),
        Text(f"there   sh {first}"),
    ]
