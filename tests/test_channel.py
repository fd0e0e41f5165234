"""The kit's conda channel, proved with py-rattler and uv alone."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit import packages
from kit.channel import PLACEHOLDER, SUBDIR, Channel, Package
from kit.index import Fault, Index, serve
from kit.rattling import make
from kit.server import Site
from kit.wheels import Wheel
from uv import find_uv_bin

HELLO = {"demo/__init__.py": "import sys\n\n\ndef main():\n    print('hello from', sys.prefix)\n"}
PYTHON = packages.python()
DEMO = packages.module("demo", "1.0", files=HELLO, scripts={"demo": "demo:main"})
PREFIXED = packages.prefixed()
THREE = (PYTHON, DEMO, PREFIXED)
OTHER = "linux-aarch64" if SUBDIR == "linux-64" else "linux-64"


def run(*command: str | Path) -> str:
    """What a command of a new environment says, with nothing of the host's."""
    environment = {"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def recorded(prefix: Path) -> list[dict[str, Any]]:
    """The rows of conda-meta, each of which is true: a symlink has the sha256 of its text."""
    documents = [json.loads(path.read_text()) for path in sorted((prefix / "conda-meta").glob("*.json"))]
    rows: list[dict[str, Any]] = [row for document in documents for row in document["paths_data"]["paths"]]
    for row in rows:
        path = prefix / row["_path"]
        data = str(path.readlink()).encode() if row["path_type"] == "softlink" else path.read_bytes()
        assert hashlib.sha256(data).hexdigest() == row.get("sha256_in_prefix", row["sha256"]), row
    return rows


def test_py_rattler_makes_an_environment_from_it(tmp_path: Path) -> None:
    with serve({"forge": Channel(packages=THREE)}) as server:
        made = make(tmp_path, server.url("forge"), "demo", "prefixed")
        assert made.error is None
        assert made.packages == {package.filename for package in THREE}
        again = make(tmp_path, server.url("forge"), "demo", "prefixed", name="again")
        assert again == made
        assert [request.status for request in server.requests("file", "noarch/demo-*")] == [200]
    env = tmp_path / "env"
    assert run(env / "bin/python", "-c", "import demo, sys; print(sys.prefix)") == str(env)
    assert run(env / "bin/demo") == f"hello from {env}"
    assert run(tmp_path / "again/bin/demo") == f"hello from {tmp_path / 'again'}"


def test_the_prefix_takes_the_place_of_the_placeholder(tmp_path: Path) -> None:
    with serve({"forge": Channel(packages=[PREFIXED])}) as server:
        assert make(tmp_path, server.url("forge"), "prefixed").error is None
    env = tmp_path / "env"
    assert run(env / "bin/prefixed") == f"prefix = {env}\nlibraries = {env}/lib"
    packed, binary = PREFIXED.files["share/prefixed/binary"], (env / "share/prefixed/binary").read_bytes()
    assert isinstance(packed, bytes)
    assert (len(binary), binary.count(bytes(env) + b"/lib\0"), binary.count(bytes(env))) == (len(packed), 1, 2)
    rows = {row["_path"]: row for row in recorded(env)}
    modes = {path: row.get("file_mode") for path, row in rows.items()}
    assert modes == {"bin/prefixed": "text", "share/prefixed/text": "text", "share/prefixed/binary": "binary"}
    assert all(row["sha256_in_prefix"] != row["sha256"] for row in rows.values())


def test_what_conda_meta_says_of_every_kind_of_file_is_true(tmp_path: Path) -> None:
    with serve({"forge": Channel(packages=THREE)}) as server:
        assert make(tmp_path, server.url("forge"), "demo", "prefixed").error is None
    kinds = {row["path_type"] for row in recorded(tmp_path / "env")}
    assert kinds == {"hardlink", "softlink", "unix_python_entry_point"}


@pytest.mark.slow
def test_uv_and_pip_take_it_for_a_virtual_environment(tmp_path: Path) -> None:
    wheel = Wheel(name="six", version="1.0")
    needs = packages.module("needs", "1.0", requires=("demo>=1",))
    sites: dict[str, Site] = {
        "forge": Channel(packages=[*THREE, packages.pip(), needs]),
        "pypi": Index(artefacts=[wheel]),
    }
    with serve(sites) as server:
        assert make(tmp_path, server.url("forge"), "needs", "pip").error is None
        python = tmp_path / "env/bin/python"
        uv = [find_uv_bin(), "--no-config", "--no-cache", "pip"]
        run(*uv, "install", "--python", python, "--default-index", server.url("pypi"), "six")
    run(*uv, "check", "--python", python)
    listed = json.loads(run(tmp_path / "env/bin/pip", "list", "--format", "json", "-v"))
    installers = {row["name"]: row["installer"] for row in listed}
    assert installers == {"demo": "conda", "needs": "conda", "pip": "conda", "six": "uv"}


def test_packages_are_the_same_bytes_every_time() -> None:
    assert [replace(package).bytes() for package in THREE] == [package.bytes() for package in THREE]
    assert DEMO.tampered() != DEMO.bytes()


def test_credentials_are_asked_for_by_pages_and_files(tmp_path: Path) -> None:
    with serve({"forge": Channel(packages=THREE, auth="user:secret")}) as server:
        assert "401" in (make(tmp_path, server.url("forge"), "demo").error or "")[1]
        assert not server.requests("file")
        server.forget()
        assert make(tmp_path, server.url("forge"), "demo", auth="user:secret").error is None
        assert {request.status for request in server.requests("file")} == {200}


BAD = {
    "wrong hash": (Channel(packages=THREE, faults=[Fault(file="noarch/demo-*", other=True)]), "hash mismatch"),
    "no file": (Channel(packages=THREE, hidden=["noarch/demo-*"]), "404"),
    "no subdir": (Channel(packages=THREE, faults=[Fault(page="noarch/*", status=404)]), "could not find subdir"),
    "no Python": (Channel(packages=[DEMO]), "no candidates"),
}


@pytest.mark.parametrize("name", BAD)
def test_faults_fail_the_install(tmp_path: Path, name: str) -> None:
    channel, message = BAD[name]
    with serve({"forge": channel}) as server:
        error = make(tmp_path, server.url("forge"), "demo").error
    assert error is not None
    assert message in error[1]


def test_a_release_appears_and_goes(tmp_path: Path) -> None:
    newer = replace(DEMO, version="2.0")
    with serve({"forge": Channel(packages=THREE)}) as server:
        server.put("forge", newer)
        assert newer.filename in make(tmp_path, server.url("forge"), "demo").packages
        server.withdraw("forge", "*/demo-2*")
        assert DEMO.filename in make(tmp_path, server.url("forge"), "demo").packages
        assert make(tmp_path, f"{server.base}/nowhere", "demo").error is not None


def test_a_package_for_another_architecture_is_offered_there_alone(tmp_path: Path) -> None:
    elsewhere = Package(name="tool", version="1.0", subdir_of=OTHER)
    with serve({"forge": Channel(packages=[elsewhere])}) as server:
        made = make(tmp_path, server.url("forge"), "tool", subdirs=[OTHER, "noarch"])
        assert (made.packages, made.error) == ({elsewhere.filename}, None)
        assert make(tmp_path, server.url("forge"), "tool", subdirs=[SUBDIR, "noarch"]).error is not None


@pytest.mark.slow
def test_a_packed_python_stands_by_itself(tmp_path: Path) -> None:
    with serve({"forge": Channel(packages=[packages.packed_python(), DEMO])}) as server:
        assert make(tmp_path, server.url("forge"), "demo").error is None
    env = tmp_path / "env"
    code = """if True:
        import json, pathlib, sqlite3, ssl, sys, sysconfig
        used = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines()}
        print(json.dumps([sys.prefix, sys.base_prefix, sysconfig.get_config_var("prefix"), ssl.__file__, sorted(used)]))
    """
    prefix, base, built_for, module, used = json.loads(run(env / "bin/python", "-c", code))
    assert (prefix, base, built_for) == (str(env), str(env), str(env))
    assert Path(module).is_relative_to(env)
    libraries = [path for path in used if re.search(r"libpython|lib-dynload", path)]
    assert libraries
    assert all(Path(path).is_relative_to(env) for path in libraries)
    assert run(env / "bin/demo") == f"hello from {env}"
    placeholders = [row["_path"] for row in recorded(env) if row.get("prefix_placeholder") == PLACEHOLDER]
    assert [Path(path).name.partition("__")[0] for path in placeholders] == ["_sysconfigdata"]
