"""The options of `pip install`, as they stand on a command line and in a requirements file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SHORT = {
    "-r": "--requirement", "-c": "--constraint", "-i": "--index-url", "-f": "--find-links", "-e": "--editable",
    "-U": "--upgrade", "-q": "--quiet", "-v": "--verbose", "-y": "--yes", "-t": "--target", "-C": "--config-settings",
    "-I": "--ignore-installed", "-p": "--python", "-P": "--upgrade-package", "-b": "--build-constraints",
    "-n": "--no-cache",
}  # fmt: skip
READ = frozenset({
    "--requirement", "--constraint", "--index-url", "--extra-index-url", "--find-links", "--editable", "--upgrade",
    "--no-deps", "--no-build-isolation", "--hash", "--index", "--default-index",
})  # fmt: skip
"""Those that mean something to a profile."""
_WITH_VALUE = frozenset({
    "--requirement", "--constraint", "--index-url", "--extra-index-url", "--find-links", "--editable", "--hash",
    "--index", "--default-index", "--target", "--prefix", "--root", "--src", "--platform", "--python-version",
    "--implementation", "--abi", "--config-settings", "--config-setting", "--global-option", "--build-option",
    "--install-option", "--no-binary", "--only-binary", "--trusted-host", "--use-feature", "--use-deprecated",
    "--upgrade-strategy", "--progress-bar", "--timeout", "--default-timeout", "--retries", "--cache-dir", "--log",
    "--exists-action", "--root-user-action", "--proxy", "--cert", "--client-cert", "--python", "--index-strategy",
    "--keyring-provider", "--prerelease", "--resolution", "--exclude-newer", "--torch-backend", "--link-mode",
    "--build-constraints", "--build-constraint", "--override", "--overrides", "--no-build-isolation-package",
    "--upgrade-package", "--refresh-package", "--reinstall-package", "--report", "--group", "--python-platform",
    "--allow-insecure-host", "--extra", "--color", "--config-file", "--uploaded-prior-to",
})  # fmt: skip
_WITHOUT_EFFECT = frozenset({
    "--quiet", "--verbose", "--yes", "--no-cache-dir", "--no-cache", "--disable-pip-version-check", "--no-input",
    "--no-color", "--progress-bar", "--timeout", "--default-timeout", "--retries", "--cache-dir", "--log", "--debug",
    "--exists-action", "--root-user-action", "--break-system-packages", "--no-python-version-warning", "--isolated",
    "--python", "--system", "--prefer-binary", "--no-warn-script-location", "--no-warn-conflicts", "--link-mode",
    "--no-progress", "--require-virtualenv", "--compile", "--no-compile", "--use-pep517", "--report", "--color",
    "--keyring-provider", "--no-clean", "--upgrade-strategy", "--index-strategy", "--native-tls",
})  # fmt: skip
"""Those that do not change what is installed, or that envforge decides for itself."""
_FLAGS = frozenset({
    "--upgrade", "--no-deps", "--no-build-isolation", "--pre", "--user", "--force-reinstall", "--no-index",
    "--require-hashes", "--ignore-installed", "--reinstall", "--ignore-requires-python", "--dry-run",
})  # fmt: skip
_NAMES = sorted(READ | _WITH_VALUE | _WITHOUT_EFFECT | _FLAGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """``name`` in its long form; empty for what is no option. ``value`` is empty for a flag."""

    name: str
    value: str = ""


def options(words: Sequence[str]) -> Iterator[Option]:
    """The words of a command line in order, those without effect left out."""
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if word == "--":
            yield from (Option(name="", value=rest) for rest in words[position:])
            return
        if not word.startswith("-") or word == "-":
            yield Option(name="", value=word)
            continue
        for name, value in _split(word):
            taken = value
            if taken is None and name in _WITH_VALUE:
                taken = words[position] if position < len(words) else ""
                position += 1
            if name not in _WITHOUT_EFFECT:
                yield Option(name=name, value=taken or "")


def _split(word: str) -> Iterator[tuple[str, str | None]]:
    """Options in one word, as ``--name=value``, ``-rfile`` and ``-qU`` hold them; None where the value comes next."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        yield _whole(name), value if equals else None
        return
    for position in range(1, len(word)):
        name = _SHORT.get(f"-{word[position]}", f"-{word[position]}")
        rest = word[position + 1 :]
        if name in _WITH_VALUE:
            yield name, rest.removeprefix("=") or None
            return
        yield name, None


def _whole(name: str) -> str:
    """The whole name: pip takes every beginning of an option that is not that of another."""
    close = [known for known in _NAMES if known.startswith(name)]
    return close[0] if name not in _NAMES and len(close) == 1 else name
