"""URLs in foreign files: what may not be repeated of them, and which index they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from envforge.profiles.values import index_url

TORCH = ("torch", "torchvision", "torchaudio")
# No scheme is longer, and a limit keeps the search linear; whatever stands before it, the password must go.
_USER = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://([^/\s?#]*)@")
_CHANNEL_TOKEN = re.compile(r"/t/[^/\s]+/")
_SECRET = re.compile(
    r"token|secret|passw|pwd|api_?key|credential|signature|(?:^|[_-])(?:sig|auth|key|pat)(?:$|[_-])", re.IGNORECASE
)
_COMPUTE = r"cu\d{2,3}|cpu|xpu|rocm\d[\d.]*"
_TORCH_INDEX = re.compile(
    r"(?P<base>https?://[^\s?#/]+(?:/[^\s?#]+?)?/(?:whl|pytorch-wheels)(?:/(?P<line>nightly|test))?)"
    rf"(?:/(?P<build>{_COMPUTE}))?(?:/torch\w*\.html|/torch)?/?"
)
_PLAIN_HOSTS = frozenset(
    {"www", "simple", "pypi", "wheels", "wheel", "index", "packages", "download", "whl", "pip", "mirror", "mirrors"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchIndex:
    """An index of PyTorch's layout. ``build``: ``cu126``; None where the address serves all builds."""

    base: str
    line: str | None
    build: str | None

    def of(self, build: str | None) -> tuple[str, str]:
        """Name and URL of the index that serves one build."""
        name = "-".join(part for part in ("torch", self.line, build) if part)
        return name, f"{self.base}/{build}" if build else self.base


def torch_index(url: str) -> TorchIndex | None:
    """What an address of PyTorch's layout, or a page of links in it, says; None for any other."""
    found = _TORCH_INDEX.fullmatch(url)
    return TorchIndex(base=found["base"], line=found["line"], build=found["build"]) if found else None


def is_index(url: str) -> bool:
    """Whether a profile may name it as an index."""
    try:
        index_url(url)
    except ValueError:
        return False
    return "$" not in url


def is_build(local: str) -> bool:
    """Whether a local version names a build of PyTorch, as ``cu126`` does."""
    return re.fullmatch(_COMPUTE, local) is not None


def is_default(url: str) -> bool:
    """Whether this is the index that everybody's pip asks."""
    labels = _host(url).split(".")
    return labels[0] == "pypi" and labels[-1] == "org" and labels[1:-1] in ([], ["python"])


def channel(url: str) -> str:
    """A channel of Anaconda's own server by its name, any other by its URL."""
    labels = _host(url).split(".")
    path = urlsplit(url).path.strip("/") if len(labels) == 3 and labels[:2] == ["conda", "anaconda"] else ""
    return path or url


def index_name(url: str) -> str:
    """A short name for an index by its host: ``vllm`` for ``https://wheels.vllm.example/...``."""
    host = _host(url)
    labels = [label for label in host.split(".")[:-1] if label not in _PLAIN_HOSTS] or host.split(".")
    name = re.sub(r"[^a-z0-9-]+", "-", labels[0].lower()).strip("-") if not host.replace(".", "").isdigit() else ""
    return name if name and name not in TORCH else "extra"


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def bare(url: str) -> tuple[str, bool]:
    """``url`` without what could be a secret (user, password, token of a channel, query), and whether it had such.

    The bare user of an ssh address is no secret and stays.
    """
    found: list[str] = []

    def hide(match: re.Match[str]) -> str:
        if match[1].lower().endswith("ssh") and ":" not in match[2] and "$" not in match[2]:
            return match[0]
        found.append(match[2])
        return f"{match[1]}://"

    text = _USER.sub(hide, url)
    if "://" in text and _CHANNEL_TOKEN.search(text):
        text = _CHANNEL_TOKEN.sub("/", text)
        found.append("token")
    if "?" in text and "://" in text:
        try:
            parts = urlsplit(text)
        except ValueError:
            parts = None
        if parts is not None and any(_SECRET.search(key) for key, _ in parse_qsl(parts.query, keep_blank_values=True)):
            text = urlunsplit(parts._replace(query=""))
            found.append("query")
    return text, bool(found)


def is_secret(variable: str) -> bool:
    """Whether a variable of this name holds what must not be written down."""
    return _SECRET.search(variable) is not None
