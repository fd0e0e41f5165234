"""The process environment, read in one place, and the clean one that engines get."""

from __future__ import annotations

import getpass
import os
import platform
import socket
from collections.abc import Collection, Mapping

# What an engine needs from the host: where certificates lie, where temporary files go, what language
# messages come in. Everything else (PIP_*, UV_*, PYTHON*, CONDA_*, LD_*) stays outside.
_PASSED = (
    "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TERM", "TZ",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR",
)  # fmt: skip

PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_CONFIGURED: set[str] = set()
_SHORT = 3  # a password of so few letters would blank out half of every text


def variables() -> Mapping[str, str]:
    """The process environment as it is now."""
    return os.environ


def hermetic(extra: Mapping[str, str] | None = None, allow: Collection[str] = ()) -> dict[str, str]:
    """An environment for an engine's process: certificates pass, the host's pip, uv and Python settings do not.

    ``allow``: tools (``pip``, ``uv``, ``conda``) whose variables and files are let in all the same, since the user's
    own configuration of envforge says so. Proxies are not passed: `system.http` reads them once, and the caller adds
    what fits the child.
    """
    clean = {name: os.environ[name] for name in _PASSED if name in os.environ}
    clean["LC_ALL"] = "C.UTF-8"
    clean["PYTHONNOUSERSITE"] = "1"
    if "pip" not in allow:
        clean["PIP_CONFIG_FILE"] = os.devnull
    if "uv" not in allow:
        clean["UV_NO_CONFIG"] = "1"
    prefixes = tuple(f"{tool.upper()}_" for tool in allow)
    clean.update({name: value for name, value in os.environ.items() if prefixes and name.startswith(prefixes)})
    clean.update(extra or {})
    return clean


# What a step's variables may not do to an engine: load code into it, or lead it past the router.
_NOT_FOR_ENGINES = ("LD_", "RUST_", "UV_", "PIP_", "PYTHON", "SSL_", "GIT_")


def for_engine(given: Mapping[str, str], *, builds: bool) -> dict[str, str]:
    """A step's variables as far as an engine gets them; a build also gets ``LD_LIBRARY_PATH`` and its like."""
    kept = _NOT_FOR_ENGINES[2:] if builds else _NOT_FOR_ENGINES
    return {
        name: value
        for name, value in given.items()
        if not name.upper().startswith(kept) and not name.upper().endswith("_PROXY")
    }


def scrubbed(text: str) -> str:
    """``text`` without the passwords that the process environment holds: of proxies and of indexes."""
    for secret in _secrets():
        text = text.replace(secret, "***")
    return text


def keep_secret(*texts: str) -> None:
    """Passwords that the configuration holds: `scrubbed` takes them out, too."""
    _CONFIGURED.update(text for text in texts if text)


def _secrets() -> tuple[str, ...]:
    found = list(_CONFIGURED)
    for name, value in os.environ.items():
        if name.lower().endswith("_proxy") and "@" in value:
            found.append(value.rpartition("@")[0].rpartition("://")[2].partition(":")[2])
        elif name.startswith("ENVFORGE_INDEX_") and name.endswith("_PASSWORD"):
            found.append(value)
    return tuple(secret for secret in found if len(secret) > _SHORT)


def user() -> str:
    """The name of the user, or the numeric id where no name is known."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def is_root() -> bool:
    """Whether permissions of files mean nothing to this process, as far as the user tells."""
    return os.geteuid() == 0


def hostname() -> str:
    return socket.gethostname()


def glibc() -> str | None:
    """The host's glibc as ``2.36``; None where the C library is another one."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None
    name, _, version = (text or "").partition(" ")
    return version if name == "glibc" else None


def architecture() -> str:
    """``x86_64``, ``aarch64``, ... as the kernel names it."""
    return platform.machine()


def operating_system() -> str:
    """``Linux``, ``Darwin``, ``Windows``."""
    return platform.system()
