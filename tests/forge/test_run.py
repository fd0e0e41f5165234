"""`run` in child processes, as a user starts it: status, signals, variables."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from forge import small_home

import envforge
from envforge.forge.launching import remember
from envforge.probe import launch

SOURCE = str(Path(envforge.__file__).parent.parent)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("run") / "home"
    small_home.environment(small_home.shop(root))
    return root


def run(home: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": SOURCE, "ENVFORGE_HOME": str(home), **variables}
    return subprocess.run(
        [sys.executable, "-m", "envforge", "run", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_variables_and_python_are_of_the_real_path(home: Path) -> None:
    code = (
        "import os, sys; print(sys.prefix, os.environ['VIRTUAL_ENV'], os.environ['PATH'].split(':')[0],"
        "os.environ['FROM_PROFILE'], os.environ['PYTHONNOUSERSITE'], os.environ.get('PYTHONPATH'),"
        "os.environ.get('PYTHONHOME'), os.environ['KEPT'], sep='\\n')"
    )
    done = run(home, "small", "--", "python", "-c", code, KEPT="kept")
    prefix = str(home.resolve() / "generations" / "small" / "1")
    assert done.stdout.splitlines() == [prefix, prefix, f"{prefix}/bin", "yes", "1", "None", "None", "kept"]


@pytest.mark.parametrize("status", [0, 1, 2, 7, 125, 255])
def test_the_status_is_the_commands_own(home: Path, status: int) -> None:
    assert run(home, "small", "python", "-c", f"raise SystemExit({status})").returncode == status


def test_a_signal_that_ends_the_command_ends_the_call(home: Path) -> None:
    done = run(home, "small", "python", "-c", "import os; os.kill(os.getpid(), 9)")
    assert done.returncode == -signal.SIGKILL


def test_a_signal_reaches_the_command(home: Path) -> None:
    code = "import signal, sys; signal.signal(15, lambda *_: sys.exit(42)); print('up', flush=True); signal.pause()"
    child = subprocess.Popen(
        [sys.executable, "-m", "envforge", "run", "small", "python", "-c", code],
        env={**os.environ, "PYTHONPATH": SOURCE, "ENVFORGE_HOME": str(home)},
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    child.terminate()
    assert child.wait(timeout=30) == 42
    child.stdout.close()


def test_a_closed_pipe_ends_the_command_as_without_envforge(home: Path) -> None:
    done = run(home, "small", "sh", "-c", "trap '' 0; kill -PIPE $$; exit 3")
    assert done.returncode == -signal.SIGPIPE


def test_a_name_of_the_profile_is_expanded_and_gets_what_follows(home: Path) -> None:
    assert run(home, "small", "hello").stdout == "hello\n"
    assert run(home, "small", "hello", "--home", "--json").stdout == "hello\n"


def test_the_words_after_the_command_are_its_own(home: Path) -> None:
    done = run(home, "small", "python", "-c", "import sys; print(sys.argv[1:])", "--verbose", "--", "-q", "--json")
    assert done.stdout.strip() == "['--verbose', '--', '-q', '--json']"


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("nobody", "python"), 125, "no-such-environment"),
        (("a/b", "python"), 125, "invalid-name"),
        (("small",), 125, "usage"),
        (("small", "no-such-program"), 127, "command-not-found"),
        (("small", "broken"), 127, "command-not-found"),
        (("small", "./no-such-file"), 127, "command-not-found"),
        (("small", "/etc/passwd"), 126, "not-executable"),
        (("small", "/etc"), 126, "not-executable"),
    ],
)
def test_what_never_started(home: Path, words: tuple[str, ...], status: int, code: str) -> None:
    done = run(home, "--json", *words)
    assert done.returncode == status
    assert f'"code": "{code}"' in done.stdout
    assert "Traceback" not in done.stderr


def test_a_script_whose_interpreter_is_gone(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/python\n", encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    done = run(home, "small", str(script))
    assert done.returncode == 127
    assert "`/no/such/python` is not there" in done.stderr


def test_a_damaged_profile_is_told(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path / "home")
    small_home.environment(shop)
    (shop.home.record("small", 1) / "profile.yaml").write_bytes(b"\x00\xff")
    done = run(tmp_path / "home", "small", "python")
    assert done.returncode == 125
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def proven(tmp_path: Path) -> Path:
    """A home whose environment is remembered as it is."""
    root = tmp_path / "home"
    shop = small_home.shop(root)
    small_home.environment(shop)
    remember(shop.home, "small", 1, launch.stamp(shop.home.prefix("small", 1)))
    return root


def test_an_environment_in_order_starts_without_a_word_and_its_bytecode_is_no_change(proven: Path) -> None:
    for _ in range(2):
        code = "import six; print(six.__cached__)"
        done = run(proven, "--strict", "small", "python", "-c", code, PYTHONDONTWRITEBYTECODE="")
        assert (done.returncode, done.stderr) == (0, "")
        assert Path(done.stdout.strip()).exists()


def test_what_changed_is_told_before_the_command_starts(proven: Path) -> None:
    shop = small_home.shop(proven)
    site = small_home.site(shop)
    (site / "six-1.0.dist-info").rename(site / "gone")
    small_home.put(site, "six", "2.0")
    done = run(proven, "small", "python", "-c", "import six; print('ran')")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr == (
        "`small` changed since it last was in order: six-2.0.dist-info is new, six-1.0.dist-info is gone, gone is new; "
        "`envforge audit small` tells all\n"
    )
    assert run(proven, "--quiet", "small", "true").stderr == ""


def test_of_many_changes_the_first_are_named(proven: Path) -> None:
    shop = small_home.shop(proven)
    for number in range(4):
        small_home.put(small_home.site(shop), f"new{number}", "1.0")
    said = run(proven, "small", "true").stderr
    assert "new0-1.0.dist-info is new, new1-1.0.dist-info is new, new2-1.0.dist-info is new, 5 more; " in said


def test_strict_refuses_what_changed(proven: Path) -> None:
    (small_home.site(small_home.shop(proven)) / "late.pth").write_text("import os\n", encoding="utf-8")
    done = run(proven, "--json", "--strict", "small", "echo", "ran")
    assert done.returncode == 125
    assert '"code": "changed-since-audit"' in done.stdout
    assert "late.pth is new" in done.stderr
    assert "ran" not in done.stdout


def test_where_nothing_is_remembered_only_strict_minds(home: Path) -> None:
    assert run(home, "small", "true").stderr == ""
    done = run(home, "--json", "--strict", "small", "true")
    assert done.returncode == 125
    assert '"code": "never-audited"' in done.stdout


def test_who_may_only_read_can_run(proven: Path) -> None:
    record = small_home.shop(proven).home.record("small", 1)
    record.chmod(0o500)
    try:
        assert run(proven, "--strict", "small", "true").returncode == 0
    finally:
        record.chmod(0o700)
