"""The form of a profile and of a recipe as they stand in a file: strict, unknown keys forbidden.

What no form of a single value can say (unique names, known indexes, one action a step) is in `checks`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from envforge.model.finding import FINDING_IDS
from envforge.profiles.values import (
    ChannelText,
    DistributionName,
    Filled,
    FindingId,
    HeldRequirement,
    IndexUrl,
    MatchSpecText,
    ModelName,
    ModelPath,
    ModelText,
    ModuleName,
    Name,
    NamePattern,
    PythonText,
    RequirementText,
    RevisionText,
    Specifiers,
    SpecifierText,
    VariableName,
    VersionText,
)

SCHEMA = 1
ACTIONS = ("install", "backfill", "pin", "uninstall", "conda", "run")
GUARDS = ("keep", "hold", "forbid", "symbol")
SMOKES = ("import", "python", "command", "generate")


def _one_of(names: tuple[str, ...]) -> dict[str, Any]:
    return {"oneOf": [{"required": [name]} for name in names]}


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=False, regex_engine="python-re")


class GpuForm(Form):
    """Which cards the profile is for; every specifier is PEP 440."""

    compute_capability: Annotated[Specifiers, Field(description="specifiers over major.minor; any of them")] = []
    driver: Annotated[SpecifierText | None, Field(description="the driver's version")] = None
    memory_gib: Annotated[SpecifierText | None, Field(description="memory of one card in GiB")] = None
    count: Annotated[SpecifierText | None, Field(description="how many such cards there must be")] = None


class CondaForm(Form):
    """Only for `backend: conda`."""

    channels: Annotated[list[ChannelText], Field(description="default: conda-forge; those that come first win")] = []
    packages: Annotated[list[MatchSpecText], Field(description="match specs; the Python comes from `python`")] = []


class IndexForm(Form):
    """One package index; those that come first win."""

    name: Name
    url: Annotated[IndexUrl | None, Field(description="a PEP 503 or 691 index; only `pypi` needs none")] = None
    packages: Annotated[
        list[NamePattern],
        Field(description="this index serves only these, and these come only from it; patterns such as `nvidia-*`"),
    ] = []


class StepForm(Form):
    """One ordered change: exactly one action, or a recipe that expands here."""

    model_config = ConfigDict(json_schema_extra=_one_of((*ACTIONS, "recipe")))

    name: Name | None = None
    install: Annotated[list[RequirementText] | None, Field(min_length=1)] = None
    backfill: Annotated[
        list[RequirementText] | None,
        Field(min_length=1, description="adds what is absent and lifts what does not satisfy; nothing else changes"),
    ] = None
    pin: Annotated[
        list[RequirementText] | None,
        Field(min_length=1, description="changes what is installed until every requirement holds"),
    ] = None
    uninstall: Annotated[list[DistributionName] | None, Field(min_length=1)] = None
    conda: Annotated[list[MatchSpecText] | None, Field(min_length=1, description="match specs")] = None
    run: Annotated[list[str] | None, Field(min_length=1, description="an argument vector, run inside")] = None
    indexes: Annotated[list[Name] | None, Field(min_length=1, description="default: all of the profile's")] = None
    upgrade: bool = False
    no_deps: bool = False
    no_build_isolation: list[DistributionName] = []
    constraints: list[RequirementText] = []
    build_constraints: list[RequirementText] = []
    allow: Annotated[list[DistributionName], Field(description="kept, yet these may change in this step")] = []
    environment: dict[VariableName, str] = {}
    recipe: Name | None = None
    with_: Annotated[dict[str, str], Field(alias="with", description="the recipe's parameters")] = {}
    from_: Annotated[
        Name | None, Field(alias="from", description="the recipe that it came from; written into records")
    ] = None  # fmt: skip


class GuardForm(Form):
    """What must hold after every step and at the end: exactly one of keep, hold, forbid, symbol."""

    model_config = ConfigDict(json_schema_extra=_one_of(GUARDS))

    keep: Annotated[list[NamePattern] | None, Field(min_length=1)] = None
    hold: HeldRequirement | None = None
    forbid: Annotated[list[NamePattern] | None, Field(min_length=1)] = None
    symbol: Filled | None = None
    library: Annotated[Filled | None, Field(description="only beside `symbol`: the shared object's name")] = None
    constrain: Annotated[bool, Field(description="given to the resolver at every step too")] = False
    because: Filled | None = None
    reference: Filled | None = None


class IgnoreForm(Form):
    """Findings that are lowered to severity info."""

    id: FindingId
    subject: Filled | None = None
    because: Filled | None = None


class GenerateForm(Form):
    """A model is loaded and generates."""

    engine: Literal["vllm", "transformers"]
    model: Annotated[ModelText, Field(description="an absolute path, or what a hub calls it")]
    prompt: Filled
    dtype: Annotated[
        Literal["auto", "float16", "bfloat16", "float32"] | None, Field(description="default: auto, as the model says")
    ] = None
    expect: Annotated[Filled | None, Field(description="must be in the text; default: any text will do")] = None


class KnownReleaseForm(Form):
    """What is known of one release of a distribution; recipes bring it, and it is written into records."""

    name: DistributionName
    version: VersionText
    compute_capability: Annotated[Specifiers, Field(description="the cards that it runs on; any of them")] = []
    essential: Annotated[
        list[Filled], Field(description="files without whose GPU code it is of no use; patterns of their names")
    ] = []
    reference: Filled | None = None


class SmokeForm(Form):
    """One proof that it works: exactly one of import, python, command, generate."""

    model_config = ConfigDict(json_schema_extra=_one_of(SMOKES))

    import_: Annotated[list[ModuleName] | None, Field(alias="import", min_length=1)] = None
    python: Annotated[Filled | None, Field(description="source code")] = None
    command: Annotated[list[str] | None, Field(min_length=1)] = None
    generate: GenerateForm | None = None
    device: Annotated[
        Literal["cuda", "cpu"] | None,
        Field(description="cuda: skipped without a card, the default of generate; cpu: sees no card"),
    ] = None
    name: Filled | None = None
    timeout: Annotated[float | None, Field(gt=0, allow_inf_nan=False, description="seconds")] = None


class ModelForm(Form):
    """Weights that what runs in the environment needs; `envforge models` fetches them."""

    name: ModelName
    from_: Annotated[Literal["modelscope", "huggingface", "path"], Field(alias="from")]
    revision: Annotated[RevisionText | None, Field(description="a branch, tag or commit; default: the hub's own")] = (
        None
    )
    path: Annotated[ModelPath | None, Field(description="only for `from: path`: the folder or file")] = None


def _as_entry(value: Any) -> Any:
    return {"id": value} if isinstance(value, str) else value


_ID_SCHEMA = {"type": "string", "enum": sorted(FINDING_IDS)}
_IGNORE_SCHEMA = {
    "anyOf": [
        _ID_SCHEMA,
        {
            "type": "object",
            "required": ["id"],
            "additionalProperties": False,
            "properties": {"id": _ID_SCHEMA, "subject": {"type": "string"}, "because": {"type": "string"}},
        },
    ]
}
IgnoreEntry = Annotated[IgnoreForm, BeforeValidator(_as_entry), WithJsonSchema(_IGNORE_SCHEMA)]


class ProfileForm(Form):
    """A profile of envforge, schema 1."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Name
    extends: Annotated[str | None, Field(description="a profile whose parts this one takes over")] = None
    summary: str = ""
    gpu: GpuForm | None = None
    python: Annotated[PythonText | None, Field(description='"3.10", "3.10.13" or a specifier such as ">=3.11"')] = None
    backend: Annotated[
        Literal["venv", "conda"] | None, Field(description="default: venv")
    ] = None  # fmt: skip
    conda: CondaForm | None = None
    indexes: list[IndexForm] = []
    environment: dict[VariableName, str] = {}
    steps: list[StepForm] = []
    guards: list[GuardForm] = []
    ignore: list[IgnoreEntry] = []
    releases: list[KnownReleaseForm] = []
    smoke: list[SmokeForm] = []
    models: list[ModelForm] = []
    commands: dict[Name, Annotated[list[str], Field(min_length=1)]] = {}
    sealed: Annotated[bool, Field(description="what is built is read-only, as `envforge seal` makes it")] = False


class ParameterForm(Form):
    """One parameter of a recipe; without a default it must be given."""

    default: str | None = None
    description: Filled


class ReleaseForm(Form):
    """What is known about one release: facts with their source and how they were checked."""

    version: VersionText
    requires: list[RequirementText] = []
    python: SpecifierText | None = None
    compute_capability: Specifiers = []
    essential: Annotated[
        list[Filled], Field(description="files without whose GPU code it is of no use; patterns of their names")
    ] = []
    reference: Filled
    checked: Filled


class RecipeForm(Form):
    """A recipe of envforge, schema 1: `${parameter}` in its parts is replaced by what the profile gives."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Name
    summary: str = ""
    parameters: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], ParameterForm] = {}
    steps: list[StepForm] = []
    guards: list[GuardForm] = []
    ignore: list[IgnoreEntry] = []
    smoke: list[SmokeForm] = []
    models: list[ModelForm] = []
    environment: dict[VariableName, str] = {}
    releases: list[ReleaseForm] = []
