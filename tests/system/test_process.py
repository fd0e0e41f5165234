"""Children end as they should, all of them, whatever they say and however they die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envforge.system import process
from envforge.system.process import Completed

ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
SOURCE = str(Path(process.__file__).parents[2])


def python(code: str, *arguments: str, timeout: float | None = None, log: Path | None = None) -> Completed:
    return process.run([sys.executable, "-c", code, *arguments], env=ENV, timeout=timeout, log=log)


def alive(pid: int) -> bool:
    """Whether a process is there and is more than a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"


def gone(pid: int) -> bool:
    last = time.monotonic() + 20
    while alive(pid):
        if time.monotonic() > last:
            os.kill(pid, signal.SIGKILL)
            return False
        time.sleep(0.01)
    return True


def wait_for(path: Path) -> str:
    last = time.monotonic() + 20
    while not (path.exists() and path.read_text().endswith("\n")):
        if time.monotonic() > last:
            pytest.fail(f"{path} does not come")
        time.sleep(0.01)
    return path.read_text()


@pytest.mark.parametrize("status", [0, 1, 2, 42, 125, 255])
def test_an_exit_status_is_what_it_was(status: int) -> None:
    completed = process.run(["/bin/sh", "-c", f"exit {status}"], env=ENV)
    assert (completed.status, completed.signal, completed.ok) == (status, None, status == 0)
    assert completed.ending() == f"exit status {status}"


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL", "SIGTERM", "SIGILL", "SIGPIPE"])
def test_a_signal_is_named(name: str) -> None:
    completed = process.run(["/bin/sh", "-c", f"kill -{name[3:]} $$"], env=ENV)
    assert (completed.status, completed.signal, completed.ok) == (None, name, False)
    assert completed.ending() == f"killed by {name}"


def test_a_signal_that_has_no_name() -> None:
    completed = process.run(["/bin/sh", "-c", "kill -35 $$"], env=ENV)
    assert completed.status is None
    assert "35" in completed.ending()


def test_arguments_arrive_as_they_are() -> None:
    words = ["", "a\nb", "--x=y", "é", "*", "_in", "$HOME", "a b", "'", "%s"]
    completed = python("import sys; print(ascii(sys.argv[1:]))", *words)
    assert completed.stdout.strip() == ascii(words)


def test_the_environment_is_what_is_given_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKED", "yes")
    completed = python("import os; print(sorted(os.environ))")
    assert completed.stdout.strip() == str(sorted(ENV))


def test_there_is_no_input() -> None:
    assert python("import sys; print(repr(sys.stdin.read()))").stdout.strip() == "''"


def test_a_folder_to_start_in(tmp_path: Path) -> None:
    completed = process.run([sys.executable, "-c", "import os; print(os.getcwd())"], env=ENV, cwd=tmp_path)
    assert completed.stdout.strip() == str(tmp_path)


def test_what_cannot_be_decoded_is_replaced() -> None:
    completed = python("import os; os.write(1, b'a\\xffb\\n'); os.write(2, b'\\xfe\\n'); os.write(1, b'end')")
    assert completed.stdout == "a\ufffdb\nend"
    assert completed.stderr == "\ufffd\n"


def test_signs_of_several_bytes_are_not_torn() -> None:
    text = "é漢" * 60_000
    completed = python("import sys; sys.stdout.buffer.write(('é漢' * 60_000).encode())")
    assert completed.stdout == text


def test_much_output_on_both_streams(tmp_path: Path) -> None:
    code = "import sys\nfor n in range(20_000): print('out', n); print('err', n, file=sys.stderr)"
    log = tmp_path / "log"
    completed = python(code, log=log)
    assert completed.stdout == "".join(f"out {number}\n" for number in range(20_000))
    assert completed.stderr == "".join(f"err {number}\n" for number in range(20_000))
    assert len(log.read_text().splitlines()) == 40_000


