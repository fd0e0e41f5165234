"""`envforge import` as a command, what it makes planned on real wheels, and any text at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.cli import PYTHON, Cli
from kit.index import Index, serve
from kit.wheels import Wheel

from envforge.cli.entry import execute
from envforge.model.errors import UsageError
from envforge.profiles import loader
from envforge.profiles.importing import detect, render

SIX = Wheel(name="six", version="1.0.0")
IDNA = Wheel(name="idna", version="3.0.0", requires=("six",))
TORCH = Wheel(name="torch", version="2.7.1+cu126")
OTHER = Wheel(name="torch", version="2.8.0")


def test_a_script_becomes_a_profile_that_plans(tmp_path: Path) -> None:
    cli = Cli(root=tmp_path)
    indexes = {"pypi": Index(artefacts=[SIX, IDNA, OTHER]), "torch": Index(artefacts=[TORCH], path="whl/cu126")}
    with serve(indexes) as server:
        (cli.work / "more.txt").write_text("idna==3.0.0\n")
        (cli.work / "install.sh").write_text(
            f"uv venv --python {PYTHON} demo\n"
            f"pip install torch==2.7.1+cu126 --index-url {server.url('torch')}\n"
            f"pip install -r more.txt --index-url {server.url('pypi')}\n"
        )
        answer = cli.run("import", "install.sh", "-o", "demo.yaml")
        assert answer.exit == 0, answer
        planned = cli.run("plan", "./demo.yaml")
    assert planned.exit == 0, planned
    assert [step["name"] for step in planned.data["steps"]] == ["torch", "idna"]
    changes = [
        [(change["name"], change["to"], change["index"]) for change in step["changes"]]
        for step in planned.data["steps"]
    ]
    assert changes[0] == [("torch", "2.7.1+cu126", "torch-cu126")]
    assert {name: version for name, version, _ in changes[1]} == {"idna": "3.0.0", "six": "1.0.0"}
    assert answer.data["name"] == "demo"
    assert answer.data["format"] == "script"
    assert answer.data["written"] == "demo.yaml"
    assert answer.data["profile"] == (cli.work / "demo.yaml").read_text()
    assert {note["kind"] for note in answer.data["notes"]} == {"assumed"}
    assert [note["line"] for note in answer.data["notes"] if note["about"] == "steps.torch"] == [2]


def test_requirements_and_a_lock_plan(tmp_path: Path) -> None:
    cli = Cli(root=tmp_path)
    with serve({"pypi": Index(artefacts=[SIX, IDNA])}) as server:
        url = server.url("pypi")
        (cli.work / "requirements.txt").write_text(f"-i {url}\nidna>=3\n")
        (cli.work / "pylock.toml").write_text(
            f'lock-version = "1.0"\nrequires-python = "=={PYTHON}.*"\n'
            f'[[packages]]\nname = "six"\nversion = "1.0.0"\nindex = "{url}"\n'
        )
        first = cli.run("import", "requirements.txt", "--name", "first")
        text = first.data["profile"].replace("'3.11'", f"'{PYTHON}'")
        (cli.work / "first.yaml").write_text(text)
        assert cli.run("import", "pylock.toml", "-o", "second.yaml").exit == 0
        for name, wanted in (("first", {"idna": "3.0.0", "six": "1.0.0"}), ("second", {"six": "1.0.0"})):
            planned = cli.run("plan", f"./{name}.yaml")
            assert planned.exit == 0, planned
            assert {change["name"]: change["to"] for change in planned.data["steps"][0]["changes"]} == wanted
    assert first.data["written"] is None


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def run(*words: str) -> int:
    return execute(["--home", "forge", "import", *words])


def test_it_is_printed_and_the_format_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "requirements.txt").write_text("six\n--pre\n")
    assert run("requirements.txt") == 0
    printed = capsys.readouterr()
    profile = loader.loads(printed.out, "x.yaml")
    assert profile.name == here.name
    assert profile.steps[0].arguments == ("six",)
    assert printed.err == "`requirements.txt` is read as a requirements file of pip\n"
    assert not (here / "forge").exists()


def test_it_is_written_and_the_notes_are_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "requirements.txt").write_text("six\n--pre\n")
    assert run("requirements.txt", "--output", "first.yaml", "--name", "first") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("first.yaml: a first profile `first` from requirements.txt\n")
    assert "not carried over (line 2): `--pre`" in printed.out
    assert loader.load(here / "first.yaml").name == "first"


def test_nothing_is_overwritten(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "requirements.txt").write_text("six\n")
    (here / "there.yaml").write_text("mine\n")
    (here / "link.yaml").symlink_to(here / "nowhere.yaml")
    for name in ("there.yaml", "link.yaml"):
        assert run("requirements.txt", "-o", name) == 2
        assert "exists" in capsys.readouterr().err
    assert (here / "there.yaml").read_text() == "mine\n"
    assert not (here / "nowhere.yaml").exists()
    assert run("requirements.txt", "-o", "no/such/folder.yaml") == 1


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("gone.txt", None, "unreadable-file"),
        ("binary.txt", b"\0\1\2", "unreadable-file"),
        ("empty.txt", b"", "unknown-format"),
        ("x.yaml", b"a: [\n", "invalid-import"),
        ("pylock.toml", b"lock-version = '9.0'\npackages = []\n", "invalid-import"),
        (".", None, "unreadable-file"),
    ],
)
def test_bad_input(here: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | None, code: str) -> None:
    if content is not None:
        (here / name).write_bytes(content)
    assert run(name, "--json") == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == code


@pytest.mark.parametrize("name", ["-x", "a b", ""])
def test_a_name_that_cannot_be(here: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (here / "requirements.txt").write_text("six\n")
    assert run("requirements.txt", f"--name={name}") == 2
    assert "cannot name an environment" in capsys.readouterr().err


NAMES = (
    "requirements.txt", "freeze", "environment.yml", "conda-lock.yml", "pylock.toml", "install.sh", "README.md", "list",
)  # fmt: skip
PIECES = st.sampled_from([
    "name: x\n", "dependencies:\n", "  - numpy=1\n", "  - pip:\n", "    - six\n", "channels: [a]\n", "version: 1\n",
    "package:\n", "metadata: {}\n", "  - {name: a, version: '1', manager: pip, platform: linux-64}\n",
    'lock-version = "1.0"\n', "[[packages]]\n", 'name = "six"\n', 'version = "1"\n', "marker = \"os_name == 'x'\"\n",
    "pip install ", "conda create -n x ", "six", "torch==2.0+cu118", " @ git+https://u:p@h/x", "-r ", "-e ", "-i ",
    "https://h/whl/cu118", " --hash=sha256:1", "; python_version<'3'", "\\\n", "&&", "||", "\n", " ", "'", '"', "$X",
    "${Y:-1}", "$(", "`", "<<E\n", ">=2", "<", "#", "export A=1\n", "```bash\n", "```\n", "if x; then ", "\u2028",
    "\x85", "\x07", "[", "]", "{", "}", ":", "=", "&a ", "*a", "<<: *a\n", "!t ", "\t", "python=3.10\n", "-c ", "~",
    "@EXPLICIT\n", "https://u:p@h/t/k/c/noarch/", "a-1-0.conda", "# pip a @ ", "# platform: linux-64\n", "a::b=1=0",
])  # fmt: skip
TEXTS = st.one_of(
    st.lists(PIECES, max_size=25).map("".join),
    st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=25).map("".join),
)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(NAMES), text=TEXTS)
def test_any_text_gives_a_profile_that_loads_or_an_error_for_the_user(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    try:
        draft = detect.draft(path, name=None)
    except UsageError as error:
        told = {"unknown-format", "invalid-import", "nothing-to-import", "unreadable-file"}
        assert error.code in told  # noqa: PT017 - either ending is right
        return
    written = render.render(draft)
    profile = loader.loads(written, "x.yaml")
    assert profile.steps == draft.profile.steps
    assert profile.conda == draft.profile.conda
    assert "u:p@" not in written


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(NAMES), content=st.binary(max_size=60))
def test_any_bytes_give_no_traceback(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    try:
        loader.loads(render.render(detect.draft(path, name="x")), "x.yaml")
    except UsageError as error:
        assert error.code != "invalid-profile", error.cause  # noqa: PT017 - either ending is right
