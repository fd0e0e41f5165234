"""What was read of compiled files as text and back, small and quick: lists by position, since there are thousands."""

from __future__ import annotations

import json
import zlib
from typing import Any

from envforge.model.native import Asked, Compiled, Elf, GpuCode, Native, Symbols, Unfound, Unresolved
from envforge.model.typed import checked

SCHEMA = 1
"""Of both forms; what was written under another one is read anew from the files."""


def dump_elf(value: Elf) -> bytes:
    """One file, compressed."""
    whole = [
        value.trouble, value.kind, value.machine, value.soname, value.needed, value.rpath, value.runpath,
        [[each.names, each.version, each.library] for each in value.wants],
        [[each.names, each.version] for each in value.offers],
        value.needs, value.defines, codes(value.code),
    ]  # fmt: skip
    return zlib.compress(json.dumps(whole, separators=(",", ":")).encode("ascii"), 1)


def load_elf(data: bytes) -> Elf:
    """The inverse; raises ValueError, TypeError or zlib.error for what is no such text."""
    (trouble, kind, machine, soname, needed, rpath, runpath, wants, offers, needs, defines, code) = json.loads(
        zlib.decompress(data)
    )
    return checked(
        Elf(
            trouble=trouble,
            kind=kind,
            machine=machine,
            soname=soname,
            needed=tuple(needed),
            rpath=tuple(rpath),
            runpath=tuple(runpath),
            wants=tuple(Symbols(names=names, version=version, library=library) for names, version, library in wants),
            offers=tuple(Symbols(names=names, version=version) for names, version in offers),
            needs=tuple((library, tuple(versions)) for library, versions in needs),
            defines=tuple(defines),
            code=load_codes(code),
        )
    )


def codes(value: tuple[GpuCode, ...]) -> list[list[Any]]:
    return [[each.kind, each.arch, each.variant] for each in value]


def load_codes(value: Any) -> tuple[GpuCode, ...]:
    return tuple(checked(GpuCode(kind=kind, arch=arch, variant=variant)) for kind, arch, variant in value)


def native_document(value: Native) -> dict[str, Any]:
    """What was found in one environment, JSON-able."""
    return {
        "objects": [
            [each.path, each.owner, each.kind, each.machine, each.trouble, codes(each.code)] for each in value.objects
        ],
        "unfound": [[each.path, each.owner, each.libraries, each.driver, each.sought] for each in value.unfound],
        "unresolved": [
            [each.path, each.owner, each.symbols, each.version, each.library, each.provider, each.provides, each.loaded]
            for each in value.unresolved
        ],
        "asked": [[each.symbol, each.library, each.found, each.lacking] for each in value.asked],
    }


def load_native(value: Any) -> Native:
    """The inverse; raises KeyError, ValueError or TypeError for another shape."""
    return Native(
        objects=tuple(
            checked(
                Compiled(path=path, owner=owner, kind=kind, machine=machine, trouble=trouble, code=load_codes(code))
            )
            for path, owner, kind, machine, trouble, code in value["objects"]
        ),
        unfound=tuple(
            checked(Unfound(path=path, owner=owner, libraries=tuple(libraries), driver=driver, sought=sought))
            for path, owner, libraries, driver, sought in value["unfound"]
        ),
        unresolved=tuple(
            checked(
                Unresolved(
                    path=path, owner=owner, symbols=tuple(symbols), version=version, library=library, provider=provider,
                    provides=provides, loaded=loaded,
                )
            )
            for path, owner, symbols, version, library, provider, provides, loaded in value["unresolved"]
        ),
        asked=tuple(
            checked(Asked(symbol=symbol, library=library, found=tuple(found), lacking=tuple(lacking)))
            for symbol, library, found, lacking in value["asked"]
        ),
    )  # fmt: skip
