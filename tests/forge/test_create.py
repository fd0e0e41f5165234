"""A build that was interrupted goes on where it can, and starts clean where it must."""

from __future__ import annotations

import gzip
import io
import signal
import ssl
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from engines.house import House
from kit.cli import Cli, finish
from kit.index import Index, serve
from kit.wheels import Sdist, Wheel

from envforge.model.errors import EnvforgeError
from envforge.system import http

SIX = Wheel(name="six", version="1.0.0")
SEVEN = Wheel(name="six", version="2.0.0")
IDNA = Wheel(name="idna", version="1.0.0")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


def failing(flag: Path) -> dict[str, object]:
    """A step that fails until the flag is there."""
    return {"name": "wait", "run": ["python", "-c", f"import os; assert os.path.exists({str(flag)!r})"]}


def interrupted(tmp_path: Path, made: House, steps: list[dict[str, object]]) -> None:
    with pytest.raises(EnvforgeError) as caught:
        made.create(steps)
    assert caught.value.code == "run-failed"
    assert made.shop.home.current("demo") is None


def test_it_goes_on_after_the_last_whole_step(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    steps: list[dict[str, object]] = [
        {"name": "six", "install": ["six"]},
        failing(flag),
        {"name": "idna", "install": ["idna"]},
    ]
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        interrupted(tmp_path, made, steps)
        flag.touch()
        built = made.create(steps)
        assert (built.exit, built.data.continued, built.data.generation) == (0, "six", 1)
        assert made.installed() == {"six": "1.0.0", "idna": "1.0.0"}


@pytest.mark.slow
@pytest.mark.parametrize("why", ["profile", "index", "file", "extra file"])
def test_it_starts_clean_where_the_world_changed(tmp_path: Path, why: str) -> None:
    flag = tmp_path / "flag"
    steps: list[dict[str, object]] = [
        {"name": "six", "install": ["six"]},
        failing(flag),
        {"name": "idna", "install": ["idna"]},
    ]
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        interrupted(tmp_path, made, steps)
        flag.touch()
        prefix = made.shop.home.prefix("demo", 1)
        module = next(prefix.glob("lib/python*/site-packages/six/__init__.py"))
        wanted = {"six": "1.0.0", "idna": "1.0.0"}
        if why == "profile":
            steps = [*steps, {"name": "more", "install": ["six"]}]
        elif why == "index":
            server.put("pypi", SEVEN)
            wanted["six"] = "2.0.0"
        elif why == "file":
            module.unlink()
            module.write_text("other")
        else:
            (module.parent / "more.py").write_text("more")
        built = made.create(steps)
        assert (built.exit, built.data.continued, built.data.generation) == (0, None, 2)
        assert made.installed() == wanted
        assert not prefix.exists()


class Slow(Sdist):
    """An sdist whose wheel is built as long as a file exists; another says that it is being built."""

    def bytes(self) -> bytes:
        plain = io.BytesIO()
        with tarfile.open(fileobj=io.BytesIO(super().bytes())) as old, tarfile.open(fileobj=plain, mode="w") as new:
            for member in old:
                file = old.extractfile(member)
                data = file.read() if file else b""
                if member.name.endswith("/backend.py"):
                    wait = (
                        "import time\n    open(KIT['log'] + '.mark', 'w').close()\n    until = KIT['log'] + '.hold'\n"
                    )
                    wait += "    while os.path.exists(until): time.sleep(0.02)\n"
                    data = data.replace(b'    _note("wheel")\n', f'    _note("wheel")\n    {wait}'.encode())
                member.size = len(data)
                new.addfile(member, io.BytesIO(data))
        return gzip.compress(plain.getvalue(), mtime=0)


def test_an_interrupt_ends_the_builds_of_a_plan(tmp_path: Path) -> None:
    log = tmp_path / "log"
    mark, hold = Path(f"{log}.mark"), Path(f"{log}.hold")
    hold.touch()
    slow = Slow(wheel=Wheel(name="slow", version="1.0.0"), metadata="dynamic", log=str(log))
    with serve({"pypi": Index(artefacts=[slow])}) as server:
        cli = Cli(root=tmp_path)
        made = House(tmp_path, server)
        made.profile([{"name": "slow", "install": ["slow"]}])
        child = cli.start("plan", "demo.yaml")
        last = time.monotonic() + 30
        while not mark.exists():
            assert child.poll() is None, finish(child)
            assert time.monotonic() < last
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        try:
            child.wait(timeout=5)
            late = False
        except subprocess.TimeoutExpired:
            late = True
        hold.unlink()
        answer = finish(child)
        assert answer.exit == 130, str(answer)
        assert not late, "it went on while the build did"
