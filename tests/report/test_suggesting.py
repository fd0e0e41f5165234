from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from envforge.model.finding import Finding, Severity
from envforge.model.result import Result
from envforge.model.views import Importer, Suggestion, SuggestView
from envforge.report.console import render


def importer(number: int) -> Importer:
    return Importer(
        distribution=f"importer-of-numpy-{number}",
        version="1.0",
        module="numpy.linalg",
        place=f"importer/a{number}.py:7",
    )


VIEW = SuggestView(
    environment="demo",
    generation=2,
    backfill=(
        Suggestion(
            requirement="setuptools<82",
            present=False,
            assumed=False,
            importers=(
                Importer(distribution="pyworld", version="0.3", module="pkg_resources", place="pyworld/__init__.py:13"),
            ),
        ),
        Suggestion(requirement="zlib-ng", present=False, assumed=True, importers=(importer(0),)),
        Suggestion(requirement="numpy", present=True, assumed=False, importers=tuple(map(importer, range(5)))),
    ),
    distributions=403,
    read=12,
)
FINDING = Finding(
    id="import-undeclared", severity=Severity.WARNING, subject="app", message="imports", remedy="add `numpy`"
)


def block(text: str) -> str:
    return "\n".join(line[2:] for line in text.splitlines() if line.startswith("  ") and not line.startswith("  do:"))


@pytest.mark.parametrize("width", [40, 60, 200])
@pytest.mark.parametrize("verbose", [False, True])
def test_the_step_is_yaml_at_every_width(width: int, *, verbose: bool) -> None:
    text = render(Result(command="suggest", data=VIEW), width=width, verbose=verbose)
    assert yaml.safe_load(block(text)) == [
        {"name": "backfill-imports", "backfill": ["setuptools<82", "zlib-ng", "numpy"]}
    ]
    assert max(map(len, text.splitlines())) <= width
    assert ("importer-of-numpy-4" in text) == verbose


def test_each_line_says_who_imports_it_and_where() -> None:
    text = render(Result(command="suggest", data=VIEW), width=200)
    assert text.splitlines() == [
        "demo generation 2: a step for its profile; 403 distributions looked at",
        "  - name: backfill-imports",
        "    backfill:",
        "      # pyworld 0.3 imports pkg_resources (pyworld/__init__.py:13); nothing here brings it",
        "      - setuptools<82",
        "      # importer-of-numpy-0 1.0 imports numpy.linalg (importer/a0.py:7); nothing here brings it",
        "      # assumed from the module's name: see that it is the right one",
        "      - zlib-ng",
        *(
            f"      # importer-of-numpy-{number} 1.0 imports numpy.linalg (importer/a{number}.py:7)"
            for number in range(3)
        ),
        "      # and 2 others",
        "      - numpy",
    ]


def test_nothing_to_backfill_is_said_and_files_that_nobody_could_read_are_named() -> None:
    view = replace(VIEW, backfill=(), unread=tuple(f"app/broken{number}.py" for number in range(5)))
    text = render(Result(command="suggest", data=view, findings=(FINDING,)))
    assert text.splitlines() == [
        "demo generation 2: nothing to backfill; 403 distributions looked at",
        "! 5 files could not be read: app/broken0.py, app/broken1.py, app/broken2.py, … 2 more",
        "",
        "1 warning: add `numpy`",
        "  warning import-undeclared app: imports",
    ]
