"""Shell scripts, and Markdown pages that hold such."""

from __future__ import annotations

from pathlib import Path

import pytest
from profiles.importing import Case

from envforge.model.draft import SourceFormat
from envforge.model.errors import UsageError
from envforge.model.profile import Action, Backend
from envforge.profiles.importing import detect
from envforge.profiles.importing.shell_words import commands, resolved

SCRIPT = """\
#!/bin/bash
set -euo pipefail
NAME=xinv
CU=cu126
conda create -n $NAME python=3.10 -y && conda activate "$NAME"
export CUDA_DEVICE_ORDER=PCI_BUS_ID HF_TOKEN=geheim
export PATH=/usr/local/cuda/bin:$PATH
export WHERE=$(pwd)
pip install -U pip
pip install torch==2.7.1 'torchvision' --index-url https://dl.example.org/whl/$CU
pip3 install vllm==0.10.0 --extra-index-url "https://wheels.vllm.example/0.10.0/${CU}"
MAX_JOBS=4 uv pip install flash-attn --no-build-isolation
sudo apt-get install -y libfoo; git clone https://me:geheim@git.example.org/x.git
cat > notes.txt <<'END'
pip install nothing
END
python -m pip install "xinference[all]" \\
    'transformers>=4.53,<5'   # a comment
pip install numpy<2 || pip install numpy==1.26
pip uninstall -y tensorflow Keras
conda install -c nvidia -c conda-forge cuda-nvcc=12.6
pip install --no-deps torch
"""


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_a_conda_that_brings_only_python_leaves_a_venv(case: Case) -> None:
    content = "conda create -n x -c forge python=3.10 pip\npip install six\nconda install pip\n"
    found = case.draft("install.sh", content)
    assert (found.profile.backend, found.profile.python) == (Backend.VENV, "3.10")
    assert [step.name for step in found.steps] == ["six"]


def test_ordered_lines_become_ordered_steps(case: Case) -> None:
    found = case.draft("install.sh", SCRIPT)
    assert found.format is SourceFormat.SCRIPT
    assert (found.profile.backend, found.profile.python) == (Backend.CONDA, "3.10")
    assert [(step.name, step.action, step.arguments) for step in found.steps] == [
        ("pip", Action.INSTALL, ("pip",)),
        ("torch", Action.INSTALL, ("torch==2.7.1", "torchvision")),
        ("vllm", Action.INSTALL, ("vllm==0.10.0",)),
        ("flash-attn", Action.INSTALL, ("flash-attn",)),
        ("xinference", Action.INSTALL, ("xinference[all]", "transformers>=4.53,<5")),
        ("numpy", Action.INSTALL, ("numpy<2",)),
        ("without-tensorflow", Action.UNINSTALL, ("tensorflow", "keras")),
        ("conda-cuda-nvcc", Action.CONDA, ("cuda-nvcc=12.6",)),
        ("torch-2", Action.INSTALL, ("torch",)),
    ]
    steps = {step.name: step for step in found.steps}
    assert steps["pip"].upgrade
    assert steps["torch-2"].no_deps
    assert steps["flash-attn"].no_build_isolation == ("flash-attn",)
    assert dict(steps["flash-attn"].environment) == {"MAX_JOBS": "4"}
    assert all(step.indexes is None for step in found.steps)
    assert found.indexes["vllm"].packages == ("vllm",)
    assert found.profile.conda.channels == ("nvidia", "conda-forge")
    assert dict(found.profile.environment) == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert "geheim" not in found.text
    assert detect.draft(case.folder / "install.sh", name=None).profile.name == "xinv"


def test_what_a_script_does_besides_is_told(case: Case) -> None:
    found = case.draft("install.sh", SCRIPT)
    said = {
        6: "`HF_TOKEN`: it looks like a credential",
        7: "`PATH`: it belongs to the shell",
        8: "`WHERE`: its value is known only",
        13: "`git clone`",
        14: "here-document",
        19: "only where what stands before it fails",
    }
    assert {line: text for line, text in said.items() if text not in found.lost[line]} == {}
    assert "unquoted" in found.assumed[19]


