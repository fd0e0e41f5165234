"""Every verb once, as a user types it: what the wheel brings works as a whole, from the entry point to its data."""

from __future__ import annotations

import venv
from pathlib import Path

from kit.check import ended
from kit.cli import Cli
from kit.index import Index, serve
from kit.wheels import Wheel

from envforge.cli.app import VERBS

# A verb more is a line more.
STORY = """
profiles
machine
import requirements.txt -o profiles/demo.yaml --name demo
plan demo
create demo
list
show demo
path demo
audit demo --deep
inspect demo
suggest demo
smoke demo
repair demo
accept demo
lock demo
export demo --format requirements
bundle demo
create --bundle demo.tar --name carried
rebuild demo
history demo
diff demo/1.1 demo
rollback demo
update demo
seal demo
unseal demo
models demo --fetch --check
adopt place --profile demo --name mine
prune
remove mine
""".strip().splitlines()


def test_every_verb(tmp_path: Path) -> None:
    cli = Cli(root=tmp_path)
    venv.create(cli.work / "place", symlinks=True)
    with serve({"pypi": Index(artefacts=[Wheel(name="six", version="1.0.0")])}) as server:
        (cli.work / "requirements.txt").write_text(f"-i {server.url('pypi')}\nsix\n")
        answers = {}
        for line in STORY:
            answers[line] = ended(cli.run(*line.split()))
            if line.startswith("import"):
                with (cli.work / "profiles/demo.yaml").open("a") as draft:
                    draft.write("smoke: [{import: [six]}]\n")
        ran = cli.run("run", "demo", "--", "python", "-c", "import six; print(six.__version__)")
    shipped = {each["name"]: each["problem"] for each in answers["profiles"].data["profiles"]}
    assert shipped.items() >= {"quickstart": None, "xinv100": None}.items(), "with the recipes that they name"
    assert (ran.exit, ran.stdout) == (0, "1.0.0\n")
    assert cli.installed() == {"six": "1.0.0"}
    assert {line.split()[0] for line in STORY} | {"run"} == set(VERBS)
