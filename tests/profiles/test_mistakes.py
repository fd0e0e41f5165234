"""Every kind of mistake, at its exact place."""

from __future__ import annotations

from pathlib import Path

import pytest

from envforge.model.errors import InvalidFileError, UsageError
from envforge.profiles import loader

HEAD = "schema: 1\nname: x\npython: '3.11'\n"
LINE = 4


def mistakes(text: str | bytes, folder: Path) -> list[str]:
    """What `load` says about ``text``, without the path."""
    path = folder / "p.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InvalidFileError) as caught:
        loader.load(path, cwd=folder, config=folder / "none")
    assert caught.value.code == "invalid-profile"
    assert caught.value.exit == 2
    return [str(mistake).removeprefix(f"{path}:") for mistake in caught.value.mistakes]


# What stands after HEAD, so its first line is line 4, and the mistakes, each "line:column: message".
CASES: dict[str, tuple[str, list[str]]] = {
    "unknown key": ("stpes: []", ["4:1: unknown key `stpes`; did you mean `steps`?"]),
    "unknown key, nothing close": ("zzz: []", ["4:1: unknown key `zzz`"]),
    "duplicate key": ("summary: a\nsummary: b", ["5:1: duplicate key `summary`, first given in line 4"]),
    "wrong type": ("steps: {}", ["4:8: expected a list, found a mapping"]),
    "a key without value": ("steps:", ["4:7: expected a list, found nothing"]),
    "a step's action without value": (
        "steps:\n- name: a\n  install:\n",
        ["6:11: `install` has no value: give one, or leave the key out"],
    ),
    "key is no string": ("environment: {1: a}", ['4:15: a key must be a string: quote it, `"1"`']),
    "key is a list": ("environment: {[a]: a}", ["4:15: a key must be a string"]),
    "merge key": ("environment: {<<: {A: b}}", ["4:15: merge keys (`<<`) are not supported: use `extends`"]),
    "variable is a number": (
        "environment: {A: 08}",
        ['4:18: expected a string, found the number `08`: quote it, `"08"`'],
    ),
    "variable is a boolean": (
        "environment: {A: true}",
        ['4:18: expected a string, found the boolean `true`: quote it, `"true"`'],
    ),
    "variable's name": ("environment: {A B: x}", ["4:15: `A B` is no name of a variable: letters, digits and `_`"]),
    "backend": (
        "backend: conde",
        ["4:10: expected `venv` or `conda`, found the string `conde`; did you mean `conda`?"],
    ),
    "conda block with venv": ("conda: {packages: [a]}", ["4:8: `conda` is only for `backend: conda`"]),
    "conda step with venv": (
        "steps: [{name: a, conda: [b]}]",
        ["4:19: a `conda` step is only for `backend: conda`"],
    ),
    "index without url": ("indexes: [{name: t}]", ["4:11: index `t` needs a `url`; only `pypi` needs none"]),
    "duplicate index": (
        "indexes:\n- {name: pypi}\n- {name: pypi}",
        ["6:10: duplicate index `pypi`, first given in {path}:5"],
    ),
    "index without name": ("indexes: [{url: 'https://a.example/s'}]", ["4:11: `name` is missing"]),
    "index with a strange scheme": (
        "indexes: [{name: t, url: 'ftp://a.example/s'}]",
        ["4:26: invalid URL `ftp://a.example/s`: expected one with `http://`, `https://`"],
    ),
    "password in an index": (
        "indexes: [{name: t, url: 'https://me:secret@a.example/s'}]",
        [
            (
                "4:26: credentials in the URL `https://***@a.example/s`: "
                "set `ENVFORGE_INDEX_<NAME>_USERNAME` and `_PASSWORD`, or use netrc"
            )
        ],
    ),
    "password in a requirement": (
        "steps: [{name: a, install: ['b @ https://me:s@a.example/b.whl']}]",
        [
            (
                "4:29: credentials in the URL `https://***@a.example/b.whl`: "
                "set `ENVFORGE_INDEX_<NAME>_USERNAME` and `_PASSWORD`, or use netrc"
            )
        ],
    ),
    "pattern of packages": (
        "indexes: [{name: pypi, packages: [a b]}]",
        ["4:35: `a b` is no name or pattern of distributions"],
    ),
    "unknown index in a step": (
        (
            "indexes: [{name: torch-cu126, url: 'https://a.example/s'}]\n"
            "steps: [{name: a, install: [b], indexes: [torch-cu12]}]"
        ),
        ["5:43: unknown index `torch-cu12`; did you mean `torch-cu126`?"],
    ),
    "duplicate step": (
        "steps:\n- {name: a, install: [b]}\n- {name: a, install: [c]}",
        ["6:10: duplicate step `a`, first given in {path}:5"],
    ),
    "step without name": ("steps: [{install: [b]}]", ["4:9: a step needs a `name`"]),
    "step with two actions": (
        "steps: [{name: a, install: [b], pin: [c]}]",
        ["4:33: a step has exactly one action, this one has `install` and `pin`"],
    ),
    "step without action": (
        "steps: [{name: a}]",
        ["4:9: a step needs an action: one of `install`, `backfill`, `pin`, `uninstall`, `conda`, `run`"],
    ),
    "misspelt action": ("steps: [{name: a, instal: [b]}]", ["4:19: unknown key `instal`; did you mean `install`?"]),
    "empty action": ("steps: [{name: a, install: []}]", ["4:28: must not be empty"]),
    "step is no mapping": ("steps: [a]", ["4:9: expected a mapping, found the string `a`"]),
    "option that does not apply": (
        "steps: [{name: a, uninstall: [b], upgrade: true}]",
        ["4:35: `upgrade` does not apply to `uninstall`, only to `install`"],
    ),
    "with but no recipe": (
        "steps: [{name: a, install: [b], with: {}}]",
        ["4:33: `with` is only for a step with `recipe`"],
    ),
    "name of a step": (
        "steps: [{name: a/b, install: [b]}]",
        ["4:16: invalid name `a/b`: letters, digits, `.`, `_` and `-`, beginning with a letter or digit"],
    ),
    "requirement": (
        "steps: [{name: a, install: ['b c']}]",
        ["4:29: invalid requirement `b c`: Expected semicolon (after name with no version specifier) or end"],
    ),
    "specifier": (
        "steps: [{name: a, install: ['b>=x']}]",
        ["4:29: invalid requirement `b>=x`: Expected semicolon (after name with no version specifier) or end"],
    ),
    "marker": (
        "steps: [{name: a, install: ['b; spam > 3']}]",
        ["4:29: invalid requirement `b; spam > 3`: Expected a marker variable or quoted string"],
    ),
    "name to uninstall": (
        "steps: [{name: a, uninstall: ['b>1']}]",
        ["4:31: `b>1` is no name of a distribution"],
    ),
    "guard of no kind": (
        "guards: [{because: x}]",
        ["4:10: a guard needs a kind: one of `keep`, `hold`, `forbid`, `symbol`"],
    ),
    "guard of two kinds": (
        "guards: [{keep: [a], hold: a<2}]",
        ["4:22: a guard has exactly one kind, this one has `keep` and `hold`"],
    ),
    "misspelt guard": ("guards: [{forbidd: [a]}]", ["4:11: unknown key `forbidd`; did you mean `forbid`?"]),
    "hold of nothing": (
        "guards: [{hold: a}]",
        ["4:17: `a` holds nothing: give a version specifier, such as `a<2`"],
    ),
    "symbol without library": (
        "guards: [{symbol: a}]",
        ["4:10: a `symbol` guard needs the `library` that must define it"],
    ),
    "library without symbol": (
        "guards: [{keep: [a], library: b}]",
        ["4:22: `library` is only for a guard with `symbol`"],
    ),
    "constrain elsewhere": (
        "guards: [{forbid: [a], constrain: true}]",
        ["4:24: `constrain` is only for `keep` and `hold`"],
    ),
    "unknown finding": ("ignore: [file-mising]", ["4:10: unknown finding `file-mising`; did you mean `file-missing`?"]),
    "unknown key of an ignored finding": (
        "ignore: [{id: leftover, subjekt: a}]",
        ["4:25: unknown key `subjekt`; did you mean `subject`?"],
    ),
    "smoke check of no kind": (
        "smoke: [{name: a}]",
        ["4:9: a smoke check needs a kind: one of `import`, `python`, `command`, `generate`"],
    ),
    "smoke check of two kinds": (
        "smoke: [{import: [a], python: b}]",
        ["4:23: a smoke check has exactly one kind, this one has `import` and `python`"],
    ),
    "module": ("smoke: [{import: [a b]}]", ["4:19: `a b` is no name of a module"]),
    "time limit": ("smoke: [{python: a, timeout: 0}]", ["4:30: expected a number above 0, found the number `0`"]),
    "time limit without end": (
        "smoke: [{python: a, timeout: .inf}]",
        ["4:30: expected a number, found the number `.inf`"],
    ),
    "generate": ("smoke: [{generate: a}]", ["4:20: expected a mapping, found the string `a`"]),
    "generate without what it needs": (
        "smoke: [{generate: {engine: vllm, modell: a}}]",
        ["4:20: `prompt` is missing", "4:35: unknown key `modell`; did you mean `model`?"],
    ),
    "generate with what is unknown": (
        "smoke: [{generate: {engine: vlm, model: a, prompt: b, dtype: half}, device: rocm}]",
        [
            "4:29: expected `vllm` or `transformers`, found the string `vlm`; did you mean `vllm`?",
            "4:62: expected `auto`, `float16`, `bfloat16` or `float32`, found the string `half`",
            "4:77: expected `cuda` or `cpu`, found the string `rocm`",
        ],
    ),
    "generate with nothing to say": (
        "smoke: [{generate: {engine: vllm, model: ./a, prompt: '', expect: 3}}]",
        [
            "4:42: `./a` is no model: give an absolute path, or a hub's name such as `owner/name`",
            "4:55: must not be empty",
            '4:67: expected a string, found the number `3`: quote it, `"3"`',
        ],
    ),
    "generate and another kind": (
        "smoke: [{import: [a], generate: {engine: vllm, model: a, prompt: b}}]",
        ["4:23: a smoke check has exactly one kind, this one has `import` and `generate`"],
    ),
    "vLLM on the CPU": (
        "smoke: [{generate: {engine: vllm, model: a, prompt: b}, device: cpu}]",
        ["4:57: `device: cpu` is only for the engine `transformers`: vLLM needs a card"],
    ),
    "model's name": (
        "models: [{name: ../a, from: huggingface}]",
        ["4:17: `../a` is no name of a model, such as `Qwen/Qwen2-0.5B`"],
    ),
    "model of three parts": (
        "models: [{name: a/b/c, from: huggingface}]",
        ["4:17: `a/b/c` is no name of a model, such as `Qwen/Qwen2-0.5B`"],
    ),
    "model from nowhere": (
        "models: [{name: a, from: modelscop}]",
        [
            (
                "4:26: expected `modelscope`, `huggingface` or `path`, found the string `modelscop`; "
                "did you mean `modelscope`?"
            )
        ],
    ),
    "model without from": ("models: [{name: a}]", ["4:10: `from` is missing"]),
    "revision": (
        "models: [{name: a, from: huggingface, revision: ../b}]",
        [
            "4:49: `../b` is no revision: give a branch, a tag or a commit, in letters, digits, `.`, `_` and `-`",
        ],
    ),
    "duplicate model": (
        "models:\n- {name: a, from: huggingface}\n- {name: a, from: modelscope}",
        ["6:10: duplicate model `a`, first given in {path}:5"],
    ),
    "model from a path that is not given": (
        "models: [{name: a, from: path}]",
        ["4:10: a model `from: path` needs the `path` where it lies"],
    ),
    "model from a path with a revision": (
        "models: [{name: a, from: path, path: /a, revision: b}]",
        ["4:42: `revision` is only for a model from a hub"],
    ),
    "model from a hub with a path": (
        "models: [{name: a, from: modelscope, path: /a}]",
        ["4:38: `path` is only for a model `from: path`"],
    ),
    "relative path of a model": (
        "models: [{name: a, from: path, path: a/b}]",
        ["4:38: `a/b` is no absolute path, nor one that begins with `~/`"],
    ),
    "compute capability": (
        "gpu: {compute_capability: '7.0'}",
        ["4:27: invalid version specifier `7.0`; did you mean `==7.0`?"],
    ),
    "compute capability as a number": (
        "gpu: {compute_capability: 7.0}",
        ['4:27: expected a version specifier, found the number `7.0`: write `"==7.0"`'],
    ),
    "compute capabilities as numbers": (
        "gpu: {compute_capability: [8.10]}",
        ['4:28: expected a version specifier, found the number `8.10`: write `"==8.10"`'],
    ),
    "operators the wrong way round": (
        "steps: [{name: a, install: ['click=>8', 'six=1']}]",
        [
            "4:29: invalid requirement `click=>8`; did you mean `click>=8`?",
            "4:41: invalid requirement `six=1`; did you mean `six==1`?",
        ],
    ),
    "one of several compute capabilities": (
        "gpu: {compute_capability: ['==7.0', x]}",
        ["4:37: invalid version specifier `x`"],
    ),
    "number of cards": (
        "gpu: {count: 2}",
        ['4:14: expected a string, found the number `2`: quote it, `"2"`'],
    ),
    "command": ("commands: {serve: a b}", ["4:19: expected a list, found the string `a b`"]),
    "tag": (
        "summary: !!python/object/apply:os.system [ls]",
        ["4:10: the tag `!!python/object/apply:os.system` is not supported: this file is plain data"],
    ),
    "own tag": ("summary: !env HOME", ["4:10: the tag `!env` is not supported: this file is plain data"]),
    "unknown recipe": (
        "steps: [{recipe: vlm}]",
        [
            (
                "4:18: there is no recipe `vlm`; did you mean `vllm`? "
                "(looked in `{folder}/recipes`, `{folder}/none/recipes`, `{shipped}`)"
            )
        ],
    ),
    "something beside a recipe": (
        "steps: [{recipe: torch, name: a}]",
        ["4:25: `name` cannot stand beside `recipe`: its steps have their own"],
    ),
    "unknown parameter": (
        "steps: [{recipe: xinference, with: {version: '4.1.0', vresion: a}}]",
        ["4:55: recipe `xinference` has no parameter `vresion`; did you mean `version`?"],
    ),
    "missing parameter": (
        "steps: [{recipe: xinference}]",
        ["4:18: recipe `xinference` needs the parameter `version`: give it under `with`"],
    ),
    "parameter is a number": (
        "steps: [{recipe: xinference, with: {version: 4.1}}]",
        ['4:46: expected a string, found the number `4.1`: quote it, `"4.1"`'],
    ),
    "unknown profile": (
        "extends: quikstart",
        [
            (
                "4:10: there is no profile `quikstart`; did you mean `quickstart`? "
                "(looked in `{folder}/profiles`, `{folder}/none/profiles`, `{shipped_profiles}`)"
            )
        ],
    ),
    "extends itself": ("extends: ./p.yaml", ["4:10: `extends` goes in a circle: `p.yaml` -> `p.yaml`"]),
    "all in one go": (
        "gpu: {drivr: x}\nsteps: [{name: a, pin: [a b]}]\nguards: [{hold: a}]",
        [
            "4:7: unknown key `drivr`; did you mean `driver`?",
            "5:25: invalid requirement `a b`: Expected semicolon (after name with no version specifier) or end",
            "6:17: `a` holds nothing: give a version specifier, such as `a<2`",
        ],
    ),
}


