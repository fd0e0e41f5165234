from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envforge.model.errors import EnvforgeError
from envforge.store.layout import Home
from envforge.store.locking import hold, holder


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home", tmp_path / "cache")
    made.ensure()
    return made


HOLD = """
import sys
from pathlib import Path
from envforge.store.layout import Home
from envforge.store.locking import hold
root = Path(sys.argv[1])
with hold(Home(root, root / "cache"), "x", "create x"):
    print("held", flush=True)
    sys.stdin.read()
"""


def another_process(home: Home) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_the_second_process_is_told_who_holds_it(home: Home) -> None:
    with another_process(home) as child:
        with pytest.raises(EnvforgeError, match="`x`") as caught, hold(home, "x", "update x"):
            pass
        assert caught.value.code == "locked"
        assert caught.value.cause is not None
        assert "envforge create x" in caught.value.cause
        assert str(child.pid) in caught.value.cause
        with hold(home, "y", "create y"):
            pass
        child.communicate("")
    with hold(home, "x", "update x"):
        pass


def test_a_killed_holder_holds_nothing(home: Home) -> None:
    with another_process(home) as child:
        child.kill()
        child.wait()
    with hold(home, "x", "update x"):
        who = holder(home, "x")
        assert who is not None
        assert (who.pid, who.command) == (os.getpid(), "update x")


def test_the_second_in_one_process_is_refused_too(home: Home) -> None:
    with hold(home, "x", "create x"), pytest.raises(EnvforgeError) as caught, hold(home, "x", "create x"):
        pass
    assert caught.value.code == "locked"


def test_the_lock_falls_with_an_exception_and_leaves_no_holder(home: Home) -> None:
    with pytest.raises(KeyboardInterrupt), hold(home, "x", "create x"):
        raise KeyboardInterrupt
    assert holder(home, "x") is None
    with hold(home, "x", "create x"):
        pass


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": "x"}', "\x00"])
def test_an_unreadable_holder_is_nobody(home: Home, text: str) -> None:
    (home.locks_root / "x.holder.json").write_text(text)
    assert holder(home, "x") is None


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(EnvforgeError) as caught, hold(Home(tmp_path / "home", tmp_path), "x", "create x"):
        pass
    assert caught.value.code == "home-not-writable"
