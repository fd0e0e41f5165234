"""The envelope: the contract's keys, its shapes for plan, build and history, and nothing that JSON cannot say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from report import samples

from envforge.model.errors import EnvforgeError
from envforge.model.finding import Finding, Severity
from envforge.model.result import Result
from envforge.model.views import GenerationRecord, HistoryView, PathView, StepRecord
from envforge.report.json import envelope

CHANGE = {"name", "from", "to", "from_index", "index", "size", "because"}


def told(result: Result[Any], command: str = "plan") -> dict[str, Any]:
    document = json.loads(envelope(result, command))
    assert list(document) == ["schema", "command", "status", "data", "findings", "error"]
    assert document["schema"] == 1
    return dict(document)


def test_a_plan_that_heals_is_ok_and_keeps_what_opened_in_its_step() -> None:
    document = told(Result(command="plan", data=samples.plan()))
    assert (document["status"], document["findings"], document["error"]) == ("ok", [], None)
    tool, pin = document["data"]["steps"][1:]
    assert [finding["id"] for finding in tool["opens"]] == ["hold-violated"]
    assert (tool["heals"], pin["heals"]) == ([], ["hold-violated"])
    assert tool["builds"] == ["old-1.0.tar.gz"]
    assert document["data"]["totals"] == {"download": 55_000_000, "disk": 180_000_000, "free": 25_000_000_000}
    assert document["data"]["verdicts"][0]["guard"] == "hold transformers<5"


def test_a_change_has_the_contracts_keys_and_names_who_forced_it() -> None:
    step = told(Result(command="plan", data=samples.plan()))["data"]["steps"][1]
    assert {"name", "action", "changes", "opens", "heals", "assumed", "seconds"} <= set(step)
    (change,) = step["changes"]
    assert set(change) == CHANGE
    assert (change["from"], change["to"], change["index"]) == ("4.57.6", "5.1.0", "pypi")
    assert change["because"] == "xinference 2.7.0 requires transformers>=5"


def test_a_plan_that_ends_open_says_findings() -> None:
    plan = samples.plan(healed=False)
    document = told(Result(command="plan", data=plan, findings=plan.findings))
    assert document["status"] == "findings"
    assert set(document["findings"][0]) == {"id", "severity", "subject", "step", "message", "evidence", "remedy"}


def test_a_warning_alone_is_ok() -> None:
    finding = Finding(id="ambient-config", severity=Severity.WARNING, subject="pip", message="kept out")
    document = told(
        Result(command="path", data=PathView(environment="e", generation=1, path="/e"), findings=(finding,))
    )
    assert document["status"] == "ok"
    assert document["findings"][0]["severity"] == "warning"


def test_a_build_tells_what_was_done() -> None:
    data = told(Result(command="create", data=samples.build()), "create")["data"]
    assert (data["environment"], data["profile"], data["generation"], data["switched"]) == ("small", "small", 1, True)
    assert [step["name"] for step in data["steps"]] == ["base", "tool", "pin"]
    assert data["steps"][1]["builds"] == ["old-1.0.tar.gz"]
    assert data["smoke"] == [
        {
            "name": "import transformers",
            "ok": True,
            "skipped": None,
            "ending": "exit status 0",
            "tail": "",
            "seconds": 0.4,
            "generated": None,
        }
    ]


def test_history_tells_healed_findings_by_id() -> None:
    step = StepRecord(name="pin", action="pin", snapshot="e/1.1", heals=(("hold-violated", "six"),))
    record = GenerationRecord(number=1, current=True, built=True, verdict="conforms", steps=(step,))
    data = told(Result(command="history", data=HistoryView(environment="e", generations=(record,))))["data"]
    assert data["generations"][0]["steps"][0]["heals"] == ["hold-violated"]


@pytest.mark.parametrize("command", ["audit", None])
def test_an_error_is_a_document_too(command: str | None) -> None:
    error = EnvforgeError("locked", "`e` is being changed", cause="process 7", hint="wait")
    document = json.loads(envelope(error, command))
    assert (document["status"], document["data"], document["command"]) == ("failed", {}, command)
    assert document["error"] == {
        "code": "locked", "message": "`e` is being changed", "cause": "process 7", "hint": "wait",
    }  # fmt: skip


def test_names_that_are_no_valid_text_are_escaped() -> None:
    path = PathView(environment="e", generation=1, path="/caf\udce9")
    assert envelope(Result(command="path", data=path), "path").isascii()
