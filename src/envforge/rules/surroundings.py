"""What leaks into an environment from the host, and code in it that nobody owns, as findings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from envforge.model.drift import Surroundings
from envforge.model.finding import Finding, Severity

_SHOWN = 10  # paths that the evidence names; the count tells of the rest


def findings(surroundings: Surroundings) -> tuple[Finding, ...]:
    """Of code that runs by itself and nobody owns errors, of what alters imports and libraries warnings, else infos.

    Of variables only those that say paths are told with their values.
    """
    return (
        *_unowned(surroundings),
        *_moved(surroundings),
        *_sites(surroundings),
        *_paths(surroundings),
        *_ambient(surroundings),
    )


def _unowned(surroundings: Surroundings) -> Iterator[Finding]:
    for path in surroundings.unowned:
        name = PurePosixPath(path).name
        stem = name.partition(".")[0]
        if name.endswith(".pth"):
            why = "Python reads it at every start"
        elif stem in {"sitecustomize", "usercustomize"}:
            why = "Python imports it at every start"
        elif name == "pyvenv.cfg":
            why = "Python believes it more than the environment's own"
        elif name.endswith("._pth"):
            why = "Python takes its module path from it"
        elif stem == "__init__":
            why = f"it is what every import of `{PurePosixPath(path).parent.name}` runs"
        else:
            why = f"it can be imported in place of another `{stem}`"
        yield Finding(
            id="file-unowned",
            severity=Severity.ERROR,
            subject=path,
            message=f"`{path}` belongs to no distribution, and {why}",
            evidence={"path": path},
            remedy="`envforge repair` moves it aside; or bring it in by a distribution",
        )


def _moved(surroundings: Surroundings) -> Iterator[Finding]:
    place, scripts = surroundings.moved_from, surroundings.stranded
    if place is not None:
        number = f"`{scripts[0]}` starts" if len(scripts) == 1 else f"{len(scripts)} scripts (`{scripts[0]}`) start"
        yield Finding(
            id="file-modified",
            severity=Severity.ERROR,
            subject="bin",
            aspect="moved",
            message=f"the environment was built in `{place}` and moved: {number} the Python there",
            evidence={"built": place, "count": len(scripts), "paths": list(scripts[:_SHOWN])},
            remedy="`envforge rebuild` makes it anew where it lies now",
        )


def _sites(surroundings: Surroundings) -> Iterator[Finding]:
    if surroundings.system_site:
        yield Finding(
            id="user-site-visible",
            severity=Severity.WARNING,
            subject="include-system-site-packages",
            message="`pyvenv.cfg` lets the packages of the base Python and of the user in",
            remedy="set `include-system-site-packages = false` in `pyvenv.cfg`",
        )
    if surroundings.user_site is not None:
        names = surroundings.shadowed
        both = f"; both hold {', '.join(f'`{name}`' for name in names)}" if names else ""
        yield Finding(
            id="user-site-visible",
            severity=Severity.WARNING,
            subject=surroundings.user_site,
            message=f"Python also looks for packages in `{surroundings.user_site}`{both}",
            evidence={"path": surroundings.user_site, "distributions": list(names)},
            remedy="start programs with `envforge run`, or set `PYTHONNOUSERSITE=1`",
        )


def _paths(surroundings: Surroundings) -> Iterator[Finding]:
    if surroundings.pythonpath:
        yield Finding(
            id="ambient-config",
            severity=Severity.WARNING,
            subject="PYTHONPATH",
            message=f"$PYTHONPATH comes before what is installed: `{':'.join(surroundings.pythonpath)}`",
            evidence={"source": "$PYTHONPATH", "paths": list(surroundings.pythonpath)},
            remedy="start programs with `envforge run`, or unset it",
        )
    for name, value in surroundings.libraries.items():
        yield Finding(
            id="library-path-override",
            severity=Severity.WARNING,
            subject=name,
            message=f"${name} comes before the libraries that are installed: `{value}`",
            evidence={"source": f"${name}", "value": value},
            remedy="start programs with `envforge run`, or unset it",
        )


def _ambient(surroundings: Surroundings) -> Iterator[Finding]:
    for item in surroundings.ambient:
        yield Finding(
            id="ambient-config",
            severity=Severity.INFO,
            subject=item.tool,
            aspect=item.source,
            message=f"{item.source} sets {', '.join(item.settings) or 'nothing known'}; builds are kept free of it",
            evidence={"source": item.source, "settings": list(item.settings)},
        )
    for name in surroundings.proxies:
        yield Finding(
            id="proxy-scheme",
            severity=Severity.INFO,
            subject=name,
            message=f"${name} says `socks://`, which most libraries refuse",
            remedy="write `socks5://` in it yourself",
        )
