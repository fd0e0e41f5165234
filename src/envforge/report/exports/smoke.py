"""The smoke checks of a profile as a shell script."""

from __future__ import annotations

import shlex

from envforge.model.profile import Device, Profile, Smoke, SmokeKind


def carried(profile: Profile) -> tuple[Smoke, ...]:
    """Those that a shell can do: what generates needs a program of envforge."""
    return tuple(smoke for smoke in profile.smoke if smoke.generate is None)


def checks(profile: Profile) -> str:
    """Lines for sh, one for each check; the environment's programs come first in PATH."""
    return "".join(f"{_line(smoke)}\n" for smoke in carried(profile))


def script(profile: Profile) -> str:
    """A script of its own, which ends with the first check that fails."""
    return f'#!/bin/sh\nset -eu\ncd "$(mktemp -d)"\n{checks(profile)}'


def seconds(profile: Profile) -> int:
    """How long all checks together may take."""
    return int(sum(smoke.timeout for smoke in carried(profile))) + 1


def _line(smoke: Smoke) -> str:
    hidden = "CUDA_VISIBLE_DEVICES= " if smoke.device is Device.CPU else ""
    return f"{hidden}timeout {smoke.timeout:g} {shlex.join(_argv(smoke))}"


def _argv(smoke: Smoke) -> tuple[str, ...]:
    if smoke.kind is SmokeKind.IMPORT:
        return ("python", "-c", "".join(f"import {module}\n" for module in smoke.arguments).rstrip())
    if smoke.kind is SmokeKind.PYTHON:
        return ("python", "-c", smoke.arguments[0])
    return smoke.arguments
