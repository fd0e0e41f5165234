"""The models of an environment, as a person reads them."""

from __future__ import annotations

from envforge.model.result import Result
from envforge.model.views import ModelEntry, ModelsView
from envforge.report.console import render


def entry(name: str, condition: str, **more: object) -> ModelEntry:
    about: dict[str, object] = {
        "hub": "huggingface", "revision": "main", "commit": None, "path": f"/h/{name}", "bytes": 0
    }  # fmt: skip
    return ModelEntry(name=name, condition=condition, **{**about, **more})  # type: ignore[arg-type]


def told(*models: ModelEntry, verbose: bool = False) -> str:
    view = ModelsView(environment="demo", generation=2, folder="/h", models=models)
    return render(Result(command="models", data=view), verbose=verbose)


def test_each_is_told_with_its_place_and_what_to_do_where_one_is_missing() -> None:
    assert told(
        entry("a", "whole", bytes=4_200_000, commit="c0ffee"),
        entry("b", "absent"),
        entry("c", "damaged", bytes=5),
        entry("d", "whole", fetched=True, bytes=1),
    ) == (
        "demo generation 2: 4 models\n"
        "✓ a from huggingface, main: whole, 4.2 MB\n  /h/a\n"
        "· b from huggingface, main: absent\n  /h/b\n"
        "✗ c from huggingface, main: damaged, 5 B\n  /h/c\n"
        "✓ d from huggingface, main: fetched, 1 B\n  /h/d\n"
        "`envforge models demo --fetch` fetches what is missing\n"
    )


def test_of_one_that_lies_elsewhere_nothing_is_fetched_and_the_commit_is_told_to_who_asks() -> None:
    away = told(entry("a", "absent", hub="path", revision=""))
    assert away == "demo generation 2: 1 model\n· a from path: absent\n  /h/a\n"
    assert "main (c0ffee): whole" in told(entry("a", "whole", commit="c0ffee"), verbose=True)
    assert told() == "demo generation 2: its profile names no models\n"