def test_a_key_that_is_misspelt_is_not_missing_too(tmp_path: Path) -> None:
    assert mistakes("schema: 1\nnmae: p\n", tmp_path) == ["2:1: unknown key `nmae`; did you mean `name`?"]


@pytest.mark.parametrize("case", CASES)
def test_every_mistake_has_its_place(case: str, tmp_path: Path) -> None:
    from envforge.profiles import lookup

    text, expected = CASES[case]
    places = {
        "{path}": str(tmp_path / "p.yaml"),
        "{folder}": str(tmp_path),
        "{shipped}": str(lookup.shipped("recipes")),
        "{shipped_profiles}": str(lookup.shipped("profiles")),
    }
    for name, place in places.items():
        expected = [message.replace(name, place) for message in expected]
    assert mistakes(HEAD + text, tmp_path) == expected


# Whole files.
FILES: dict[str, tuple[str | bytes, list[str]]] = {
    "empty": ("", ["1:1: the file is empty"]),
    "only a comment": ("# nothing\n", ["1:1: the file is empty"]),
    "a list": ("- a\n", ["1:1: expected a mapping, found a list"]),
    "a word": ("\n  hello", ["2:3: expected a mapping, found the string `hello`"]),
    "not UTF-8": (b"schema: 1\nname: \xff\n", ["2:7: not UTF-8: byte 0xff"]),
    "a control character": (b"schema: 1\nname: a\x01\n", ["2:8: the character U+0001 is not allowed in YAML"]),
    "a tab": (
        "schema: 1\n\tname: x",
        ["2:1: YAML: while scanning for the next token found character '\\t' that cannot start any token"],
    ),
    "an open bracket": (
        "schema: 1\nname: x\nsteps: [a",
        ["3:10: YAML: while parsing a flow sequence expected ',' or ']', but got '<stream end>'"],
    ),
    "two documents": (
        "schema: 1\n---\nschema: 1\n",
        ["2:1: YAML: expected a single document in the stream but found another document"],
    ),
    "unknown alias": ("a: *b", ["1:4: YAML: found undefined alias 'b'"]),
    "nothing required": ("summary: a", ["1:1: `name` is missing", "1:1: `schema` is missing"]),
    "newer": (
        "schema: 2\nname: x\nnew: {}\n",
        ["1:9: schema 2 is newer than this envforge reads (1): update envforge"],
    ),
    "schema zero": ("schema: 0\nname: x\n", ["1:9: expected `1`, found the number `0`"]),
    "python as a number": (
        "schema: 1\nname: x\npython: 3.10\n",
        ['3:9: expected a string, found the number `3.10`, which reads as 3.1: quote it, `"3.10"`'],
    ),
    "python as a word": (
        "schema: 1\nname: x\npython: python3\n",
        ['3:9: invalid Python version `python3`: give one such as `"3.10"`, `"3.10.13"` or `">=3.11"`'],
    ),
    "name": (
        "schema: 1\nname: -x y\n",
        ["2:7: invalid name `-x y`: letters, digits, `.`, `_` and `-`, beginning with a letter or digit"],
    ),
    "name ending with a newline": (
        'schema: 1\nname: "x\\n"\n',
        ["2:7: invalid name `x\n`: letters, digits, `.`, `_` and `-`, beginning with a letter or digit"],
    ),
    "too large": (b"#" * ((1 << 20) + 1), ["1:1: larger than 1 MiB"]),
}


