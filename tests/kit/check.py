"""What must hold for an answer of the command: the contract's shape always, and what a world expects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from envforge.model.finding import FINDING_IDS

from .cli import Answer, Cli
from .index import Server

_ENVELOPE = {"schema", "command", "status", "data", "findings", "error"}
_FINDING = {"id", "severity", "subject", "step", "message", "evidence", "remedy"}
_STEP = {"name", "action", "changes", "opens", "heals", "assumed", "seconds"}
_CHANGE = {"name", "from", "to", "from_index", "index", "size", "because"}
_STATUS = {0: "ok", 3: "findings", 1: "failed", 2: "failed", 4: "failed", 130: "failed"}
_OPTIONS = {"changes", "exactly", "opens", "heals", "assumed"}


def contract(answer: Answer) -> None:
    """The laws of every command: one valid envelope, no traceback, and no success over an error finding."""
    document = answer.document
    for said in (answer.stderr, str(document["error"])):
        assert "Traceback (most recent call last)" not in said, str(answer)
        assert "internal" not in said, str(answer)
    assert set(document) == _ENVELOPE, str(answer)
    assert document["schema"] == 1
    assert document["status"] == _STATUS[answer.exit], str(answer)
    findings = list(document["findings"])
    for step in document["data"].get("steps", []):
        if isinstance(step, Mapping):
            assert set(step) >= _STEP, step
            assert all(set(change) == _CHANGE for change in step["changes"]), step
            assert set(step["heals"]) <= FINDING_IDS
            findings += step["opens"]
    for finding in findings:
        assert set(finding) == _FINDING, finding
        assert finding["id"] in FINDING_IDS, finding
        assert finding["message"], finding
    errors = [finding for finding in document["findings"] if finding["severity"] == "error"]
    assert bool(errors) == (answer.exit == 3), str(answer)
    assert (document["error"] is None) == (document["status"] != "failed"), str(answer)
    if document["error"] is not None:
        assert set(document["error"]) == {"code", "message", "cause", "hint"}
        assert not document["error"]["message"].endswith("."), document["error"]


def ended(answer: Answer, status: int = 0) -> Answer:
    """The answer, which keeps the contract and ended so."""
    contract(answer)
    assert answer.exit == status, str(answer)
    return answer


def errors(answer: Answer) -> set[tuple[str, str]]:
    """Id and subject of every finding of severity error."""
    return {(each["id"], each["subject"]) for each in answer.document["findings"] if each["severity"] == "error"}


def expected(run: Mapping[str, Any], answer: Answer, cli: Cli, server: Server) -> None:
    """What an entry of ``expect`` says, key by key."""
    assert answer.exit == run.get("exit", 0), str(answer)
    for name, wanted in run.get("steps", {}).items():
        _step(_by_name(answer, name), wanted, answer)
    if answer.stdout.startswith("{"):
        _findings(run.get("findings", []), answer.document["findings"], answer)
    if "error" in run:
        assert answer.document["error"]["code"] == run["error"], str(answer)
    for text in run.get("says", []):
        assert text in answer.text, f"`{text}` is not said\n{answer}"
    for text in run.get("not says", []):
        assert text not in answer.text, f"`{text}` is said\n{answer}"
    for guard, verdict in run.get("verdicts", {}).items():
        verdicts = {row["guard"]: row["verdict"] for row in answer.data["verdicts"]}
        assert verdicts.get(guard) == verdict, verdicts
    if "data" in run:
        subset(run["data"], answer.data, "data")
    _afterwards(run, answer, cli)
    for what, count in run.get("requests", {}).items():
        kind, pattern, index = (*what.split(), "*")[:3]
        found = [request.path for request in server.requests(kind, pattern, index) if request.method == "GET"]
        assert bool(found) if count == "some" else len(found) == count, f"{what}: {found}"


def _afterwards(run: Mapping[str, Any], answer: Answer, cli: Cli) -> None:
    environment = run.get("environment", "demo")
    link = cli.link(environment)
    assert link.is_symlink() or not link.exists(), f"{link} is no symlink"
    if "in use" in run:
        used = int(link.readlink().name) if link.is_symlink() else None
        assert used == run["in use"], f"generation in use: {used}\n{answer}"
    if "installed" in run:
        assert cli.installed(environment) == {name: str(version) for name, version in run["installed"].items()}
    for path, text in run.get("contains", {}).items():
        assert text in (cli.site(environment) / path).read_text(encoding="utf-8")
    if "builds" in run:
        log = cli.root / "builds"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        assert len([line for line in lines if line.endswith(" wheel")]) == run["builds"], lines


def subset(wanted: Any, actual: Any, where: str) -> None:
    """Every key and item of ``wanted`` is in ``actual``; a string stands for itself or, in ``~...~``, for a part."""
    if isinstance(wanted, Mapping):
        assert isinstance(actual, Mapping), f"{where}: {actual!r}"
        for key, value in wanted.items():
            assert key in actual, f"{where} has no `{key}`: {sorted(actual)}"
            subset(value, actual[key], f"{where}.{key}")
    elif isinstance(wanted, list):
        assert isinstance(actual, list), f"{where}: {actual!r}"
        assert len(wanted) == len(actual), f"{where}: {actual!r}"
        for position, value in enumerate(wanted):
            subset(value, actual[position], f"{where}[{position}]")
    elif isinstance(wanted, str) and re.fullmatch(r"~.+~", wanted):
        assert wanted[1:-1] in str(actual), f"{where}: {actual!r}"
    else:
        assert wanted == actual, f"{where}: {actual!r}, not {wanted!r}"


def changes(answer: Answer) -> dict[str, list[tuple[object, ...]]]:
    """What every step changed, comparable between a plan and its build."""
    keys = ("name", "from", "to", "from_index", "index")
    return {
        step["name"]: sorted((tuple(change[key] for key in keys) for change in step["changes"]), key=str)
        for step in answer.data["steps"]
    }


def _by_name(answer: Answer, name: str) -> Mapping[str, Any]:
    for step in answer.data.get("steps", []):
        if step["name"] == name:
            return step  # type: ignore[no-any-return]
    message = f"no step `{name}`\n{answer}"
    raise AssertionError(message)


def _step(step: Mapping[str, Any], wanted: Any, answer: Answer) -> None:
    if wanted == "nothing":
        wanted = {"exactly": {}}
    if not set(wanted) & _OPTIONS:
        wanted = {"changes": wanted}
    assert set(wanted) <= _OPTIONS, wanted
    actual = {change["name"]: change for change in step["changes"]}
    for name, text in {**wanted.get("changes", {}), **wanted.get("exactly", {})}.items():
        if text == "unchanged":
            assert name not in actual, f"{name} changes\n{answer}"
        else:
            assert name in actual, f"{name} does not change in `{step['name']}`\n{answer}"
            _change(actual[name], text)
    if "exactly" in wanted:
        assert set(actual) == set(wanted["exactly"]), f"{sorted(actual)} change in `{step['name']}`\n{answer}"
    if "opens" in wanted:
        _opens(wanted["opens"], step["opens"])
    if "heals" in wanted:
        assert sorted(step["heals"]) == sorted(wanted["heals"]), step["heals"]
    if "assumed" in wanted:
        assert step["assumed"] is wanted["assumed"], f"`{step['name']}`: assumed is {step['assumed']}"


def _change(actual: Mapping[str, Any], wanted: Any) -> None:
    details = {"change": wanted} if isinstance(wanted, str) else dict(wanted)
    before, _, after = details.pop("change").partition("->")
    assert (actual["from"] or "", actual["to"] or "") == (before.strip(), after.strip()), actual
    because = details.pop("because", None)
    if because is not None:
        assert because in (actual["because"] or ""), actual
    for key, value in details.items():
        assert actual[key] == value, actual


def _described(entry: Any) -> tuple[str, str, str]:
    """``id subject`` or ``{id subject: part of the message}``; no subject = any."""
    title, message = (entry, "") if isinstance(entry, str) else next(iter(entry.items()))
    identity, _, subject = title.partition(" ")
    return identity, subject or "*", message


def _match(entry: Any, finding: Mapping[str, Any]) -> bool:
    identity, subject, message = _described(entry)
    said = f"{finding['message']}\n{finding['evidence']}\n{finding['remedy']}"
    return finding["id"] == identity and fnmatchcase(finding["subject"], subject) and message in said


def _findings(wanted: list[Any], actual: list[Mapping[str, Any]], answer: Answer) -> None:
    """All that is wanted is there, at whatever severity, and no error besides."""
    for entry in wanted:
        assert any(_match(entry, finding) for finding in actual), f"no finding {entry}\n{answer}"
    for finding in actual:
        known = finding["severity"] != "error" or any(_match(entry, finding) for entry in wanted)
        assert known, f"not expected: {finding}\n{answer}"


def _opens(wanted: list[Any], actual: list[Mapping[str, Any]]) -> None:
    for entry in wanted:
        assert any(_match(entry, finding) for finding in actual), f"{entry} is not opened: {actual}"
    for finding in actual:
        assert any(_match(entry, finding) for entry in wanted), f"not expected: {finding}"
