"""A generation's folder that somebody deleted: every verb says what is so and what to do, and a rebuild heals it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from kit.check import ended
from kit.cli import Cli
from kit.index import Index, serve
from kit.wheels import Wheel


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with serve({"pypi": Index(artefacts=[Wheel(name="six", version="1.0.0")])}) as server:
        cli = Cli(root=tmp_path_factory.mktemp("gone"))
        cli.profile(server.url("pypi"), [{"name": "six", "install": ["six"]}])
        ended(cli.run("create", "demo"))
        yield cli


def in_use(cli: Cli) -> int:
    return int(cli.link().readlink().name)


def delete(cli: Cli, generation: int) -> None:
    shutil.rmtree(cli.home / "generations/demo" / str(generation))


def test_the_one_in_use_while_looking(cli: Cli) -> None:
    number = in_use(cli)
    delete(cli, number)
    (entry,) = ended(cli.run("list", "--size")).data["environments"]
    assert (entry["generation"], entry["verdict"], entry["profile"]) == (None, "its folder is gone", "demo")
    shown = ended(cli.run("show", "demo")).data
    assert (shown["generation"], shown["verdict"], shown["distributions"] > 0) == (None, "its folder is gone", True)
    record = ended(cli.run("history", "demo")).data["generations"][-1]
    assert (record["number"], record["built"]) == (number, False)
    for words, status in (
        (("path", "demo"), 1),
        (("audit", "demo"), 1),
        (("diff", "demo"), 1),
        (("run", "demo", "python"), 125),
    ):
        answer = cli.run(*words)
        assert answer.exit == status, str(answer)
        error = answer.document["error"]
        assert error["code"] == "generation-missing"
        assert f"generations/demo/{number}" in error["cause"]
        assert "`envforge rebuild demo`" in error["hint"]
    (finding,) = [
        each for each in ended(cli.run("audit", "--all"), 3).document["findings"] if each["severity"] == "error"
    ]
    assert (finding["id"], finding["subject"], finding["evidence"]) == (
        "file-missing",
        "demo",
        {"code": "generation-missing"},
    )
    assert ended(cli.run("rebuild", "demo")).data["generation"] == number + 1
    ended(cli.run("audit", "demo"))


@pytest.mark.parametrize("words", [("create", "demo", "--replace"), ("update", "demo")])
def test_what_builds_goes_on(cli: Cli, words: tuple[str, ...]) -> None:
    number = in_use(cli)
    delete(cli, number)
    assert ended(cli.run(*words)).data["generation"] == number + 1
    assert in_use(cli) == number + 1
    ended(cli.run("audit", "demo"))


@pytest.mark.slow
def test_an_older_one_and_then_all(cli: Cli) -> None:
    ended(cli.run("rebuild", "demo"))
    ended(cli.run("rebuild", "demo"))
    number = in_use(cli)
    delete(cli, number - 1)
    for words in (("list",), ("show", "demo"), ("path", "demo"), ("history", "demo"), ("audit", "demo")):
        ended(cli.run(*words))
    answer = ended(cli.run("rollback", "demo", f"demo/{number - 1}"), 1)
    assert answer.document["error"]["code"] == "generation-missing"
    assert f"demo/{number - 1}.1" in answer.document["error"]["hint"]
    assert ended(cli.run("rollback", "demo", f"demo/{number - 1}.1")).data["built"]
    delete(cli, in_use(cli))
    assert ended(cli.run("rollback", "demo")).data["after"] == number
    delete(cli, number)
    ended(cli.run("remove", "demo"))
    assert ended(cli.run("list")).data["environments"] == []
    ended(cli.run("create", "demo"))