@pytest.mark.parametrize("case", FILES)
def test_broken_files(case: str, tmp_path: Path) -> None:
    text, expected = FILES[case]
    assert mistakes(text, tmp_path) == expected


def test_deep_nesting_is_told_and_harmless(tmp_path: Path) -> None:
    assert mistakes("a: " + "[" * 100_000, tmp_path) == ["1:43: YAML: nested deeper than 40 levels"]


def test_aliases_that_explode_are_told_and_harmless(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    [message] = mistakes("\n".join(lines), tmp_path)
    assert message.endswith("aliases expand to more than a profile can hold")


def test_an_alias_of_itself_is_told_and_harmless(tmp_path: Path) -> None:
    [message] = mistakes("a: &a [*a]", tmp_path)
    assert message.endswith("aliases expand to more than a profile can hold")


def test_aliases_serve_as_in_any_yaml(tmp_path: Path) -> None:
    text = HEAD + "steps:\n- {name: a, install: &list [b<2]}\n- {name: c, pin: *list}\n"
    profile = loader.loads(text, "p.yaml", cwd=tmp_path, config=tmp_path)
    assert profile.steps[1].arguments == ("b<2",)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        loader.load(tmp_path)
    assert (caught.value.code, caught.value.cause) == ("unreadable-file", "it is no file")
    with pytest.raises(UsageError) as caught:
        loader.load(tmp_path / "absent.yaml")
    assert caught.value.cause == "no such file or directory"


def test_secrets_are_never_repeated(tmp_path: Path) -> None:
    url = "https://me:secret@a.example/s"
    text = f"schema: 1\nname: '{url}'\npython: '{url}'\nextends: '{url}'\nsteps: [{{name: a, install: ['{url}']}}]\n"
    assert "secret" not in "\n".join(mistakes(text, tmp_path))
