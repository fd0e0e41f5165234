"""A lock carries conda packages: it is built elsewhere without a solver, or it says why it cannot be."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines.house import House, versions
from forge.packed import HELLO, IDNA, PYTHON, STEPS, TOOL, house, options, served
from kit import packages
from kit.channel import SUBDIR, Package
from kit.check import ended
from kit.cli import Cli
from kit.rattling import make
from kit.server import Server

from envforge.forge.from_lock import create_locked
from envforge.forge.lock import lock
from envforge.model.errors import EnvforgeError
from envforge.model.finding import Finding, Severity
from envforge.model.result import Build, Result
from envforge.store import lockfile, snapshots
from envforge.system import http


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


@pytest.fixture
def server() -> Iterator[Server]:
    with served() as running:
        yield running


def sha256(package: Package) -> str:
    return hashlib.sha256(package.bytes()).hexdigest()


def contents(made: House) -> dict[str, tuple[str, str | None]]:
    snapshot = snapshots.latest(made.shop.home, "demo", made.shop.home.current("demo") or 0)
    assert snapshot is not None
    return {key: (item.version, item.sha256) for key, item in snapshot.state.items()}


def told(result: Result[Build]) -> list[Finding]:
    """What is said of the build, but for what was kept out of it."""
    return [finding for finding in result.findings if finding.severity is not Severity.INFO]


def test_an_environment_is_built_again_elsewhere_though_the_channel_moved_on(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path / "a", server)
    assert made.create(STEPS, **options(server)).exit == 0
    file = tmp_path / "carried.pylock.toml"
    answer = lock(made.shop, "demo", output=str(file))
    assert (answer.data.distributions, answer.data.lost) == (5, ())
    found = lockfile.load(answer.data.text, file)
    assert set(found.base) == {"conda:python", "conda:tool"}
    assert [versions(step.state).get("conda:hello") for step in found.steps] == [None, "1.0", "1.0"]
    server.put("forge", packages.prefixed("tool", "9.0"))
    server.forget()
    other = house(tmp_path / "b", server)
    built = create_locked(other.shop, file, None)
    assert (built.exit, built.data.switched, told(built)) == (0, True, [])
    assert contents(other) == contents(made)
    assert not server.requests("page", index="forge")
    assert len(server.requests("file", index="forge")) == 3


@pytest.mark.slow
def test_a_profile_is_locked_from_its_plan_and_then_built_so(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path / "a", server)
    profile = made.profile(STEPS, **options(server))
    file = tmp_path / "x.pylock.toml"
    answer = lock(made.shop, profile.source, output=str(file))
    assert not server.requests("file", index="forge")
    assert told(create_locked(made.shop, file, profile)) == []
    assert lock(made.shop, "demo", output="-").data.text == answer.data.text


@pytest.mark.slow
def test_rattler_installs_from_the_list_beside_it(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path / "a", server)
    profile = made.profile(STEPS, **options(server))
    view = lock(made.shop, profile.source, output=str(tmp_path / "x.pylock.toml")).data
    assert view.explicit == str(tmp_path / "x.explicit.txt")
    lines = Path(view.explicit).read_text(encoding="utf-8").splitlines()
    assert lines[-4] == "@EXPLICIT"
    assert [line.rsplit("/", 1)[1].partition("-")[0] for line in lines[-3:]] == ["python", "hello", "tool"]
    assert lines[-1] == f"{server.url('forge')}/{TOOL.subdir}/{TOOL.filename}#sha256:{sha256(TOOL)}"
    rebuilt = make(tmp_path / "c", server.url("forge"), explicit=Path(view.explicit))
    assert rebuilt.error is None
    assert rebuilt.packages == {each.filename for each in (PYTHON, HELLO, TOOL)}
    broken = tmp_path / "broken.txt"
    broken.write_text("\n".join([*lines[:-1], lines[-1][:-1] + "0"]), encoding="utf-8")
    assert make(tmp_path / "d", server.url("forge"), explicit=broken).error is not None


@pytest.mark.slow
def test_a_profile_without_steps_is_locked_too(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path / "a", server)
    assert made.create([], **options(server)).exit == 0
    file = tmp_path / "x.pylock.toml"
    lock(made.shop, "demo", output=str(file))
    other = house(tmp_path / "b", server)
    assert told(create_locked(other.shop, file, None)) == []
    assert contents(other) == contents(made)


@pytest.mark.slow
def test_what_the_profile_asks_for_now_is_compared_with_what_is_locked(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path / "a", server)
    profile = made.profile(STEPS, **options(server))
    file = tmp_path / "x.pylock.toml"
    lock(made.shop, profile.source, output=str(file))
    wider = [STEPS[0], {"name": "hello", "conda": ["hello >=1,<2"]}, STEPS[2]]
    assert told(create_locked(made.shop, file, made.profile(wider, **options(server)), name="wider")) == []
    other = [STEPS[0], {"name": "hello", "conda": ["hello >=2"]}, STEPS[2]]
    with pytest.raises(EnvforgeError) as caught:
        create_locked(made.shop, file, made.profile(other, **options(server, "conda-forge::tool", "gone")))
    assert caught.value.code == "lock-outdated"
    assert (caught.value.cause or "").splitlines() == [
        "before the first step the lock holds `tool` 1.0 0, and the profile asks for `conda-forge::tool`",
        "before the first step the lock holds no `gone`, and the profile asks for `gone`",
        "after the step `hello` the lock holds `hello` 1.0 pyh0_0, and the profile asks for `hello >=2`",
    ]
    elsewhere = {**options(server), "conda": {"channels": ["other"], "packages": []}}
    with pytest.raises(EnvforgeError, match="does not satisfy") as caught:
        create_locked(made.shop, file, made.profile(STEPS, **elsewhere))
    reason = f"`tool` comes from the channel `{server.url('forge')}`, which the profile does not name"
    assert reason in (caught.value.cause or "")
    with pytest.raises(EnvforgeError) as caught:
        create_locked(made.shop, file, made.profile([STEPS[0], STEPS[2]]))
    assert (caught.value.cause or "").splitlines()[0].endswith("and the profile has the backend `venv`")


@pytest.mark.slow
def test_packages_of_another_architecture_are_not_for_this_machine(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path / "a", server)
    profile = made.profile(STEPS, **options(server))
    file = tmp_path / "x.pylock.toml"
    text = lock(made.shop, profile.source, output=str(file)).data.text
    there = "linux-aarch64" if SUBDIR == "linux-64" else "linux-64"
    file.write_text(text.replace(f'subdir\\": \\"{SUBDIR}', f'subdir\\": \\"{there}'), encoding="utf-8")
    with pytest.raises(EnvforgeError) as caught:
        create_locked(made.shop, file, None)
    assert f"the lock holds packages for `{there}`" in (caught.value.cause or "")


@pytest.mark.slow
def test_what_is_out_of_reach_without_network_is_named_before_anything_is_built(tmp_path: Path, server: Server) -> None:
    made = house(tmp_path / "a", server)
    profile = made.profile(STEPS, **options(server))
    file = tmp_path / "x.pylock.toml"
    lock(made.shop, profile.source, output=str(file))
    assert made.create(STEPS[:1], name="cached", **options(server)).exit == 0
    with pytest.raises(EnvforgeError) as caught:
        create_locked(made.offline().shop, file, None)
    assert caught.value.code == "not-cached"
    assert (caught.value.cause or "").splitlines() == [f"`{HELLO.filename}`", f"`{IDNA.filename}`"]


def test_no_credentials_in_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(auth="somebody:hush-hush") as server:
        name = re.sub(r"[^A-Z0-9]", "_", server.url("forge").upper())
        monkeypatch.setenv(f"ENVFORGE_INDEX_{name}_USERNAME", "somebody")
        monkeypatch.setenv(f"ENVFORGE_INDEX_{name}_PASSWORD", "hush-hush")
        made = house(tmp_path / "a", server)
        profile = made.profile(STEPS, **options(server))
        view = lock(made.shop, profile.source, output=str(tmp_path / "x.pylock.toml")).data
        assert "hush" not in view.text + Path(view.explicit or "").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_command(tmp_path: Path, server: Server) -> None:
    cli = Cli(root=tmp_path / "cli")
    cli.profile(server.url("pypi"), STEPS, **options(server))
    answer = ended(cli.run("lock", "demo"))
    assert (answer.data["file"], answer.data["explicit"]) == ("demo.pylock.toml", "demo.explicit.txt")
    assert ended(cli.run("lock", "demo", "-o", "-")).data["explicit"] is None
    ended(cli.run("create", "--lock", "demo.pylock.toml"))
    assert cli.installed() == {"six": "1.0.0", "hello": "1.0", "idna": "3.0"}
