"""Reading a TOML file that a person wrote into a validated model, with errors that name the file and the field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from plantain.files.toml import read_toml_table
from plantain.models.registry import provider_names
from plantain.records import InputError
from plantain.records.suggestions import suggest

M = TypeVar("M", bound=BaseModel)
RESERVED = frozenset({"baseline", "outputs", "python"})
"""Names before a slash that mean something else."""

MOST = 5
"""Problems named in one message."""


def read_toml(path: Path, model: type[M], what: str) -> M:
    """Reads and validates a file.

    Args:
        path: the file.
        model: its shape.
        what: what it is, e.g. "recipe", for the message when it is absent.

    Raises:
        InputError: names the file and the fields, and for an unknown key the nearest known one.
    """
    if not path.exists():
        raise InputError(f"{path}: no such {what}")
    if path.is_dir():
        raise InputError(f"{path}: a folder, not a {what}")
    raw = read_toml_table(path)
    try:
        # As JSON, whose strict reading takes text for a path and a list for a tuple, but never "3" for 3.
        return model.model_validate_json(json.dumps(raw, default=str), strict=True)
    except ValidationError as error:
        raise InputError(f"{path}: {_problems(error, model)}") from error


class NamedSection(Protocol):
    """A section that may say which known provider stands behind its name."""

    @property
    def kind(self) -> str: ...


def check_provider_names(providers: Mapping[str, NamedSection], models: Iterable[str], path: Path) -> None:
    """Refuses a section of no provider: a misspelt one would leave its limits unsaid. Raises InputError."""
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


def _problems(error: ValidationError, model: type[BaseModel]) -> str:
    """The first problems in one line, the same field only once."""
    problems: dict[str, str] = {}
    for problem in error.errors():
        where = [str(part) for part in problem["loc"] if not str(part).startswith("(")]
        if problem["type"] == "extra_forbidden":
            problems.setdefault(".".join(where), _unknown_key(where, model))
        else:
            text = problem["msg"]
            problems.setdefault(".".join(where), f"{'.'.join(where)}: {text[0].lower()}{text[1:]}")
    shown = list(problems.values())[:MOST]
    rest = len(problems) - len(shown)
    return "; ".join(shown) + (f" (and {rest} more)" if rest else "")


def _unknown_key(where: list[str], model: type[BaseModel]) -> str:
    section = _section_at(where[:-1], model)
    return f"unknown key {'.'.join(where)!r}; {suggest(where[-1], section.model_fields)}"


def _section_at(where: list[str], model: type[BaseModel]) -> type[BaseModel]:
    """The section that a path of keys leads to; the names in `providers` and `prices` are the person's own."""
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
