from __future__ import annotations

from collections.abc import Mapping

import pytest
from rules.small import MARKERS, dist, state

from envforge.model.finding import Finding, Severity
from envforge.model.imports import Import, Imports, Kind, Modules
from envforge.model.state import Distribution
from envforge.probe.standard import ALWAYS, standard
from envforge.rules.backfill import backfill
from envforge.rules.import_undeclared import import_undeclared

STRONG = {"six": Kind.REACHED}


def brings(*provides: str, **kinds: Kind) -> Imports:
    """``a__b`` is the module ``a.b``, imported in line 1 of ``x.py``."""
    named = {module.replace("__", "."): kind for module, kind in kinds.items()}
    return Imports(
        imports=tuple(Import(module=module, kind=kind, path="x.py", line=1) for module, kind in sorted(named.items())),
        provides=provides,
    )


def found(
    installed: Mapping[str, Distribution],
    of: Mapping[str, Imports],
    *asked: str,
    names: frozenset[str] = frozenset(),
    hidden: bool = False,
) -> list[Finding]:
    modules = Modules(of=of, names=names, standard=standard("3.10.13"), open=hidden)
    return list(import_undeclared(modules, installed, asked, MARKERS))


def severities(findings: list[Finding]) -> dict[tuple[str, str | None], Severity]:
    return {(each.subject, each.aspect): each.severity for each in findings}


def test_absent_and_imported_for_sure_is_an_error() -> None:
    (only,) = found(state(dist("app 1.0")), {"app": brings("app", yaml=Kind.REACHED)})
    assert (only.id, only.severity, only.subject, only.aspect) == ("import-undeclared", Severity.ERROR, "app", "yaml")
    assert only.message == (
        "`app` 1.0 imports `yaml` whenever it is imported (x.py:1), which nothing installed provides"
    )
    assert only.remedy == "add `pyyaml` to a `backfill` step"
    assert only.evidence == {
        "version": "1.0", "module": "yaml", "import": "reached", "path": "x.py", "line": 1, "provider": None,
        "distribution": "pyyaml", "requirement": "pyyaml", "assumed": False,
    }  # fmt: skip


@pytest.mark.parametrize("kind", [Kind.MODULE, Kind.LAZY, Kind.GUARDED])
def test_absent_and_perhaps_never_imported_is_a_remark(kind: Kind) -> None:
    (only,) = found(state(dist("app 1.0")), {"app": brings("app", six=kind)})
    assert (only.severity, only.remedy) == (Severity.INFO, None)
    assert (only.evidence["requirement"], only.evidence["assumed"]) == ("six", True)


@pytest.mark.parametrize(
    ("kind", "severity"),
    [(Kind.REACHED, Severity.WARNING), (Kind.MODULE, Severity.INFO), (Kind.LAZY, None), (Kind.GUARDED, None)],
)
def test_what_is_there_for_anothers_sake(kind: Kind, severity: Severity | None) -> None:
    installed = state(dist("app 1.0"), dist("six 1.16"), dist("other 1.0", "six"))
    of = {"app": brings("app", six=kind), "six": brings("six"), "other": brings("other", six=Kind.REACHED)}
    told = found(installed, of)
    assert severities(told) == ({("app", "six"): severity} if severity else {})
    assert [each.evidence["provider"] for each in told] == ([{"name": "six", "version": "1.16"}] if severity else [])


def test_what_is_required_at_whatever_remove_is_declared() -> None:
    installed = state(dist("app 1.0", "mid"), dist("mid 1.0", "base[fast]"), dist("base 1.0", "six; extra == 'fast'"))
    installed = {**installed, **state(dist("six 1.16"))}
    of = {"app": brings("app", **STRONG), "six": brings("six"), "mid": brings("mid"), "base": brings("base", **STRONG)}
    assert found(installed, of) == []
    # Without the extra nobody declares it; a step that asks for it by name does.
    installed = {**installed, **state(dist("mid 1.0", "base"))}
    assert set(severities(found(installed, of))) == {("app", "six"), ("base", "six")}
    assert severities(found(installed, of, "Six>=1")) == {}
    assert severities(found(installed, of, "base[fast]")) == {}


def test_who_is_required_by_what_it_imports_is_there_for_its_sake() -> None:
    installed = state(dist("sieve 1.0"), dist("soup 1.0", "sieve"))
    of = {"sieve": brings("sieve", soup=Kind.REACHED), "soup": brings("soup", sieve=Kind.REACHED)}
    assert severities(found(installed, of)) == {("sieve", "soup"): Severity.INFO}


