"""Generation with a model inside an environment: what the program is asked, and what is made of its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envforge.model import wire
from envforge.model.profile import Device, Generate, Profile, Smoke
from envforge.model.settings import Settings
from envforge.model.smoked import Generated
from envforge.store import models
from envforge.store.layout import Home
from envforge.system import http
from envforge.system.process import Completed

_PROGRAM = Path(__file__).with_name("generate_worker.py")
_SHOWN = 80
_MODELS = "put the model where the check looks for it (`envforge models` fetches those of a profile), or name another"


def located(home: Home, profile: Profile, asked: Generate) -> tuple[Generate, str | None]:
    """``asked`` with the path of a model that ``profile`` names; and, where that is not fetched yet, a sentence."""
    model = next((each for each in profile.models if each.name == asked.model), None)
    if model is None:
        return asked, None
    if model.path is not None:
        return replace(asked, model=str(Path(model.path).expanduser())), None
    place = models.place(home, model)
    missing = None if place.kept() is not None else f"the model `{model.name}` is not fetched yet"
    return replace(asked, model=str(place.folder)), missing


def ask(folder: Path, prefix: Path, smoke: Smoke, asked: Generate) -> list[str]:
    """Write down in ``folder`` what is to be generated; returns the words that do it. Raises OSError."""
    request = {
        "engine": asked.engine.value,
        "model": asked.model,
        "dtype": asked.dtype,
        "prompt": asked.prompt,
        "device": (smoke.device or Device.CUDA).value,
    }
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    return [str(prefix / "bin" / "python"), "-I", str(_PROGRAM), str(folder)]


def variables(asked: Generate, settings: Settings) -> Mapping[str, str]:
    """No hub is asked for what is named by its path, nor offline; else by the proxy. Nobody is told of the use."""
    quiet = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    if settings.offline or asked.model.startswith("/"):
        return {**quiet, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    given = http.proxies(settings.proxy)
    network = {"http_proxy": given.http, "https_proxy": given.https, "no_proxy": ",".join(given.exempt)}
    return {**quiet, **{name: value for name, value in network.items() if value}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """``ending`` in words; ``remedy``: what to do about it, None where nobody can say in general."""

    ok: bool
    ending: str
    generated: Generated | None = None
    remedy: str | None = None


def judge(folder: Path, asked: Generate, completed: Completed) -> Judged:
    """Whether it generated what was expected.

    Nothing that it printed counts: an engine logs at ERROR what it then gets over.
    """
    answer = _answer(folder)
    if not completed.ok:
        why = answer.get("missing")
        if isinstance(why, str):
            return Judged(ok=False, ending=why, remedy=_MODELS)
        return Judged(ok=False, ending=completed.ending())
    try:
        generated = wire.read_generated(answer)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Judged(ok=False, ending=f"{completed.ending()}, and no answer")
    text = generated.text.strip()
    if not text:
        return Judged(ok=False, ending="it generated nothing", generated=generated)
    if asked.expect is not None and asked.expect not in generated.text:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        ending = f"`{asked.expect}` is not in what it generated: `{shown}`"
        return Judged(ok=False, ending=ending, generated=generated)
    return Judged(ok=True, ending=completed.ending(), generated=generated)


def _answer(folder: Path) -> dict[str, Any]:
    """What the program wrote; empty where it wrote nothing that can be read."""
    try:
        answer = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}
