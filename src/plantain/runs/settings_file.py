"""A recipe or a settings file (TOML): the sections that both have, and errors that name the file and the field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    Field,
    PlainValidator,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from plantain.engines.contract import HERE, EngineSection
from plantain.files.opening import read_toml_table
from plantain.models.registry import provider_names, settings_class
from plantain.records import InputError
from plantain.records.messages import like_path, suggest
from plantain.roles.options import EDITS, FREE, WORDS, ProviderSettings, Section

M = TypeVar("M", bound=BaseModel)
Role = Literal["writer", "editor", "judge", "describer"]
"""The sections `[settings.ROLE]` that there can be."""

RESERVED = frozenset({"baseline", "outputs", "python"})
"""Names before a slash that are not providers."""

MOST = 5
"""Problems named in one message."""

OPTION_OF = {"effort": "thinking", "quality": "image_quality", "size": "image_size"}
"""Settings of a role -> the provider's field, where it has another name; `size` goes by the role."""

FOLLOWED_BY = {FREE: (), EDITS: ("editor",), WORDS: ("writer", "judge", "describer")}
"""Markers of fields -> the roles that follow them."""


class SectionError(ValueError):
    """Raised for an invalid section: field -> problem; "" for the section as a whole."""

    def __init__(self, name: str, problems: Mapping[str, str]) -> None:
        self.problems = {
            ".".join(filter(None, (name, field))): message for field, message in problems.items()
        }
        super().__init__("; ".join(_line(field, message) for field, message in self.problems.items()))


def _read_providers(tables: Any, info: ValidationInfo) -> dict[str, ProviderSettings]:
    """Read each section into the class of its provider."""
    if not isinstance(tables, Mapping):
        raise ValueError("input should be a table of sections, one for each provider")
    return {
        name: table if isinstance(table, ProviderSettings) else _section(name, table, info.mode == "json")
        for name, table in tables.items()
    }


def _section(name: str, table: Any, strictly: bool) -> ProviderSettings:
    kind = table.get("kind") if isinstance(table, Mapping) else None
    if kind and kind not in provider_names():
        raise SectionError(name, {"kind": f"{kind!r}; {suggest(str(kind), provider_names())}"})
    return validated(settings_class(kind or name), name, table, strictly)


Providers = Annotated[Mapping[str, SerializeAsAny[ProviderSettings]], PlainValidator(_read_providers)]
"""The sections `[providers.NAME]`."""

RoleTables = Mapping[Role, Mapping[str, object]]
"""The sections `[settings.ROLE]`, as they are written: the provider of the role's model reads them."""


class ConsentGiven(Section):
    """The section `[consent]`: the owners' permission to send their images to hosted models.

    `by` names the signatory, `agreement` the document.
    """

    by: Annotated[str, Field(min_length=3)]
    agreement: Annotated[str, Field(min_length=3)]


class Limits(Section):
    """The section `[limits]`: limits of the whole run; a resumed run may change them.

    `concurrency` is the maximum number of calls in flight to each model; if it is not set, open models have as many as
    keep every device busy.

    Reaching `budget_usd`, `max_calls` or `max_hours` stops the run with exit code 3. A call without an answer after
    `deadline_s` seconds, or after its provider's `timeout_s`, is ended and tried again. The run waits up to
    `outage_hours` for a model that does not answer. `wave` is the number of tasks processed at once if calls are sent
    in batch jobs.
    """

    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 8
    budget_usd: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    max_calls: Annotated[int, Field(ge=1)] | None = None
    max_hours: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    wave: Annotated[int, Field(ge=1, le=20_000)] = 1_000
    deadline_s: Annotated[float, Field(gt=0.0, le=86_400.0)] = 600.0
    outage_hours: Annotated[float, Field(gt=0.0, le=168.0)] = 12.0


class Settings(Section):
    """The settings file of a command without a recipe: `[limits]`, `[providers.NAME]`, `[settings.ROLE]`,
    `[consent]`, `[engine]`.
    """

    limits: Limits = Limits()
    providers: Providers = Field(default_factory=dict)
    consent: ConsentGiven | None = None
    settings: RoleTables = Field(default_factory=dict)
    engine: EngineSection = HERE

    @model_validator(mode="before")
    @classmethod
    def _of_recipe(cls, table: dict[str, object]) -> dict[str, object]:
        """Take a recipe's tables that a settings file may have, too."""
        if not isinstance(data := table.get("data"), dict):
            return table
        consent = {"consent": data["consent"]} if "consent" in data else {}
        return {name: part for name, part in table.items() if name in cls.model_fields} | consent


def resolve_provider_paths(
    path: Path, providers: Mapping[str, ProviderSettings]
) -> dict[str, ProviderSettings]:
    """Resolve paths in a file's provider sections relative to the file. Raise InputError for a missing file."""
    placed = {}
    for name, section in providers.items():
        try:
            placed[name] = section.relative_to(path.resolve().parent)
        except ValueError as error:
            raise InputError(f"{path}: providers.{name}.{error}") from error
    return placed


def engine_named(section: EngineSection, kind: str) -> EngineSection:
    """Return the engine section with the kind given by `--engine`; unchanged for "". Raise InputError if unknown."""
    if kind not in ("", "local", "ray"):
        raise InputError(f"--engine {kind}: no such engine; {suggest(kind, ('local', 'ray'))}")
    return section.model_copy(update={"kind": kind}) if kind else section


