"""uv and pip, real ones, against the router: what they are asked, and what is made of their answers."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from engines.rig import BASE, Rig, indexes, rig, site
from kit.index import Fault, Index, serve
from kit.wheels import Wheel

from envforge.engines import uv
from envforge.engines.pip import Pip
from envforge.engines.uv import Ask
from envforge.model.errors import EnvforgeError
from envforge.model.state import Origin
from envforge.probe import interpreter
from envforge.system import http
from envforge.system.http import Proxies

SIX = Wheel(name="six", version="1.0.0")
APP = Wheel(name="app", version="1.0.0", requires=("six>=1",), scripts={"app": "app:main"})


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("envforge.system.http.time.sleep", lambda _: None)
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


def test_uv_says_where_its_default_index_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://host.example/simple")
    monkeypatch.setenv("UV_INDEX_URL", "https://host.example/simple")
    parts = urlsplit(uv.default_index())
    assert parts.scheme == "https"
    assert parts.hostname
    assert parts.hostname != "host.example"


def failed(made: Rig, *requirements: str, **ask: object) -> EnvforgeError:
    with pytest.raises(EnvforgeError) as caught:
        made.resolve(*requirements, ask=replace(Ask(requirements=()), **ask))  # type: ignore[arg-type]
    return caught.value


def test_failures_in_the_user_s_words(tmp_path: Path) -> None:
    with serve({"own": Index(artefacts=[SIX, APP])}) as server, rig(tmp_path, indexes(server)) as made:
        clash = failed(made, "app", "six<1")
        assert clash.code == "unsolvable"
        assert "six" in (clash.cause or "")
        held = failed(made, "app", constraints=("six<1",))
        assert held.code == "unsolvable"
        missing = failed(made, "absent>=1")
        assert (missing.code, "`absent`" in missing.message, "`own`" in missing.message) == (
            "package-not-found",
            True,
            True,
        )
        for error in (clash, held, missing):
            assert "envforge.invalid" not in f"{error.message}{error.cause}{error.hint}"


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(page="six", status=503), "index-unreachable"),
        (Fault(page="six", status=500), "index-unreachable"),
        (Fault(page="six", status=403), "index-unauthorized"),
        (Fault(page="six", reset=True), "index-unreachable"),
        (Fault(page="six", truncate=True), "index-unreachable"),
    ],
)
def test_an_index_that_fails_is_named(tmp_path: Path, fault: Fault, code: str) -> None:
    index = Index(artefacts=[SIX], faults=[fault])
    with serve({"own": index}) as server, rig(tmp_path, indexes(server)) as made:
        error = failed(made, "six")
        assert (error.code, "`own`" in error.message) == (code, True)


def test_a_second_install_of_the_same_files_fetches_nothing(tmp_path: Path) -> None:
    with serve({"own": Index(artefacts=[SIX]), "pypi": Index(artefacts=[APP])}) as server:
        given = indexes(server)
        with rig(tmp_path, given) as made:
            first = made.install(made.venv(), made.found(made.resolve("app")))
            assert "Prepared 2" in first
        server.forget()
        with rig(tmp_path, given) as made:  # another port, another process for uv
            prefix = made.venv()
            second = made.install(prefix, made.found(made.resolve("app")))
            assert "Prepared" not in second
            assert "Installed 2" in second
        assert not server.requests("file")
        assert (prefix / "bin/app").exists()


def test_a_wrong_hash_is_refused(tmp_path: Path) -> None:
    with serve({"own": Index(artefacts=[SIX])}) as server, rig(tmp_path, indexes(server)) as made:
        (found,) = made.found(made.resolve("six"))
        prefix = made.venv()
        wrong = replace(found, sha256="0" * 64)
        completed = made.uv.install(prefix, [wrong], made.scratch(), tmp_path / "log")
        assert not completed.ok
        assert made.uv.failure(completed, "step").code == "hash-mismatch"
        assert not list(site(prefix).glob("six*"))


def test_constraints_upgrades_and_dependencies(tmp_path: Path) -> None:
    newer = Wheel(name="six", version="2.0.0")
    with serve({"own": Index(artefacts=[SIX, newer, APP])}) as server, rig(tmp_path, indexes(server)) as made:
        bounded = made.resolve("app", ask=Ask(requirements=(), constraints=("six<2",)))
        assert {move.name: move.version for move in bounded} == {
            "app": "1.0.0", "six": "1.0.0",
        }  # fmt: skip
        assert [move.name for move in made.resolve("app", ask=Ask(requirements=(), no_deps=True))] == ["app"]
        assert made.resolve("six ; python_version < '3'") == ()
        assert {move.version for move in made.resolve("six", "six", "SIX")} == {"2.0.0"}


# -- pip -----------------------------------------------------------------------------------------------------------


def pip(made: Rig) -> Pip:
    return Pip(cache=made.root / "cache/pip", router=made.router, proxies=Proxies(), roots=made.roots)


def test_pip_installs_what_was_resolved_and_checks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/")
    shelves = {"own": Index(artefacts=[SIX]), "pypi": Index(artefacts=[APP])}
    with serve(shelves) as server, rig(tmp_path, indexes(server)) as made:
        found = made.found(made.resolve("app"))
        prefix = made.venv()
        bundled = interpreter.facts(BASE).pip_wheel
        if bundled is None:
            pytest.skip("this Python brings no pip")
        made.install(prefix, [made.router.own(made.built.keep(Path(bundled), Origin(kind="python"), None))])
        wrong = [replace(each, sha256="0" * 64) if each.name == "six" else each for each in found]
        completed = pip(made).install(prefix, wrong, made.scratch(), tmp_path / "log")
        assert not completed.ok
        assert made.uv.failure(completed, "step").code == "hash-mismatch"
        assert not list(site(prefix).glob("six*"))
        completed = pip(made).install(prefix, found, made.scratch(), tmp_path / "log")
        assert completed.ok, completed.stderr
        assert (site(prefix) / "six-1.0.0.dist-info").is_dir()
        assert (site(prefix) / "app-1.0.0.dist-info/INSTALLER").read_text().strip() == "pip"


def test_an_environment_without_pip(tmp_path: Path) -> None:
    with serve({"own": Index(artefacts=[SIX])}) as server, rig(tmp_path, indexes(server)) as made:
        prefix, found, scratch = made.venv(), made.found(made.resolve("six")), made.scratch()
        with pytest.raises(EnvforgeError, match="needs a pip") as caught:
            pip(made).install(prefix, found, scratch, tmp_path / "log")
    assert caught.value.code == "pip-missing"
