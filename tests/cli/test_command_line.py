"""The real command in a child process: exit codes, the envelope, what goes to which stream, what is loaded."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import envforge
from envforge.cli import session
from envforge.cli.app import VERBS

SOURCE = str(Path(envforge.__file__).parent.parent)


def environment(home: Path, **variables: str) -> dict[str, str]:
    plain = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {**plain, "HOME": str(home), "ENVFORGE_HOME": str(home / "forge"), "PYTHONPATH": SOURCE, **variables}


def envforge_(
    home: Path, *words: str, python: tuple[str, ...] = (), **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *python, "-m", "envforge", *words],
        env=environment(home, **variables),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert "Traceback" not in done.stderr
    return dict(json.loads(done.stdout))


def test_the_version(tmp_path: Path) -> None:
    for words in (("--version",), ("list", "--version")):
        done = envforge_(tmp_path, *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"envforge {envforge.__version__}\n", "")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(tmp_path: Path, verb: str) -> None:
    done = envforge_(tmp_path, verb, "--help")
    assert done.returncode == 0
    assert f"Example: {'cd $(' if verb == 'path' else ''}envforge {verb}" in done.stdout
    assert "--json" in done.stdout
    assert "For every command: --home DIR" in done.stdout
    assert not set("{<") & set(done.stdout)


def test_help_names_every_verb_and_global_option(tmp_path: Path) -> None:
    text = envforge_(tmp_path, "--help").stdout
    assert all(f" {verb} " in text for verb in VERBS)
    for option in ("--home", "--config", "--offline", "--quiet", "--verbose", "--version"):
        assert option in text
    done = envforge_(tmp_path)
    assert (done.returncode, "Usage" in done.stdout) == (2, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("lst",), "unknown-command", "did you mean `list`"),
        (("list", "--bad"), "usage", "no such option: --bad"),
        (("list", "too", "many"), "usage", "unexpected extra argument"),
        (("show",), "usage", "missing argument `ENV`"),
        (("show", "e", "--home"), "usage", "`--home` needs a value"),
        (("show", "e"), "no-such-environment", "there is no environment `e`"),
        (("path", "a/b"), "invalid-name", "`a/b`"),
        (("rebuild", "e"), "no-such-environment", "there is no environment `e`"),
        (("rollback", "e", "e/1.1", "e/1.2"), "usage", "unexpected extra argument"),
        (("rollback", "e"), "no-such-environment", "there is no environment `e`"),
        (("plan", "no-such-profile"), "unknown-profile", "no-such-profile"),
        (("list", "--config", "no-such-file"), "config-not-found", "no-such-file"),
        (("create", "quickstart", "--engine", "conda"), "invalid-flag", "--engine"),
        (("create", "quickstart", "--backend", "docker"), "usage", "`docker`"),
        (("plan", "quickstart", "--machine", "no-such-file"), "invalid-machine", "no-such-file"),
    ],
)
def test_wrong_usage_is_exit_2_in_words_and_in_json(
    tmp_path: Path, words: tuple[str, ...], code: str, said: str
) -> None:
    done = envforge_(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: " in done.stderr
    assert said in done.stderr
    told = document(envforge_(tmp_path, "--json", *words))
    assert (told["status"], told["command"], told["error"]["code"]) == ("failed", words[0], code)
    assert not told["error"]["message"].endswith(".")


def test_json_is_alone_on_stdout_wherever_the_option_stands(tmp_path: Path) -> None:
    first, second = envforge_(tmp_path, "--json", "list"), envforge_(tmp_path, "list", "--json")
    assert first.stdout == second.stdout
    assert document(first)["data"] == {"home": str(tmp_path / "forge"), "environments": []}


def test_the_home_comes_from_the_option_before_the_variable(tmp_path: Path) -> None:
    done = envforge_(tmp_path, "list", "--json", "--home", "elsewhere")
    assert document(done)["data"]["home"] == str(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (("--version",), ("typer", "rich", "pydantic", "httpx", "sh", "yaml", "packaging")),
        (("list", "--json"), ("rich", "pydantic", "httpx", "sh", "yaml", "packaging")),
        (("path", "e"), ("rich", "pydantic", "httpx", "sh", "yaml", "packaging")),
        (("rollback", "e"), ("rich", "pydantic", "httpx", "sh", "yaml", "packaging")),
    ],
)
def test_nothing_is_loaded_that_is_not_used(tmp_path: Path, words: tuple[str, ...], absent: tuple[str, ...]) -> None:
    done = envforge_(tmp_path, *words, python=("-X", "importtime"))
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "envforge.cli.entry" in loaded
    assert not loaded & set(absent)


def test_no_colour_without_a_terminal_and_none_with_no_color(tmp_path: Path) -> None:
    assert "\x1b" not in envforge_(tmp_path, "list").stdout
    assert "\x1b" not in envforge_(tmp_path, "show", "e").stderr
    assert "\x1b[1;31merror:" in on_terminal(tmp_path, "show", "e")
    assert "\x1b" not in on_terminal(tmp_path, "show", "e", NO_COLOR="1")
    assert "\x1b" not in on_terminal(tmp_path, "show", "e", TERM="dumb")


@pytest.mark.parametrize(
    ("started", "home", "typed"),
    [
        (None, None, "envforge"),
        ("./bootstrap.sh", None, "./bootstrap.sh"),
        ("/opt/my tools/bootstrap.sh", None, "'/opt/my tools/bootstrap.sh'"),
        ("/srv/program/bin/envforge", "/srv", "/srv/program/bin/envforge --home /srv"),
    ],
)
def test_what_to_type(started: str | None, home: str | None, typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENVFORGE_PROGRAM", raising=False)
    if started is not None:
        monkeypatch.setenv("ENVFORGE_PROGRAM", started)
    assert session.program(home) == typed


def test_what_is_on_the_path_is_typed_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "envforge").write_text("#!/bin/sh\n")
    (tmp_path / "envforge").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ENVFORGE_PROGRAM", str(tmp_path / "envforge"))
    assert session.program("/other") == "envforge --home /other"


def test_columns_win_over_what_the_terminal_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "57")
    assert session.width(sys.stdout) == 57
    for nonsense in ("", "0", "wide", "-3"):
        monkeypatch.setenv("COLUMNS", nonsense)
        assert session.width(io.StringIO()) == 100


def on_terminal(home: Path, *words: str, **variables: str) -> str:
    """What the command says where stdout and stderr are a terminal."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "envforge", *words],
        env=environment(home, **{"TERM": "xterm", **variables}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 4096):
            said += chunk
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    child.wait(timeout=60)
    return said.decode()


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "envforge", "list"],
        env=environment(tmp_path),
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_an_encoding_without_our_signs(tmp_path: Path) -> None:
    done = envforge_(tmp_path, "show", "caf\udce9", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


FAULT = """
import os, signal, sys
from envforge.forge import listing
def fault(*_, **__):
    {fault}
listing.listing = fault
from envforge.cli import main
main(sys.argv[1:])
"""


def faulty(home: Path, fault: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", FAULT.format(fault=fault), *words],
        env=environment(home, TMPDIR=str(home)),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_fault_of_our_own_is_one_line_and_a_trace_in_a_file(tmp_path: Path) -> None:
    done = faulty(tmp_path, "raise RuntimeError('two\\nlines')", "list", "--json")
    assert done.returncode == 1
    error = document(done)["error"]
    assert (error["code"], error["message"]) == ("internal-error", "internal error: RuntimeError: two lines")
    (log,) = tmp_path.glob("envforge-*.log")
    assert str(log) in error["hint"]
    assert "RuntimeError: two" in log.read_text()


def test_what_the_system_refuses_is_told_with_its_place(tmp_path: Path) -> None:
    done = faulty(tmp_path, "raise OSError(28, 'No space left on device', '/full')", "list", "--json")
    error = document(done)["error"]
    assert (done.returncode, error["code"]) == (1, "system-refused")
    assert error["message"] == "no space left on device: `/full`"
    assert "free some space" in error["hint"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_is_130(tmp_path: Path, number: signal.Signals) -> None:
    done = faulty(tmp_path, f"os.kill(os.getpid(), {int(number)}); signal.pause()", "list", "--json")
    assert done.returncode == 130
    assert document(done)["error"]["code"] == "interrupted"


def test_another_system_is_told_in_one_line(tmp_path: Path) -> None:
    code = (
        "import sys; from envforge.system import environ; environ.architecture = lambda: 'riscv64';"
        "from envforge.cli import main; main(sys.argv[1:])"
    )

    def there(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *words],
            env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    done = there("list")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "x86_64 and aarch64" in done.stderr
    assert there("list", "--help").returncode == 0
    assert there("--version").returncode == 0