def validated(own: type[M], name: str, table: object, strictly: bool) -> M:
    """Validate a section and return it as an instance of its class. Raise SectionError with its invalid fields.

    Args:
        own: the class.
        name: name of the section; "" if the caller adds it to messages.
        table: the section as read from the file.
        strictly: True to allow no conversion of types: "3" is not a number.
    """
    try:
        # As JSON, whose strict reading takes text for a path and a list for a tuple, but never "3" for 3.
        return (
            own.model_validate_json(json.dumps(table, default=str), strict=True)
            if strictly
            else own.model_validate(table)
        )
    except ValidationError as error:
        raise SectionError(name, problems_of(error, own)) from error


def in_role(
    settings: ProviderSettings, provider: str, role: str, table: Mapping[str, object]
) -> ProviderSettings:
    """Override a provider's settings by those of a role.

    Args:
        settings: settings of the provider's section.
        provider: name of the provider.
        role: the role.
        table: the role's section as read from the file.

    Raises:
        InputError: the provider does not have a setting, or the setting may not be set for this role.
    """
    known = type(settings).model_fields
    origin: dict[str, str] = {}
    values: dict[str, object] = {}
    for name, value in table.items():
        option = OPTION_OF.get(name, name)
        if option not in known:
            names = [field for field, info in known.items() if FREE not in info.metadata]
            names += [message for message, field in OPTION_OF.items() if field in known]
            hint = suggest(name, names, otherwise=f"{provider} takes {', '.join(sorted(names)) or 'none'}")
            raise InputError(f"unknown key 'settings.{role}.{name}'; {hint}")
        for marker, roles in FOLLOWED_BY.items():
            if marker in known[option].metadata and role not in roles:
                whose = (
                    f"the provider: [providers.{provider}]"
                    if marker is FREE
                    else f"{marker}, and of no {role}"
                )
                raise InputError(f"settings.{role}.{name}: is a setting of {whose}")
        values[option] = str(value) if option == "image_size" else value
        origin[option] = f"settings.{role}.{name}"
    try:
        read = validated(type(settings), "", values, strictly=True)
    except SectionError as error:
        raise InputError(
            "; ".join(f"{origin.get(at, at)}: {message}" for at, message in error.problems.items())
        ) from error
    stated = {option: getattr(read, option) for option in values}
    return settings.but(**stated).within(origin=origin)


def read_toml(path: Path, model: type[M], what: str) -> M:
    """Read a TOML file and validate it.

    Args:
        path: the file.
        model: class of the result.
        what: kind of file, e.g. "recipe", for messages.

    Raises:
        InputError: the file is invalid; the message names file and fields, and the nearest known key.
    """
    if not path.exists():
        raise InputError(f"{path}: no such {what}{like_path(path)}")
    if path.is_dir():
        raise InputError(f"{path}: a folder, not a {what}")
    try:
        return validated(model, "", read_toml_table(path), strictly=True)
    except SectionError as error:
        lines = [_line(field, message) for field, message in error.problems.items()]
        rest = f" (and {len(lines) - MOST} more)" if len(lines) > MOST else ""
        raise InputError(f"{path}: {'; '.join(lines[:MOST])}{rest}") from error


def check_provider_names(
    providers: Mapping[str, ProviderSettings], models: Iterable[str], path: Path
) -> None:
    """Check that all sections name known providers, as a misspelt one would be ignored. Raise InputError otherwise."""
    ours = provider_names()
    known = {*ours, *(name.partition("/")[0] for name in models)}
    for name, section in providers.items():
        if section.kind and name in ours and name != section.kind:
            raise InputError(
                f"{path}: providers.{name}.kind: {name} is a provider of its own; give the endpoint another name"
            )
        if section.kind and ("/" in name or name in RESERVED):
            raise InputError(f"{path}: providers.{name}: give the endpoint another name, without a slash")
        if not section.kind and name not in known:
            raise InputError(f"{path}: providers.{name}: no such provider; {suggest(name, sorted(known))}")


def problems_of(error: ValidationError, model: type[BaseModel]) -> dict[str, str]:
    """Extract the first problem of each field from a validation error, by dotted field name."""
    problems: dict[str, str] = {}
    for problem in error.errors():
        where = [str(part) for part in problem["loc"] if not str(part).startswith("(")]
        cause = problem.get("ctx", {}).get("error")
        if isinstance(cause, SectionError):
            for field, message in cause.problems.items():
                problems.setdefault(".".join((*where, field)), message)
        else:
            problems.setdefault(".".join(where), _message(problem, where, model))
    return problems


def _message(problem: Any, where: list[str], model: type[BaseModel]) -> str:
    if problem["type"] == "extra_forbidden":
        return f"unknown key; {suggest(where[-1], _section_at(where[:-1], model).model_fields)}"
    if problem["type"] == "literal_error" and isinstance(problem["input"], str):
        choices = re.findall(r"'([^']*)'", problem["ctx"]["expected"])
        return f"{problem['input']!r}; {suggest(problem['input'], filter(None, choices))}"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{message[0].lower()}{message[1:]}"


def _line(field: str, message: str) -> str:
    """Return a problem as one line: an unknown key comes first, as in "unknown key 'limits.budget'; did you mean"."""
    if message.startswith("unknown key;"):
        return message.replace("unknown key;", f"unknown key {field!r};", 1)
    return f"{field}: {message}" if field else message


def _section_at(where: list[str], model: type[BaseModel]) -> type[BaseModel]:
    """Return the section at a path of keys; names of tables in it are free."""
    section = model
    for part in where:
        if part in section.model_fields:
            for annotation in _classes(section.model_fields[part].annotation):
                section = annotation
    return section


def _classes(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in get_args(annotation) for found in _classes(argument)]