def test_steps_ask_the_indexes_that_their_lines_named(case: Case) -> None:
    found = case.draft(
        "install.sh",
        "pip install six\npip install mine -i https://pip.company.example/simple\n"
        "pip install torch --extra-index-url https://dl.example.org/whl/cpu\n",
    )
    assert [step.indexes for step in found.steps] == [
        ("torch-cpu", "pypi"),
        ("company", "torch-cpu"),
        ("torch-cpu", "pypi"),
    ]


def test_files_beside_the_script_are_read(case: Case) -> None:
    case.put("requirements.txt", "six\n-r gone.txt\n")
    case.put("env.yml", "name: inner\nchannels: [conda-forge]\ndependencies: [python=3.9, numpy, {pip: [idna]}]\n")
    found = case.draft(
        "install.sh",
        "conda env create -f env.yml\ncd src\npip install -r requirements.txt\n"
        "pip install -r away.txt -e .\nconda env update -f none.yml\n",
    )
    assert found.installs == [("idna",), ("six",)]
    assert found.profile.conda.packages == ("numpy",)
    assert found.profile.python == "3.9"
    assert "gone.txt" in found.lost[2]
    assert "beside the script" in found.lost[2]
    assert "away.txt" in found.lost[4]
    assert "none.yml" in found.lost[5]


@pytest.mark.parametrize(
    ("line", "python", "name"),
    [
        ("python3.12 -m venv server && . server/bin/activate", "3.12", "server"),
        ("python -m venv .venv", "3.11", None),
        ("virtualenv -p python3.9 ~/envs/server", "3.9", "server"),
        ("uv venv --python 3.10", "3.10", None),
        ("uv venv --python=3.10 server", "3.10", "server"),
        ("uv venv -p 3.13.1 .server", "3.13.1", "server"),
    ],
)
def test_venvs(case: Case, line: str, python: str, name: str | None) -> None:
    content = f"{line}\npip install six\n"
    found = case.draft("install.sh", content)
    assert (found.profile.backend, found.profile.python) == (Backend.VENV, python)
    assert found.installs == [("six",)]
    assert detect.draft(found.path, name=None).profile.name == (name or case.folder.name)


@pytest.mark.parametrize(
    "line",
    [
        "sudo -H pip install six",
        "conda run -n x --no-capture-output python -m pip install six",
        "/opt/venv/bin/pip3.10 install --no-cache-dir -q six",
        "time nohup pip install six &",
        "(cd x; pip install six)",
        "if true; then pip install six; fi",
        "$PYTHON -m pip install six --break-system-packages --timeout 60 --root-user-action=ignore",
        "!pip install six",
        "yes | pip install six 2>&1 | tee log.txt > /dev/null",
        "pip --no-input install six",
        "pip install \\\n  six",
        "PKG=six; pip install ${PKG}",
        "pip install ${PKG:-six}",
        "pip install 's'ix",
        "(base) $ pip install six",
    ],
)
def test_how_else_pip_is_called(case: Case, line: str) -> None:
    name = "page.md" if line.startswith("(base)") else "install.sh"
    found = case.draft(name, f"```console\n{line}\n```\n" if name == "page.md" else f"{line}\n")
    assert found.installs == [("six",)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pip install $PKG", "a variable that the source does not set"),
        ("pip install '$six'", "a variable that the source does not set"),
        ("pip install $(cat list)", "a variable that the source does not set"),
        ("pip install `cat list`", "a variable that the source does not set"),
        ("pip download six", "`pip download`"),
        ("uv sync", "`uv sync`"),
        ("poetry install", "`poetry install`"),
        ("python setup.py install", "`python setup.py`"),
        ("login geheim", "`login`"),
        ("conda env remove -n x", "`conda env remove`"),
        ("conda remove numpy", "`conda remove`"),
        ("conda create --file list.txt", "`--file`"),
        ("pip install -t /srv x", "`--target`"),
    ],
)
def test_what_is_not_carried_over(case: Case, line: str, said: str) -> None:
    assert said in case.draft("install.sh", f"pip install idna\n{line}\n").lost[2]


