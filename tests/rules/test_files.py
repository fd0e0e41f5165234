from __future__ import annotations

from collections.abc import Mapping

import pytest
from rules.small import context, found, install, profile

from envforge.model.finding import Finding, Severity
from envforge.model.state import Clash, Debris, FileRow, Observation

SITE = "lib/python3.10/site-packages"


def clash(path: str, actual: str | None = "1", **declared: str | None) -> Clash:
    return Clash(path=path, declared={name.replace("_", "-"): value for name, value in declared.items()}, actual=actual)


def seen(*clashes: Clash, files: Mapping[str, tuple[str, ...]] | None = None) -> tuple[Finding, ...]:
    rows = tuple(FileRow(path=path, size=1, mtime=1, inode=1, owners=owners) for path, owners in (files or {}).items())
    observation = Observation(state={}, clashes=clashes, files=rows)
    return found(context(profile(), (install("a", "x"), {}), observation=observation))


def test_nothing_is_known_of_files_in_a_plan() -> None:
    assert found(context(profile(), (install("a", "x"), {}))) == ()


def test_two_nccl_over_one_library() -> None:
    path = f"{SITE}/nvidia/nccl/lib/libnccl.so.2"
    (one,) = seen(clash(path, "11", nvidia_nccl_cu11="11", nvidia_nccl_cu12="12"))
    assert one.severity is Severity.ERROR
    assert one.subject == "nvidia/nccl/lib/libnccl.so.2"
    assert one.message == (
        "`nvidia/nccl/lib/libnccl.so.2`: `nvidia-nccl-cu11` and `nvidia-nccl-cu12` each bring different content; "
        "what lies there is of `nvidia-nccl-cu11`"
    )


def test_the_subject_does_not_depend_on_who_won() -> None:
    one, other = (seen(clash(f"{SITE}/cv2/a.py", actual, b="1", a="2"))[0] for actual in ("1", "2"))
    assert one.key == other.key
    assert one.evidence["winners"] != other.evidence["winners"]


@pytest.mark.parametrize(
    ("path", "severity"),
    [
        (f"{SITE}/cv2/cv2.abi3.so", Severity.ERROR),
        (f"{SITE}/cv2/__init__.py", Severity.ERROR),
        (f"{SITE}/cv2/data/face.xml", Severity.ERROR),
        (f"{SITE}/tests/native.so.1.2", Severity.ERROR),
        (f"{SITE}/owner_one.py", Severity.ERROR),
        ("lib/libshared.so", Severity.ERROR),
        (f"{SITE}/tests/__init__.py", Severity.WARNING),
        (f"{SITE}/build_backend.py", Severity.WARNING),
        (f"{SITE}/README.md", Severity.WARNING),
        (f"{SITE}/other-1.0.dist-info/METADATA", Severity.WARNING),
        ("bin/tool", Severity.WARNING),
        ("share/man/man1/tool.1", Severity.WARNING),
    ],
)
def test_what_breaks_an_owner_is_an_error_and_what_clean_environments_hold_is_told(
    path: str, severity: Severity
) -> None:
    (one,) = seen(clash(path, owner_one="1", owner_two="2"))
    assert one.severity is severity


def test_equal_or_unknown_content_is_no_clash() -> None:
    path = f"{SITE}/nvidia/__init__.py"
    assert seen(clash(path, a="1", b="1"), clash(path, None, a="1", b=None), clash(path, a=None, b=None)) == ()
    assert seen(clash(path, "1", a="1", b=None)) == ()
    assert len(seen(clash(path, "2", a="1", b=None))) == 1


def test_an_init_that_only_opens_a_shared_folder_is_told_as_a_warning() -> None:
    init = clash(f"{SITE}/google/__init__.py", a="1", b="2")
    files = {f"{SITE}/google/{name}/x.py": (name,) for name in ("a", "b")}
    assert seen(init, files=files)[0].severity is Severity.WARNING
    assert seen(init, clash(f"{SITE}/google/core.py", a="1", b="2"), files=files)[0].severity is Severity.ERROR
    assert seen(init, files={f"{SITE}/google/a/x.py": ("a",)})[0].severity is Severity.ERROR


def test_many_paths_of_two_owners_are_one_finding() -> None:
    (one,) = seen(*(clash(f"{SITE}/cv2/data/{number:02}.py", a="1", b="2") for number in range(30)))
    assert one.subject == "cv2/data"
    assert one.evidence["count"] == 30
    assert len(one.evidence["paths"]) == 10


def test_three_owners_of_one_stray_file() -> None:
    (one,) = seen(clash(f"{SITE}/tests/__init__.py", gruut="1", gruut_ipa="2", nemo_text_processing="3"))
    assert one.evidence["owners"] == ["gruut", "gruut-ipa", "nemo-text-processing"]
    assert one.severity is Severity.WARNING


def test_debris_is_told_by_kind() -> None:
    observation = Observation(
        state={},
        debris=(
            Debris(kind="record-missing", name="six", path=f"{SITE}/six-1.0.dist-info", missing=("RECORD",)),
            Debris(kind="leftover", name="~ix", path=f"{SITE}/~ix"),
        ),
    )
    leftover, record = found(context(profile(), (install("a", "six"), {}), observation=observation))
    assert (leftover.id, leftover.subject) == ("leftover", "~ix")
    assert (record.id, record.subject) == ("record-missing", "six")
    assert "lacks `RECORD`" in record.message
