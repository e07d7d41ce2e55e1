"""Every key of a recipe and of a settings file, from the models that read them."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from plantain.pipeline.recipe import Recipe
from plantain.records import Price
from plantain.roles.batch_rules import BatchRules
from plantain.roles.options import LoraChoice, ProviderOptions, WorkerCommand
from plantain.runs.settings.providers import (
    BatchSection,
    LoraSection,
    PriceSection,
    ProviderSection,
    WorkerSection,
)
from plantain.runs.settings.roles import OPTION_OF, RoleSection
from plantain.runs.settings.terms import Settings
from reference_from_code.markdown import cell, code, table
from reference_from_code.meanings import meanings

KEYED = {"providers": "NAME", "settings": "ROLE", "prices": '"MODEL"', "workers": "NAME"}
"""Sections that stand once for each name."""

WORDS: dict[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    object: "value",
}
TOLD_BY: dict[type, type] = {
    ProviderSection: ProviderOptions,
    RoleSection: ProviderOptions,
    BatchSection: BatchRules,
    WorkerSection: WorkerCommand,
    LoraSection: LoraChoice,
    PriceSection: Price,
}
"""The records that sections become, where these describe the fields."""

UNSTATED = {RoleSection: "as the provider's section"}
"""Whose fields, left out, are no default of their own."""


class Key(NamedTuple):
    """One key: section "" for the top of the file."""

    section: str
    name: str
    type: str
    default: str
    meaning: str


def keys(model: type[BaseModel], section: str = "") -> Iterator[Key]:
    """Every key that a file of this model may hold, in the order of its fields, sections after their keys."""
    inner: list[tuple[str, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        below = _section_of(field.annotation)
        if below is not None:
            path = ".".join(
                filter(None, (section, name, KEYED.get(name) if _is_mapping(field.annotation) else None))
            )
            inner.append((path, below))
        else:
            yield Key(section, name, _type(field), _default(model, field), _meaning(model, name))
    for path, below in inner:
        yield from keys(below, path)


def _meaning(model: type[BaseModel], name: str) -> str:
    said = meanings(model).get(name) or meanings(TOLD_BY.get(model, model)).get(OPTION_OF.get(name, name), "")
    said = re.sub(r"\bNone (for|where)\b", r"unset \1", said)
    return said[:1].upper() + said[1:]


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """The model of a section, behind mappings, unions and tuples; None for a plain key."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in get_args(annotation):
        found = _section_of(inner)
        if found is not None:
            return found
    return None


def _is_mapping(annotation: Any) -> bool:
    return get_origin(annotation) in (dict, Mapping, typing.Mapping)


def _type(field: FieldInfo) -> str:
    said = type_name(field.annotation)
    return f"{said}{_bounds(field.metadata)}"


def type_name(annotation: Any) -> str:
    """A type as a person who writes the file would say it."""
    if annotation is type(None):
        return ""
    if isinstance(annotation, type) and annotation in WORDS:
        return WORDS[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_name(inner[0]) + _bounds(inner[1:])
    if origin in (Union, types.UnionType):
        return " or ".join(filter(None, map(type_name, inner)))
    if origin is Literal:
        return " or ".join(f'`"{getattr(one, "value", one)}"`' for one in inner)
    if origin in (tuple, list):
        return f"list of {type_name(inner[0])}"
    if _is_mapping(annotation):
        return f"table of {type_name(inner[1])}"
    if isinstance(annotation, type) and hasattr(annotation, "__members__"):
        return " or ".join(f'`"{one.value}"`' for one in annotation)
    return getattr(annotation, "__name__", str(annotation))


def _bounds(metadata: typing.Iterable[Any]) -> str:
    flat = [part for one in metadata for part in (getattr(one, "metadata", None) or [one])]
    words = {Ge: "{} or more", Gt: "above {}", Le: "{} at most", Lt: "below {}"}
    said = [words[type(one)].format(f"{next(iter(vars_of(one))):g}") for one in flat if type(one) in words]
    said += [f"at least {one.min_length}" for one in flat if isinstance(one, MinLen)]
    said += [f"at most {one.max_length}" for one in flat if isinstance(one, MaxLen)]
    return f", {', '.join(said)}" if said else ""


def vars_of(bound: Any) -> tuple[float, ...]:
    """The number of a bound."""
    return tuple(getattr(bound, name) for name in ("ge", "gt", "le", "lt") if hasattr(bound, name))


def _default(model: type[BaseModel], field: FieldInfo) -> str:
    if model in UNSTATED:
        return UNSTATED[model]
    if field.is_required():
        return "required"
    value = field.default
    if value is PydanticUndefined or value is None or value in ((), ""):
        return ""
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, tuple):
        return code("[" + ", ".join(f'"{getattr(one, "value", one)}"' for one in value) + "]")
    return code(
        f'"{value}"'
        if isinstance(value, str)
        else f"{value:,}".replace(",", "_")
        if isinstance(value, int)
        else str(value)
    )


def _sections(model: type[BaseModel]) -> Iterator[str]:
    found: dict[str, list[Key]] = {}
    for key in keys(model):
        found.setdefault(key.section, []).append(key)
    for section, rows in found.items():
        yield f"## {code(f'[{section}]') if section else 'At the top'}\n"
        yield table(
            ["key", "type", "default", "meaning"],
            [
                [code(key.name), re.sub(r"(?<!\\)\|", r"\\|", key.type), key.default, cell(key.meaning)]
                for key in rows
            ],
        )


def recipe_page() -> str:
    """The page of the recipe."""
    return "\n".join(
        [
            "# Recipe keys\n",
            "A recipe is a TOML file. `plantain plan RECIPE` checks it and calls nothing. An unknown key is "
            "an error that names the "
            "nearest known one. Relative paths count from the recipe's own folder. "
            "",
            "What is frozen when a run begins: `seed`, `[models]`, `[loop]`, the rubric, and what changes a "
            "model's answers. The rest "
            "may change when the run goes on.\n",
            *_sections(Recipe),
        ]
    )


def settings_page() -> str:
    """The page of the settings file."""
    return "\n".join(
        [
            "# Keys of a settings file\n",
            "Commands without a recipe (`bench generate`, `bench score`, `judge audit`, ...) take "
            "`--settings FILE`. It is a "
            "TOML file of the sections that a recipe has, too; consent stands in `[consent]`.\n",
            *_sections(Settings),
        ]
    )