def test_what_an_index_of_torch_is_asked_for_alone_comes_from_it(case: Case) -> None:
    index = "https://dl.example.org/whl/cu121"
    lines = (
        f"pip install xformers --index-url {index}",
        f"pip install numpy --extra-index-url {index}",
        f"pip install pandas -i {index} --extra-index-url https://pip.company.example/simple",
    )
    found = case.draft("install.sh", "\n".join(lines))
    assert found.indexes["torch-cu121"].packages == ("torch", "torchvision", "torchaudio", "xformers")


def test_no_script_is_endless(case: Case) -> None:
    with pytest.raises(UsageError) as caught:
        case.draft("install.sh", "pip install six\n" * 1001)
    assert "more than 1000 steps" in str(caught.value.cause)


def test_conditions_are_taken_as_if_they_held(case: Case) -> None:
    found = case.draft("install.sh", 'if [ -n "$GPU" ]; then\n  pip install a\nelse\n  pip install b\nfi\n')
    assert found.installs == [("a",), ("b",)]
    assert "in every branch" in found.assumed[1]


PAGE = """\
# Server

Text with `pip install nothing`.

```bash
$ conda create -n server python=3.11
Collecting package metadata: done
$ pip install \\
>   six
```

```python
import os  # pip install no
```

1. Then

   ~~~sh
   pip install idna
   ~~~

```
pip install attrs
```

```
some output
```
"""


def test_a_page(case: Case) -> None:
    found = case.draft("README.md", PAGE)
    assert found.format is SourceFormat.README
    assert found.installs == [("six",), ("idna",), ("attrs",)]
    assert "every shell block is taken" in found.assumed[6]
    assert found.lost == {}
    assert detect.draft(found.path, name=None).profile.name == "server"


def test_a_page_without_commands(case: Case) -> None:
    with pytest.raises(UsageError) as caught:
        case.draft("README.md", "# x\n\n```python\npip = 1\n```\n")
    assert caught.value.code == "nothing-to-import"


def test_a_script_that_installs_nothing_says_what_it_does(case: Case) -> None:
    with pytest.raises(UsageError) as caught:
        case.draft("install.sh", "git clone x\nmake\n")
    assert "`git clone`" in str(caught.value.cause)
    assert "`make`" in str(caught.value.cause)


def test_commands_are_known_without_a_name(case: Case) -> None:
    assert case.draft("steps.txt", "pip install six\npip install idna\n").format is SourceFormat.SCRIPT
    assert case.draft("deps", "six\nidna>=3\n").format is SourceFormat.REQUIREMENTS


@pytest.mark.parametrize("content", ["lorem ipsum dolor\n", "{}\n"])
def test_unknown_text_is_told_with_the_formats(case: Case, content: str) -> None:
    with pytest.raises(UsageError) as caught:
        case.draft("file", content)
    assert caught.value.code == "unknown-format"
    assert "`environment.yml`" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a b  c", [["a", "b", "c"]]),
        ("a 'b c' \"d $X\" $X '$X'", [["a", "b c", "d 1", "1", "$X"]]),
        ('a "b\\"c" d\\ e \\\n f', [["a", 'b"c', "d e", "f"]]),
        ("a;b&&c||d|e&f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a > f b 2>&1 c >>g d <h", [["a", "b", "c", "d"]]),
        ("a # b\nc#d", [["a"], ["c#d"]]),
        ("a <<E b\nx y\nE\nc", [["a", "b"], ["c"]]),
        ("a $(b $(c)) ${X} ${Y:-2} ${Z} ${X%%.*}", [["a", "${(...)}", "1", "2", "${Z}", "${...}"]]),
        ("a 'b", [["a", "b"]]),
        ('a "b', [["a", "b"]]),
        ("a>=1 b<2 c", [["a>=1", "b<2", "c"]]),
        ("a $", [["a", "$"]]),
        ("", []),
    ],
)
def test_words_of_a_shell(text: str, wanted: list[list[str]]) -> None:
    found = [[resolved(word, {"X": "1"}) for word in command.words] for command in commands(text)]
    assert found == wanted


def test_lines_of_commands() -> None:
    text = "a\n\nb \\\n c\n'd\ne' f\ncat <<E\nx\nE\ng\n"
    assert [command.line for command in commands(text, 10)] == [10, 12, 14, 16, 19]
