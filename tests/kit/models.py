"""Stand-ins for torch, transformers and vLLM, with what a generation needs of them, and models for them.

A model is a folder with a `config.json`: ``says`` is what comes out, ``does`` what happens instead.
"""

from __future__ import annotations

import json
from pathlib import Path

from .wheels import Wheel

_TORCH = """
import os

__version__ = "2.7.1"
float16 = "float16"
float32 = "float32"


class cuda:
    is_available = staticmethod(lambda: os.environ.get("CUDA_VISIBLE_DEVICES") != "")
    synchronize = staticmethod(lambda: None)
    max_memory_allocated = staticmethod(lambda: 3 << 30)
    get_device_name = staticmethod(lambda: "Tesla V100, seen as " + os.environ["CUDA_VISIBLE_DEVICES"])
"""

# What it prints looks like an answer, and what it logs like a failure.
_TRANSFORMERS = """
import json, logging, os, signal, sys, time

__version__ = "{version}"


def read(model, **options):
    if not os.path.isdir(model):
        offline = "offline" if os.environ.get("HF_HUB_OFFLINE") == "1" else "not found on the hub"
        raise OSError("no " + model + ": " + offline + chr(10) + "and more")
    with open(os.path.join(model, "config.json")) as stream:
        config = json.load(stream)
    print('{{"text": "printed", "tokens": 1}}')
    logging.getLogger("transformers").error("ERROR: something that does not matter")
    does = config.get("does")
    if does == "die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if does == "hang":
        time.sleep(600)
    if does == "raise":
        raise RuntimeError("no kernel image is available for execution on the device")
    if does == "leave":
        os._exit(0)
    return config


class AutoConfig:
    def __init__(self, config):
        self.max_position_embeddings = config.get("holds")

    @classmethod
    def from_pretrained(cls, model):
        return cls(read(model))


class Numbers(list):
    @property
    def shape(self):
        return (1, len(self))


class Asked(dict):
    def to(self, device):
        return self


class AutoTokenizer:
    pad_token_id, eos_token_id = None, 2
    from_pretrained = classmethod(lambda cls, model: cls())

    def __call__(self, prompt, return_tensors):
        return Asked(input_ids=Numbers(prompt.split()))

    def decode(self, output, skip_special_tokens):
        return " ".join(output)


class AutoModelForCausalLM:
    @classmethod
    def from_pretrained(cls, model, {dtype}):
        it = cls()
        it.says = read(model)["says"].split()
        it.config = type("Config", (), {{"_attn_implementation": "sdpa"}})
        return it

    def to(self, device):
        return self

    def eval(self):
        return self

    def generate(self, input_ids, max_new_tokens, do_sample, pad_token_id):
        return [[*input_ids, *self.says[:max_new_tokens]]]
"""

_VLLM = """
import logging, os, sys, time
from types import SimpleNamespace

from transformers import read

__version__ = "{version}"
logging.getLogger("vllm").setLevel(logging.INFO)
logging.getLogger("vllm").propagate = False


class SamplingParams:
    def __init__(self, *, temperature, max_tokens):
        assert temperature == 0.0
        self.max_tokens = max_tokens


class LLM:
    def __init__(self, model, *, dtype="auto", enforce_eager=False, seed=None, max_model_len=None):
        assert enforce_eager and os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
        self.says = read(model)["says"].split() + [str(max_model_len), dtype]
        logging.getLogger("vllm.model_executor.models").info("Using Transformers backend.")
        logging.getLogger("vllm.platforms.cuda").info({backend})
        logging.getLogger("vllm.platforms.cuda").info("Using Flash Attention backend for ViT model.")

    def generate(self, prompts, sampling_params, *, use_tqdm):
        (prompt,) = prompts
        made = self.says[: sampling_params.max_tokens]
        return [SimpleNamespace(outputs=[SimpleNamespace(text=" ".join(made), token_ids=list(range(len(made))))])]
"""


def torch() -> Wheel:
    return Wheel(name="torch", version="2.7.1", files={"torch/__init__.py": _TORCH})


def transformers(version: str = "4.53.3") -> Wheel:
    """From 4.56 on the type is given as ``dtype``, before as ``torch_dtype``."""
    dtype = "torch_dtype" if version < "4.56" else "dtype"
    text = _TRANSFORMERS.format(version=version, dtype=dtype)
    return Wheel(name="transformers", version=version, files={"transformers/__init__.py": text})


def vllm(version: str, says: str) -> Wheel:
    """``says``: its words for the attention backend, as arguments of a logger's ``info``."""
    text = _VLLM.format(version=version, backend=says)
    return Wheel(name="vllm", version=version, files={"vllm/__init__.py": text}, requires=("torch", "transformers"))


def model(folder: Path, says: str = "then there was light", **more: object) -> str:
    """The path of a model that says so."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"says": says, **more}), encoding="utf-8")
    return str(folder)