def test_the_log_is_appended_to(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    python("import os; print('one'); os.write(2, b'\\xff\\n')", log=log)
    assert log.read_text().startswith("before\n")
    assert set(log.read_text().splitlines()) == {"before", "one", "\ufffd"}


def test_a_log_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        python("pass", log=tmp_path / "absent" / "log")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_log_on_a_full_disk_is_an_error_without_a_traceback() -> None:
    code = (
        "import sys; from pathlib import Path; from envforge.system import process\n"
        "try:\n"
        "    process.run(['/bin/echo', 'x'], env={}, log=Path('/dev/full'))\n"
        "except OSError as error:\n"
        "    print(error.errno)\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], env={**ENV, "PYTHONPATH": SOURCE}, capture_output=True, text=True, check=False
    )
    assert child.stdout.strip() == "28", child.stderr
    assert "Traceback" not in child.stderr


def test_on_start_gets_the_child() -> None:
    pids: list[int] = []
    completed = process.run([sys.executable, "-c", "import os; print(os.getpid())"], env=ENV, on_start=pids.append)
    assert completed.stdout.strip() == str(pids[0])


# -- what cannot be started ----------------------------------------------------------------------------------------


def test_what_is_absent(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        process.run([str(tmp_path / "absent")], env=ENV)


def test_what_is_not_executable(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("#!/bin/sh\n")
    with pytest.raises(PermissionError):
        process.run([str(file)], env=ENV)


def test_a_folder_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(PermissionError):
        process.run([str(tmp_path)], env=ENV)


def test_a_relative_path_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match="absolute"):
        process.run(["true"], env=ENV)


@pytest.mark.parametrize("text", ["\0\1garbage", "#!/nonexistent/interpreter\n"], ids=["garbage", "interpreter"])
def test_a_file_that_the_kernel_does_not_run(tmp_path: Path, text: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    file.chmod(0o755)
    with pytest.raises(OSError, match=r".+"):
        process.run([str(file)], env=ENV)


def test_a_folder_to_start_in_that_is_absent(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r".+"):
        process.run(["/bin/true"], env=ENV, cwd=tmp_path / "absent")


def test_arguments_that_are_too_long() -> None:
    with pytest.raises(OSError, match=r".+"):
        process.run(["/bin/true", "x" * 3_000_000], env=ENV)


# -- the end of a child --------------------------------------------------------------------------------------------


def test_a_time_limit() -> None:
    completed = python("import time; print('began', flush=True); time.sleep(60)", timeout=1.0)
    assert completed.timed_out
    assert not completed.ok
    assert completed.ending() == "ended after its time limit"
    assert completed.stdout == "began\n"


def test_a_time_limit_that_is_not_reached() -> None:
    completed = python("print('done')", timeout=60)
    assert (completed.timed_out, completed.stdout) == (False, "done\n")


STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if not child:
    time.sleep(120)
open(sys.argv[1], "w").write(f"{os.getpid()} {child}\\n")
time.sleep(120)
"""


def test_a_time_limit_ends_the_whole_group_though_it_ignores_the_first_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_GRACE", 0.3)
    completed = python(STUBBORN, str(tmp_path / "pids"), timeout=1.5)
    assert completed.timed_out
    assert completed.signal == "SIGKILL"
    assert all(gone(int(pid)) for pid in wait_for(tmp_path / "pids").split())


def test_a_time_limit_ends_what_a_child_left_behind(tmp_path: Path) -> None:
    code = 'sleep 120 & echo $! > "$0"'
    completed = process.run(["/bin/sh", "-c", code, str(tmp_path / "pid")], env=ENV, timeout=1.0)
    assert gone(int(wait_for(tmp_path / "pid")))
    assert completed.timed_out


RUNS = """
import sys
from envforge.system import process
try:
    process.run([sys.executable, "-c", sys.argv[1], sys.argv[2]], env={})
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_a_child_does_not_outlive_us(tmp_path: Path, number: signal.Signals) -> None:
    code = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()}\\n'); time.sleep(120)"
    parent = subprocess.Popen(
        [sys.executable, "-c", RUNS, code, str(tmp_path / "pid")],
        env={**ENV, "PYTHONPATH": SOURCE}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    pid = int(wait_for(tmp_path / "pid"))
    parent.send_signal(number)
    stdout, stderr = parent.communicate(timeout=30)
    assert gone(pid)
    assert "Traceback" not in stderr, stderr
    if number is signal.SIGINT:
        assert (parent.returncode, stdout) == (0, "interrupted\n")


def test_an_interrupt_ends_the_whole_group(tmp_path: Path) -> None:
    code = f"from envforge.system import process; process._GRACE = 0.3\n{RUNS}"
    parent = subprocess.Popen(
        [sys.executable, "-c", code, STUBBORN, str(tmp_path / "pids")],
        env={**ENV, "PYTHONPATH": SOURCE}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    pids = [int(pid) for pid in wait_for(tmp_path / "pids").split()]
    parent.send_signal(signal.SIGINT)
    stdout, stderr = parent.communicate(timeout=30)
    assert all(gone(pid) for pid in pids)
    assert stdout == "interrupted\n", stderr


def test_the_tail_prefers_what_was_said_as_an_error() -> None:
    assert Completed(argv=("x",), status=1, stdout="out", stderr="a\nb\nc").tail(2) == "b\nc"
    assert Completed(argv=("x",), status=1, stdout="out\n", stderr=" \n").tail() == "out"


def test_becoming_another_program() -> None:
    code = "import sys; from envforge.system import process; process.replace(['/bin/sh', '-c', 'exit 7'], env={})"
    child = subprocess.run([sys.executable, "-c", code], env={**ENV, "PYTHONPATH": SOURCE}, check=False)
    assert child.returncode == 7