def test_an_extra_says_that_an_import_is_optional_and_how_it_is_bound() -> None:
    installed = state(dist("app 1.0", "python-Redis<6,>=4; extra == 'queue'", "pywin32; sys_platform == 'win32'"))
    optional = {"redis": Kind.LAZY, "win32api": Kind.GUARDED, "python_redis": Kind.MODULE}
    assert found(installed, {"app": brings("app", **optional)}) == []
    (only,) = found(installed, {"app": brings("app", redis=Kind.REACHED)})
    assert (only.evidence["requirement"], only.evidence["assumed"]) == ("python-Redis<6,>=4", False)


def test_what_later_releases_took_out_is_asked_of_an_earlier_one() -> None:
    installed = state(dist("world 1.0", "setuptools>=40"), dist("setuptools 84.0"))
    of = {"world": brings("world", pkg_resources=Kind.REACHED), "setuptools": brings("setuptools")}
    (only,) = found(installed, of)
    assert (only.severity, only.evidence["requirement"]) == (Severity.ERROR, "setuptools<82")


def test_of_a_namespace_every_part_has_an_owner_of_its_own() -> None:
    installed = state(dist("one 1.0"), dist("two 1.0"), dist("app 1.0", "one"))
    of = {"one": brings("cloud.one"), "two": brings("cloud.two.deep")}
    kinds = dict.fromkeys(("cloud", "cloud__one__x", "cloud__two", "cloud__two__deep", "cloud__iii__x"), Kind.REACHED)
    assert severities(found(installed, of | {"app": brings("app", **kinds)})) == {
        ("app", "cloud.two.deep"): Severity.WARNING,
        ("app", "cloud.iii"): Severity.ERROR,
    }


def test_the_surest_import_of_a_module_counts() -> None:
    (only,) = found(
        state(dist("app 1.0"), dist("torch 2.7.1")),
        {"app": brings("app", torch=Kind.GUARDED, torch__nn=Kind.REACHED), "torch": brings("torch")},
    )
    assert (only.aspect, only.severity) == ("torch", Severity.WARNING)


def test_what_python_brings_or_only_python_2_had_or_nobody_owns_is_not_told() -> None:
    kinds = {"tomllib": Kind.REACHED, "distutils__core": Kind.REACHED, "urllib2": Kind.GUARDED, "local": Kind.REACHED}
    told = found(state(dist("app 1.0")), {"app": brings("app", **kinds)}, names=frozenset({"local"}))
    assert severities(told) == {("app", "tomllib"): Severity.ERROR}


def test_distutils_comes_with_setuptools_where_python_has_it_no_more() -> None:
    of = {"app": brings("app", distutils=Kind.REACHED), "setuptools": brings("setuptools")}
    modules = Modules(of=of, standard=standard("3.12.1"))
    declared = state(dist("app 1.0", "setuptools"), dist("setuptools 80.0"))
    assert list(import_undeclared(modules, declared, (), MARKERS)) == []
    undeclared = state(dist("app 1.0"), dist("setuptools 80.0"))
    assert [each.severity for each in import_undeclared(modules, undeclared, (), MARKERS)] == [Severity.WARNING]


def test_where_the_packages_of_the_base_python_are_let_in_nobody_looked_at_them() -> None:
    (only,) = found(state(dist("app 1.0")), {"app": brings("app", **STRONG)}, hidden=True)
    assert only.severity is Severity.WARNING


def test_the_standard_library_by_version() -> None:
    assert {"asyncore", "distutils", "cgi"} <= standard("3.10.13")
    assert "tomllib" not in standard("3.10.13")
    assert {"tomllib", "cgi"} <= standard("3.12.0")
    assert not {"distutils", "imp", "asyncore"} & standard("3.12.0")
    assert not {"cgi", "lib2to3"} & standard("3.13.1")
    assert standard("3.8.0") > ALWAYS


def test_a_backfill_has_one_line_for_each_requirement_the_absent_first() -> None:
    installed = state(dist("app 1.0"), dist("zoo 2.0"), dist("numpy 2.2"))
    of = {
        "app": brings("app", numpy=Kind.REACHED, zlib_ng=Kind.REACHED, yaml=Kind.LAZY),
        "zoo": brings("zoo", numpy__linalg=Kind.REACHED, zlib_ng=Kind.REACHED),
        "numpy": brings("numpy"),
    }
    installed = {
        **installed,
        **state(dist("app 1.0", "numpy>1; extra == 'all'"), dist("zoo 2.0", "numpy<3; extra == 'x'")),
    }
    lines = backfill(found(installed, of))
    assert [(each.requirement, each.present, each.assumed) for each in lines] == [
        ("zlib-ng", False, True),
        ("numpy<3,>1", True, False),
    ]
    assert [[(who.distribution, who.version, who.module, who.place) for who in each.importers] for each in lines] == [
        [("app", "1.0", "zlib_ng", "x.py:1"), ("zoo", "2.0", "zlib_ng", "x.py:1")],
        [("app", "1.0", "numpy", "x.py:1"), ("zoo", "2.0", "numpy", "x.py:1")],
    ]
