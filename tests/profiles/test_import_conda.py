"""environment.yml of conda, and locks of conda-lock."""

from __future__ import annotations

from pathlib import Path

import pytest
from profiles.importing import Case

from envforge.model.draft import SourceFormat
from envforge.model.errors import InvalidFileError, UsageError
from envforge.model.profile import Backend, Conda
from envforge.profiles.importing import detect


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


ENVIRONMENT = """\
name: server
channels: [pytorch, conda-forge, nodefaults, "https://conda.example.org/t/to-ken/mine"]
dependencies:
  - python=3.10.4=h12debd9_0
  - pip
  - pytorch::pytorch=2.1
  - cudatoolkit >=11.8,<12
  - pip:
      - --index-url https://private.example.org/simple
      - --extra-index-url https://dl.example.org/whl/cu118
      - notebook>=6.4.4,<7.0.0
      - torchvision==0.16.0+cu118
      - -r more.txt
variables: {CUDA_HOME: /usr/local/cuda, N: 4, HF_TOKEN: geheim, PROXY: "http://me:geheim@host"}
prefix: /home/me/envs/server
platforms: [linux-64, osx-64]
"""


def test_an_environment(case: Case) -> None:
    case.put("more.txt", "six\n")
    found = case.draft("environment.yml", ENVIRONMENT)
    assert found.format is SourceFormat.ENVIRONMENT_YML
    assert found.profile.backend is Backend.CONDA
    assert found.profile.python == "3.10.4"
    assert found.profile.conda.channels == ("pytorch", "conda-forge", "https://conda.example.org/mine")
    assert found.profile.conda.packages == ("pip", "pytorch::pytorch=2.1", "cudatoolkit >=11.8,<12")
    assert found.installs == [("notebook>=6.4.4,<7.0.0", "torchvision==0.16.0", "six")]
    assert found.indexes["pypi"].url == "https://private.example.org/simple"
    assert "torch-cu118" in found.indexes
    assert dict(found.profile.environment) == {"CUDA_HOME": "/usr/local/cuda", "N": "4"}
    assert "geheim" not in found.text
    assert "to-ken" not in found.text
    assert "the build `h12debd9_0` of Python" in found.lost[4]
    assert "`prefix`" in found.lost[15]
    assert "`platforms`" in found.lost[16]
    assert detect.draft(case.folder / "environment.yml", name=None).profile.name == "server"


@pytest.mark.parametrize("pip", ["pip", "pip>=23", "conda-forge::pip=23.1", "setuptools"])
def test_where_only_python_comes_from_conda_a_venv_does(case: Case, pip: str) -> None:
    content = f"name: x\nchannels: [forge]\ndependencies: [python=3.11, '{pip}', {{pip: [six]}}]\n"
    found = case.draft("environment.yml", content)
    assert (found.profile.backend, found.profile.conda) == (Backend.VENV, Conda())
    assert found.installs == [("six",)]
    assert "only Python and pip" in found.assumed[None]
    assert (None in found.lost) == (pip not in {"pip", "setuptools"})


@pytest.mark.parametrize("package", ["setuptools<60", "pipx", "numpy"])
def test_any_other_package_makes_it_a_conda_environment(case: Case, package: str) -> None:
    found = case.draft("environment.yml", f"name: x\ndependencies: [python=3.11, pip, '{package}']\n")
    assert found.profile.backend is Backend.CONDA
    assert found.profile.conda == Conda(channels=("conda-forge",), packages=("pip", package))
    assert "the channel `conda-forge`" in found.assumed[None]


@pytest.mark.parametrize(
    ("channels", "asked"),
    [
        ("[pytorch]", ("pytorch", "conda-forge")),
        ("[pytorch, nodefaults]", ("pytorch",)),
        ("[conda-forge, pytorch]", ("conda-forge", "pytorch")),
        ("[defaults]", ("conda-forge",)),
        ("[nodefaults]", ("conda-forge",)),
    ],
)
def test_what_conda_asks_besides_the_channels_that_are_named(case: Case, channels: str, asked: tuple[str, ...]) -> None:
    found = case.draft("environment.yml", f"name: x\nchannels: {channels}\ndependencies: [numpy]\n")
    assert found.profile.conda.channels == asked


def test_channels_that_a_profile_cannot_name_are_told(case: Case) -> None:
    found = case.draft(
        "environment.yml",
        "name: x\nchannels: [nodefaults, defaults, ./mine, 'https://conda.anaconda.example/bioconda']\n"
        "dependencies: ['https://c.example/other::a=1', '<2']\n",
    )
    assert found.profile.conda == Conda(channels=("bioconda", "https://c.example/other"), packages=("a=1",))
    assert "`defaults`" in found.lost[2]
    assert "`./mine`" in found.lost[2]
    assert "`a` comes from the first channel" in found.assumed[3]
    assert "no match spec" in found.lost[3]


