"""Loads a model and generates with it: a program of its own for the Python of an environment, 3.8 or newer.

It is started by its path in an isolated Python, so it imports nothing of envforge. Its argument is a folder:
``request.json`` in it is ``{"engine", "model", "dtype", "prompt", "device"}``, and what came of it goes to
``answer.json``, since libraries print what they like: ``{"text", "tokens", "seconds", "load_seconds", "attention",
"memory", "device", "versions"}``, or ``{"missing": why}`` where the model is not there.
"""

from __future__ import annotations

import json
import logging
import os
import re
import resource
import sys
import time  # noqa: TID251 - nothing of envforge is in reach
from contextlib import suppress
from pathlib import Path
from typing import Any

TOKENS = 32
LONGEST = 2048  # tokens of context: what a model could hold may be more than the card does
_BACKEND = re.compile(r"Using (?:AttentionBackendEnum\.)?([\w ]+?)(?: attention)? backend\b(?!.*ViT)")
_CHOOSERS = ("vllm.platforms", "vllm.attention")  # elsewhere it tells of other backends in the same words


class MissingError(Exception):
    """The model is not there; says so in words."""


def main(folder: Path) -> int:
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    try:
        _look_for(request["model"])
        answer = {"vllm": vllm, "transformers": transformers}[request["engine"]](request)
    except MissingError as error:
        answer = {"missing": str(error)}
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    return 1 if "missing" in answer else 0


def _look_for(model: str) -> None:
    if not model.startswith("/"):
        return
    if not Path(model).exists():
        raise MissingError(f"the model `{model}` is not there")
    if not (Path(model) / "config.json").is_file():
        raise MissingError(f"`{model}` holds no model: there is no `config.json` in it")


def transformers(request: dict[str, Any]) -> dict[str, Any]:
    import torch  # noqa: PLC0415 - in the environment
    import transformers as library  # noqa: PLC0415 - as above

    started = time.perf_counter()
    device = request["device"]
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit(f"torch {torch.__version__} sees no card")
    kind = request["dtype"] if request["dtype"] == "auto" else getattr(torch, request["dtype"])
    tokenizer = _found(request, library.AutoTokenizer.from_pretrained)
    key = "dtype" if _numbers(library.__version__) >= (4, 56) else "torch_dtype"
    model = _found(request, library.AutoModelForCausalLM.from_pretrained, **{key: kind}).to(device).eval()
    asked = tokenizer(request["prompt"], return_tensors="pt").to(device)
    given = {name: asked[name] for name in ("input_ids", "attention_mask") if name in asked}
    length = given["input_ids"].shape[-1]
    options = {"do_sample": False, "pad_token_id": tokenizer.pad_token_id or tokenizer.eos_token_id or 0}
    model.generate(**given, max_new_tokens=1, **options)  # the first one compiles and allocates
    before = _clock(torch, device)
    output = model.generate(**given, max_new_tokens=TOKENS, **options)[0][length:]
    after = _clock(torch, device)
    return {
        "text": tokenizer.decode(output, skip_special_tokens=True),
        "tokens": len(output),
        "seconds": after - before,
        "load_seconds": before - started,
        "attention": getattr(model.config, "_attn_implementation", None),
        **_where(torch, device),
        "versions": {"transformers": library.__version__, "torch": torch.__version__},
    }


def vllm(request: dict[str, Any]) -> dict[str, Any]:
    # In this very process: what it allocates can be counted, and a failure is told where it happened.
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # noqa: TID251 - nothing of envforge is in reach
    started = time.perf_counter()
    import torch  # noqa: PLC0415 - in the environment
    import vllm as library  # noqa: PLC0415 - as above

    told = _Backend()
    logging.getLogger("vllm").addHandler(told)
    options = {"model": request["model"], "dtype": request["dtype"], "enforce_eager": True, "seed": 0}
    longest = _longest(request)
    if longest is not None:
        options["max_model_len"] = longest
    engine = _found(request, lambda _, **more: library.LLM(**more), **options)
    prompts = [request["prompt"]]
    engine.generate(prompts, library.SamplingParams(temperature=0.0, max_tokens=1), use_tqdm=False)
    before = time.perf_counter()
    params = library.SamplingParams(temperature=0.0, max_tokens=TOKENS)
    output = engine.generate(prompts, params, use_tqdm=False)[0].outputs[0]
    after = time.perf_counter()
    return {
        "text": output.text,
        "tokens": len(output.token_ids),
        "seconds": after - before,
        "load_seconds": before - started,
        "attention": told.backend,
        **_where(torch, "cuda"),
        "versions": {"vllm": library.__version__, "torch": torch.__version__},
    }


class _Backend(logging.Handler):
    """Hears which attention backend vLLM has chosen: it says so in its log and nowhere else in every release."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.backend: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            found = _BACKEND.match(record.getMessage()) if record.name.startswith(_CHOOSERS) else None
            if found is not None:
                self.backend = found.group(1)


def _longest(request: dict[str, Any]) -> int | None:
    """The context that is asked for; None, so that vLLM decides, where the model does not say what it can hold."""
    from transformers import AutoConfig  # noqa: PLC0415 - in the environment, with vLLM

    config = _found(request, AutoConfig.from_pretrained)
    held = getattr(getattr(config, "text_config", config), "max_position_embeddings", None)
    return min(held, LONGEST) if isinstance(held, int) else None


def _found(request: dict[str, Any], load: Any, **options: Any) -> Any:
    """What ``load`` makes of the model. Raises MissingError where no file or hub has it."""
    try:
        return load(request["model"], **options)
    except OSError as error:
        # transformers and huggingface_hub say so of what is neither on disk nor on a hub that they may ask.
        if request["model"].startswith("/"):
            raise
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise MissingError(f"the model `{request['model']}` cannot be had: {why}") from error


def _clock(torch: Any, device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def _where(torch: Any, device: str) -> dict[str, Any]:
    if device == "cuda":
        return {"memory": torch.cuda.max_memory_allocated(), "device": torch.cuda.get_device_name()}
    return {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "device": "cpu"}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
