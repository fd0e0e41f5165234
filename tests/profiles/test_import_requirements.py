"""Requirements files and what pip freeze writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from profiles.importing import Case

from envforge.model.draft import SourceFormat
from envforge.model.errors import InvalidFileError, UsageError
from envforge.model.profile import Keep

DEFAULT_HOST = ("pypi", "org")
TRIO = ("torch", "torchvision", "torchaudio")


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_requirements_become_one_step(case: Case) -> None:
    found = case.draft(
        "requirements.txt",
        "# what it needs\nFlask>=2,<4  # the server\n\nuvicorn[standard] \\\n  >=0.30\n"
        "tomli; python_version < '3.11'\nFlask>=2,<4\n",
    )
    assert found.format is SourceFormat.REQUIREMENTS
    assert found.installs == [("Flask>=2,<4", "uvicorn[standard] >=0.30", "tomli; python_version < '3.11'")]
    assert found.steps[0].name == "flask"
    assert (found.steps[0].indexes, found.profile.guards, found.lost) == (None, (), {})
    assert "names no Python" in found.assumed[None]
    assert "# assumed: the source names no Python" in found.text


def test_an_index_of_torch_serves_the_three_and_their_build_is_kept(case: Case) -> None:
    found = case.draft(
        "requirements.txt",
        "--extra-index-url https://download.example.org/whl/cu126\ntorch==2.7.1+cu126\ntorchvision==0.22.1+cu126\nnumpy\n",
    )
    index = found.indexes["torch-cu126"]
    assert (index.url, index.packages) == ("https://download.example.org/whl/cu126", TRIO)
    assert list(found.indexes) == ["torch-cu126", "pypi"]
    assert found.installs == [("torch==2.7.1", "torchvision==0.22.1", "numpy")]
    assert [guard.names for guard in found.profile.guards if isinstance(guard, Keep)] == [TRIO]
    assert found.lost == {}
    assert "`+cu126` is left to the index" in found.assumed[2]


@pytest.mark.parametrize("link", ["whl/torch_stable.html", "whl/cu118/torch_stable.html", "whl/cu118", "whl/torch/"])
def test_pages_of_links_of_torch_are_indexes(case: Case, link: str) -> None:
    found = case.draft("requirements.txt", f"-f https://download.example.org/{link}\ntorch===2.0.1+cu118\n")
    assert found.indexes["torch-cu118"].url == "https://download.example.org/whl/cu118"
    assert found.installs == [("torch==2.0.1",)]
    assert found.lost == {}


def test_a_build_without_its_index_is_told_and_guarded(case: Case) -> None:
    found = case.draft("requirements.txt", "torch==2.7.1+cu126\nmine==1.0+local.3\n")
    assert found.installs == [("torch==2.7.1", "mine==1.0")]
    assert "name: torch-cu126" in found.lost[1]
    assert "`+local.3` of `mine`" in found.lost[2]
    assert [guard.names for guard in found.profile.guards if isinstance(guard, Keep)] == [(*TRIO, "mine")]


def test_other_indexes(case: Case) -> None:
    found = case.draft(
        "requirements.txt",
        "--index-url https://mirror.example.org/simple\n"
        "--extra-index-url=https://wheels.vllm.example/0.10.0/cu126\n"
        "--extra-index https://pypi.company.example/simple\n"
        "vllm==0.10.0\n",
    )
    assert found.indexes["pypi"].url == "https://mirror.example.org/simple"
    assert found.indexes["vllm"].packages == ("vllm",)
    assert found.indexes["company"].packages == ()
    assert "if it is a mirror" in found.assumed[1]
    assert "better list its `packages`" in found.assumed[3]
    assert found.steps[0].indexes is None


def test_the_default_index_needs_no_address(case: Case) -> None:
    found = case.draft("requirements.txt", f"-i https://{'.'.join(DEFAULT_HOST)}/simple\nsix\n")
    assert found.profile.indexes[0].url is None


def test_credentials_are_never_written(case: Case) -> None:
    found = case.draft(
        "requirements.txt",
        "--index-url https://me:geheim@one.example.org/simple\n"
        "--extra-index-url https://${USER}:${TOKEN}@two.example.org/simple\n"
        "a @ git+https://geheim@git.example.org/o/a.git@v1\n"
        "https://files.example.org/b-1.0-py3-none-any.whl?token=geheim\n"
        "-r https://me:geheim@three.example.org/r.txt\n"
        "not a requirement https://me:geheim@four.example.org\n"
        "--trusted-host geheim.example.org\n"
        "--proxy http://me:geheim@proxy:1\n",
    )
    assert "geheim" not in found.text.replace("geheim.example.org", "")
    assert "TOKEN" not in found.text
    assert found.installs == [
        ("a @ git+https://git.example.org/o/a.git@v1", "b @ https://files.example.org/b-1.0-py3-none-any.whl")
    ]
    assert {line for line, text in found.lost.items() if "credentials in the URL" in text} == {1, 2, 3, 4, 6}


WHEEL = f"https://f.example.org/x-1-py3-none-any.whl#sha256={'a' * 64}"
ARCHIVE = "https://git.example.org/o/proj/archive/refs/heads/main.zip"


@pytest.mark.parametrize(
    ("line", "name", "source"),
    [
        (
            "git+https://git.example.org/o/proj.git@v1#egg=proj[all]&subdirectory=sub",
            "proj[all]",
            "git+https://git.example.org/o/proj.git@v1#subdirectory=sub",
        ),
        (
            "-e git+https://git.example.org/o/proj.git#egg=proj-1.0",
            "proj",
            "git+https://git.example.org/o/proj.git",
        ),
        ("git+ssh://git@git.example.org/o/proj", "proj", "git+ssh://git@git.example.org/o/proj"),
        (ARCHIVE, "proj", ARCHIVE),
        (
            "https://f.example.org/a_b-1.0.tar.gz ; os_name == 'posix'",
            "a-b",
            'https://f.example.org/a_b-1.0.tar.gz ; os_name == "posix"',
        ),
        (WHEEL, "x", WHEEL),
        ("./wheels/x-1-py3-none-any.whl", "x", "./wheels/x-1-py3-none-any.whl"),
        ("mine @ ./mine", "mine", "./mine"),
        ("mine@file:///srv/mine", "mine", "file:///srv/mine"),
    ],
)
def test_sources(case: Case, line: str, name: str, source: str) -> None:
    found = case.draft("requirements.txt", line)
    assert found.installs == [(f"{name} @ {source}",)]
    assert found.lost == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-e .", "write `NAME @ .`"),
        ("-e .[all]", "write `NAME[all] @ .`"),
        ("~/x-1-py3-none-any.whl", "begins at its folder"),
        ("./mine", "write `NAME @ ./mine`"),
        ("hg+https://hg.example.org/x#egg=x", "from Git only"),
        ("git+git@git.example.org:o/x.git", "git+ssh://git@HOST/PATH"),
        ("https://f.example.org/page", "its name is in its own metadata"),
        ("x @ https://f.example.org/page", "neither a wheel nor an sdist"),
        ("x==${VERSION}", "a variable that the source does not set"),
        ("x=1", "it is no requirement"),
        ("x>=1.0,<", "it is no requirement"),
        ("--pre", "pre-releases"),
        ("--no-binary :all:", "--no-binary"),
        ("--find-links /srv/wheels", "a profile knows indexes only"),
        ("--index-url $INDEX", "no whole address"),
        ("--frobnicate", "nothing like it"),
        ("six --hash=sha256:abc", "hashes"),
        ("-r", "only files beside"),
        ("-e 'x", "does not end"),
    ],
)
def test_what_is_not_carried_over_is_told_with_its_line(case: Case, line: str, said: str) -> None:
    found = case.draft("requirements.txt", f"# first\nidna==3\n{line}\n")
    assert said in found.lost[3]
    assert found.installs[0][0] == "idna==3"
    assert "# not carried over (line 3):" in found.text


def test_includes_count_from_the_file_that_names_them(case: Case) -> None:
    case.put("sub/base.txt", "six\n-r ../more.txt\n--extra-index-url https://dl.example.org/whl/cpu\n")
    case.put("more.txt", "idna==3\nsix\n")
    case.put("sub/bounds.txt", "numpy<2\nurllib3[socks]<3\nx @ https://f.example.org/x.zip\n")
    found = case.draft("requirements.txt", "-r sub/base.txt\n-csub/bounds.txt\n-r more.txt\nattrs\n")
    assert found.installs == [("six", "idna==3", "attrs")]
    assert found.steps[0].constraints == ("numpy<2",)
    assert "torch-cpu" in found.indexes
    files = {note.file for note in found.draft.notes}
    assert str(case.folder / "sub/bounds.txt") in files
    assert f"({case.folder}/sub/bounds.txt line 2)" in " ".join(found.text.replace("#", " ").split())


def test_a_chain_of_files_is_not_endless(case: Case) -> None:
    for number in range(40):
        case.put(f"{number}.txt", f"-r {number + 1}.txt\n")
    with pytest.raises(InvalidFileError) as caught:
        case.draft("requirements.txt", "-r 0.txt\n")
    assert "more than 20 files" in str(caught.value.cause)


def test_a_circle_is_named(case: Case) -> None:
    case.put("a.txt", "-r requirements.txt\n")
    with pytest.raises(InvalidFileError) as caught:
        case.draft("requirements.txt", "six\n-r a.txt\n")
    assert caught.value.code == "invalid-import"
    assert "a.txt:1:1: `-r` goes in a circle: `requirements.txt` -> `a.txt` -> `requirements.txt`" in str(
        caught.value.cause
    )


@pytest.mark.parametrize("name", ["gone.txt", "folder"])
def test_an_include_that_cannot_be_read(case: Case, name: str) -> None:
    (case.folder / "folder").mkdir()
    with pytest.raises(InvalidFileError) as caught:
        case.draft("requirements.txt", f"six\n-r {name}\n")
    assert "requirements.txt:2:1:" in str(caught.value.cause)


FREEZE = """\
-e git+https://git.example.org/o/mine.git@0123456789#egg=mine
certifi @ file:///croot/certifi_1700501669400/work/certifi
idna==3.4
numpy @ file:///home/conda/feedstock_root/build_artifacts/numpy_1/work/dist/numpy-1.26.4-cp310-cp310-linux_x86_64.whl
torch==2.1.0+cu118
"""


def test_a_freeze(case: Case) -> None:
    found = case.draft("requirements.txt", FREEZE)
    assert found.format is SourceFormat.FREEZE
    assert found.installs == [
        ("mine @ git+https://git.example.org/o/mine.git@0123456789", "certifi", "idna==3.4", "numpy", "torch==2.1.0")
    ]
    assert "does not say which of them were asked for" in found.assumed[None]
    assert "in any version" in found.assumed[2]
    assert "in any version" in found.assumed[4]
    assert "torch-cu118" in found.lost[5]


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffsix==1.0\r\nidna==3\r\n".encode(),
        "six==1.0\nidna==3\n".encode("utf-16"),
        "six==1.0\ridna==3".encode("utf-32"),
    ],
)
def test_marks_and_line_ends_of_other_systems(case: Case, content: bytes) -> None:
    assert case.draft("requirements.txt", content).installs == [("six==1.0", "idna==3")]


def test_latin_1_is_read_and_told(case: Case) -> None:
    found = case.draft("requirements.txt", "six  # für uns\n".encode("latin-1"))
    assert found.installs == [("six",)]
    assert "Latin-1" in found.assumed[None]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "unknown-format"),
        (b"# nothing\n", "nothing-to-import"),
        (b"\x7fELF\x00\x00", "unreadable-file"),
        (b"\xff\xfea", "unreadable-file"),
        (b"--pre\n", "nothing-to-import"),
    ],
)
def test_what_holds_nothing(case: Case, content: bytes, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        case.draft("requirements.txt", content)
    assert caught.value.code == code


def test_what_is_too_long(case: Case) -> None:
    with pytest.raises(UsageError) as caught:
        case.draft("requirements.txt", b"six\n" * (1 << 22))
    assert caught.value.cause == "larger than 8 MiB"