EXPLICIT = """\
# conda create --name x --file this
# platform: linux-64
@EXPLICIT
https://conda.anaconda.example/conda-forge/linux-64/_libgcc_mutex-0.1-conda_forge.tar.bz2#d7c89558ba9fa0495403155b64376d81
https://me:geheim@conda.example.org/t/to-ken/mine/linux-64/python-3.10.14-hd12c33a_0_cpython.conda#sha256:00
https://conda.anaconda.example/conda-forge/noarch/tzdata-2024a-h0c530f3_0.conda
https://conda.anaconda.example/conda-forge/linux-64/x-y-1%211.0-0.conda
# pip torch @ https://dl.example.org/whl/cu126/torch-2.7.1%2Bcu126-cp310-cp310-manylinux_2_28_x86_64.whl#sha256=00
# pip own @ https://f.example.org/own.zip
"""


@pytest.mark.parametrize("name", ["list", "conda-linux-64.lock", "requirements.txt", "x.explicit.txt"])
def test_an_explicit_list(case: Case, name: str) -> None:
    found = case.draft(name, EXPLICIT)
    assert found.format is SourceFormat.CONDA_EXPLICIT
    assert (found.profile.backend, found.profile.python) == (Backend.CONDA, "3.10.14")
    assert found.profile.conda == Conda(
        channels=("conda-forge", "https://conda.example.org/mine"),
        packages=("_libgcc_mutex=0.1=conda_forge", "tzdata=2024a=h0c530f3_0", "x-y=1!1.0=0"),
    )
    assert found.installs == [("torch==2.7.1", "own @ https://f.example.org/own.zip")]
    assert "geheim" not in found.text
    assert "to-ken" not in found.text
    assert "the order of the channels" in found.assumed[None]
    assert "the hashes" in found.lost[None]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("# platform: osx-64\n@EXPLICIT\n", "list:1:1: the list is for `osx-64`"),
        ("@EXPLICIT\nnumpy=1.0\n", "list:2:1: a line of the list is the URL of a package"),
        ("@EXPLICIT\n/opt/pkgs/linux-64/a-1-0.conda\n", "list:2:1: a line of the list is the URL of a package"),
        ("@EXPLICIT\nhttps://c.example/mine/win-64/a-1-0.conda\n", "list:2:1: `a` is for `win-64`"),
    ],
)
def test_lists_that_cannot_be_read(case: Case, content: str, said: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        case.draft("list", content)
    assert said in str(caught.value.cause)


@pytest.mark.parametrize(
    ("spec", "python"),
    [
        ("python=3.10", "3.10"),
        ("python==3.10.4", "3.10.4"),
        ("python 3.10.*", "3.10"),
        ("python=3.9.*", "3.9"),
        ("conda-forge::python=3.12", "3.12"),
        ("python>=3.8,<3.11", "<3.11,>=3.8"),
        ("python 3.8.*,!=3.8.1", "!=3.8.1,==3.8.*"),
        ("python[version='>=3.9']", ">=3.9"),
        ("Python 3.10.4 h12_0_cpython", "3.10.4"),
        ("python", "3.11"),
        ("python=2.7", "3.11"),
        ("python=3.8|3.9", "3.11"),
    ],
)
def test_the_python(case: Case, spec: str, python: str) -> None:
    found = case.draft("environment.yml", f'dependencies:\n  - "{spec}"\n  - numpy\n')
    assert found.profile.python == python
    assert found.profile.conda.packages == ("numpy",)
    assert (2 in found.lost) == (spec in {"python=2.7", "python=3.8|3.9", "Python 3.10.4 h12_0_cpython"})


def test_a_spec_keeps_its_channel_and_loses_its_line_breaks(case: Case) -> None:
    found = case.draft(
        "environment.yml", 'dependencies: [conda-forge::python=3.12, "a\\n b", "conda-forge::c[build=x]"]\n'
    )
    assert found.profile.conda.packages == ("a b", "conda-forge::c[build=x]")
    assert "`conda-forge` or another" in found.assumed[1]


def test_aliases_are_followed_and_entries_may_hold_lines(case: Case) -> None:
    found = case.draft(
        "environment.yml",
        "x: &c [conda-forge]\nchannels: *c\npip-repositories: [https://pip.company.example/simple]\n"
        "dependencies:\n  - numpy\n  - {npm: [left]}\n  - pip:\n    - |\n      six\n      idna\n",
    )
    assert found.profile.conda.channels == ("conda-forge",)
    assert found.installs == [("six", "idna")]
    assert "company" in found.indexes
    assert "`x`" in found.lost[1]
    assert "under `npm`" in found.lost[6]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("dependencies: [a\n", "environment.yml:2:1: YAML: while parsing a flow sequence"),
        ("dependencies:\n\t- a\n", "environment.yml:2:1: YAML"),
        ("dependencies: {a: 1}\n", "environment.yml:1:15: `dependencies` is no list"),
        ("dependencies:\n  - [a]\n", "environment.yml:2:5: a dependency is a match spec"),
        ("dependencies:\n  - pip: [[a]]\n", "environment.yml:2:11: a dependency under `pip`"),
        ("a: &a {x: 1}\nb:\n  <<: *a\ndependencies: []\n", "environment.yml:3:3: merge keys (`<<`) are not read"),
        ("dependencies: [!!python/object:os.system a]\n", "the tag"),
        ("dependencies: [" + "[" * 100 + "\n", "nested deeper"),
        ("dependencies: []\ndependencies: []\n", "duplicate key"),
        ("dependencies: [{pip: [-r gone.txt]}]\n", "environment.yml:1:1: `-r gone.txt`"),
    ],
)
def test_broken_files_are_told_with_the_place(case: Case, content: str, said: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        case.draft("environment.yml", content)
    assert caught.value.code == "invalid-import"
    assert said in str(caught.value.cause)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("schema: 1\nname: x\n", "unknown-format"),
        ("a: b\n", "unknown-format"),
        ("- a\n", "invalid-import"),
        ("# x\n", "invalid-import"),
        ("dependencies:\n", "nothing-to-import"),
        ("dependencies: [pip: []]\n", "nothing-to-import"),
    ],
)
def test_what_is_no_environment(case: Case, content: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        case.draft("environment.yml", content)
    assert caught.value.code == code


SHA = "0" * 64
LOCK = f"""\
version: 1
metadata:
  content_hash: {{linux-64: abc}}
  channels:
    - {{url: conda-forge, used_env_vars: []}}
    - {{url: "https://me:geheim@conda.example.org/mine", used_env_vars: [TOKEN]}}
  platforms: [linux-64, osx-64]
  sources: [environment.yml]
package:
  - name: python
    version: 3.10.14
    manager: conda
    platform: linux-64
    dependencies: {{}}
    url: https://conda.example.org/conda-forge/linux-64/python-3.10.14-hd12c33a_0_cpython.conda
    hash: {{md5: abc, sha256: {SHA}}}
    category: main
    optional: false
  - name: numpy
    version: 1.26.4
    manager: conda
    platform: linux-64
    url: https://conda.example.org/conda-forge/linux-64/numpy-1.26.4-py310hb13e2d6_0.conda
    category: main
  - {{name: numpy, version: 1.26.3, manager: conda, platform: osx-64, url: "", category: main}}
  - {{name: pytest, version: "8.0", manager: conda, platform: linux-64, url: "", category: dev, optional: true}}
  - {{name: __glibc, version: "2.17", manager: conda, platform: linux-64, url: "", category: main}}
  - name: torch
    version: 2.7.1+cu126
    manager: pip
    platform: linux-64
    url: https://dl.example.org/whl/cu126/torch-2.7.1%2Bcu126-cp310-cp310-manylinux_2_28_x86_64.whl
    hash: {{sha256: {SHA}}}
    category: main
  - {{name: six, version: 1.16.0, manager: pip, platform: linux-64, url: "https://f.example.org/six-1.16.0-py2.py3-none-any.whl"}}
  - {{name: own, version: 0.0.0, manager: pip, platform: linux-64, url: "git+https://git.example.org/o/own.git@abc"}}
"""


def test_a_lock_of_conda_lock(case: Case) -> None:
    found = case.draft("conda-lock.yml", LOCK)
    assert found.format is SourceFormat.CONDA_LOCK
    assert found.profile.python == "3.10.14"
    assert found.profile.conda.channels == ("conda-forge", "https://conda.example.org/mine")
    assert found.profile.conda.packages == ("numpy=1.26.4=py310hb13e2d6_0",)
    assert found.installs == [("torch==2.7.1", "six==1.16.0", "own @ git+https://git.example.org/o/own.git@abc")]
    assert found.indexes["torch-cu126"].packages == ("torch",)
    assert found.indexes["torch-cu126"].url == "https://dl.example.org/whl/cu126"
    assert "geheim" not in found.text
    assert "not that for `osx-64`" in found.assumed[None]
    assert "hashes" in found.lost[None]
    assert any("other categories" in text for text in found.lost.values())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("version: 1\n", "version: 2\n"), "conda-lock.yml:1:1: version 2 of the lock is newer"),
        (("linux-64", "win-64"), "nothing is locked for linux-64 or linux-aarch64"),
        (("  - name: numpy\n    version: 1.26.4\n", "  - name: numpy\n"), "without `name` or `version`"),
    ],
)
def test_locks_that_cannot_be_read(case: Case, change: tuple[str, str], said: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        case.draft("conda-lock.yml", LOCK.replace(*change))
    assert said in str(caught.value.cause)
