"""An update takes from the lock what did not change, and nothing else."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path

import pytest
from engines.house import House
from kit.index import Index, serve
from kit.wheels import Sdist, Wheel

from envforge.model.errors import EnvforgeError, UsageError
from envforge.system import http

SIX = Wheel(name="six", version="1.0.0")
SEVEN = Wheel(name="six", version="2.0.0")
IDNA = Wheel(name="idna", version="1.0.0")
STEP = {"name": "six", "install": ["six"]}
NEXT = {"name": "idna", "install": ["idna"]}


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(http, "_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # roots take long to read


def test_leading_steps_come_from_the_lock_until_something_differs(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        made.create([STEP])
        server.put("pypi", SEVEN)
        assert made.update([STEP, NEXT]).exit == 0
        assert made.installed() == {"six": "1.0.0", "idna": "1.0.0"}
        built = made.update([NEXT, STEP])
        assert (built.exit, made.installed()) == (0, {"six": "2.0.0", "idna": "1.0.0"})
        assert (built.data.generation, built.data.switched) == (3, True)
        made.update([NEXT, STEP], guards=[{"hold": "six<2", "constrain": True}])
        assert made.installed()["six"] == "1.0.0"
        assert made.update([]).exit == 0
        assert made.installed() == {}


@pytest.mark.slow
def test_after_a_step_that_ran_something(tmp_path: Path) -> None:
    """What a `run` installs has no lock; what comes after it is resolved anew, and it is run again."""
    mark = tmp_path / "mark"
    code = f"open({str(mark)!r}, 'a').write('x')"
    harmless = {"name": "run", "run": ["python", "-c", code]}
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        made.create([STEP, harmless, NEXT])
        server.put("pypi", SEVEN, Wheel(name="idna", version="2.0.0"))
        assert made.update([STEP, harmless, NEXT, {"name": "gone", "uninstall": ["absent"]}]).exit == 0
        assert made.installed() == {"six": "1.0.0", "idna": "1.0.0"}
        assert mark.read_text() == "xx"
        assert made.update([STEP, {**harmless, "environment": {"A": "b"}}, NEXT]).exit == 0
        assert made.installed() == {"six": "1.0.0", "idna": "2.0.0"}


@pytest.mark.slow
def test_after_a_step_that_installed_something(tmp_path: Path) -> None:
    code = (
        "import pathlib, sysconfig\n"
        "site = pathlib.Path(sysconfig.get_path('purelib'))\n"
        "info = site / 'mine-1.0.dist-info'\n"
        "info.mkdir(exist_ok=True)\n"
        "(info / 'METADATA').write_text('Metadata-Version: 2.1\\nName: mine\\nVersion: 1.0\\n')\n"
        "(info / 'RECORD').write_text('mine-1.0.dist-info/METADATA,,\\nmine-1.0.dist-info/RECORD,,\\n')\n"
    )
    run = {"name": "run", "run": ["python", "-c", code]}
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        made = House(tmp_path, server)
        assert made.create([STEP, run, NEXT]).exit == 0
        server.put("pypi", SEVEN, Wheel(name="idna", version="2.0.0"))
        assert made.update([STEP, run, NEXT]).exit == 0
        assert made.installed() == {"six": "1.0.0", "mine": "1.0", "idna": "2.0.0"}


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["wheels", "all"])
def test_a_built_wheel_that_is_gone_from_the_store(tmp_path: Path, gone: str) -> None:
    old = Sdist(wheel=Wheel(name="old", version="1.0.0"), metadata="dynamic")
    first = {"name": "old", "install": ["old"]}
    with serve({"pypi": Index(artefacts=[old, IDNA])}) as server:
        made = House(tmp_path, server)
        assert made.create([first]).exit == 0
        shutil.rmtree(made.settings.cache / "built" / ("wheels" if gone == "wheels" else ""))
        try:
            assert made.update([first, NEXT]).exit == 0
            assert made.installed() == {"old": "1.0.0", "idna": "1.0.0"}
        except EnvforgeError as error:
            assert error.code == "not-restorable", (error, error.cause, error.hint)  # noqa: PT017 - either is honest


def test_what_cannot_be_updated(tmp_path: Path) -> None:
    with serve({"pypi": Index(artefacts=[SIX])}) as server:
        made = House(tmp_path, server)
        made.shop.home.ensure()
        with pytest.raises(UsageError, match="no environment"):
            made.update([STEP])
        made.create([STEP])
        profile = made.folder / "demo.yaml"
        text = profile.read_text()
        profile.unlink()
        from envforge.forge.update import update

        with pytest.raises(EnvforgeError, match="no longer there"):
            update(made.shop, "demo")
        profile.write_text(text.replace("schema: 1", "schema: one"))
        with pytest.raises(UsageError):
            update(made.shop, "demo")
        assert made.installed() == {"six": "1.0.0"}
