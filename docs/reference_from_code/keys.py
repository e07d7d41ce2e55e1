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

from plantain.models.registry import provider_names, settings_class
from plantain.pipeline.recipe import Recipe
from plantain.records import Price
from plantain.roles.options import PriceSection, ProviderOptions, ProviderSettings
from plantain.runs.settings_file import Settings
from reference_from_code.markdown import cell, code, table
from reference_from_code.meanings import meanings

KEYED = {"prices": '"MODEL"', "workers": "NAME"}
"""Sections that appear once for each name."""

WORDS: dict[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    object: "value",
}
BY_PROVIDER = frozenset({"providers", "settings"})
"""Tables whose keys depend on the provider."""


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
        if name in BY_PROVIDER and not section:
            continue
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
    text = meanings(model).get(name) or meanings(Price if model is PriceSection else model).get(name, "")
    text = re.sub(r"\bNone (for|where)\b", r"unset \1", text)
    return text[:1].upper() + text[1:]


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
    text = type_name(field.annotation)
    return f"{text}{_bounds(field.metadata)}"


def type_name(annotation: Any) -> str:
    """Return a type in the words of a file's author."""
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
    text = [words[type(one)].format(f"{next(iter(vars_of(one))):g}") for one in flat if type(one) in words]
    text += [f"at least {one.min_length}" for one in flat if isinstance(one, MinLen)]
    text += [f"at most {one.max_length}" for one in flat if isinstance(one, MaxLen)]
    return f", {', '.join(text)}" if text else ""


def vars_of(bound: Any) -> tuple[float, ...]:
    """The number of a bound."""
    return tuple(getattr(bound, name) for name in ("ge", "gt", "le", "lt") if hasattr(bound, name))


def _default(model: type[BaseModel], field: FieldInfo) -> str:
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
    for key in (one for own in _provider_sections() for one in own):
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
    yield ROLES


def _provider_sections() -> Iterator[Iterator[Key]]:
    """The keys of every provider, then those that are common to several, then each provider's own."""
    yield keys(ProviderSettings, "providers.NAME")
    yield _beyond(ProviderOptions, ProviderSettings, "providers.NAME of a hosted provider")
    for name in provider_names():
        own = settings_class(name)
        base = ProviderOptions if issubclass(own, ProviderOptions) else ProviderSettings
        yield _beyond(own, base, f"providers.{name}")


def _beyond(own: type[BaseModel], base: type[BaseModel], section: str) -> Iterator[Key]:
    """Return keys that a class adds to its base or changes in type."""
    known = {(key.name, key.type) for key in keys(base, section)}
    return (key for key in keys(own, section) if (key.name, key.type) not in known)


ROLES = """## `[settings.ROLE]`

ROLE is writer, editor, judge or describer. Every frozen key of the provider of the role's model is a key here, too, and
replaces the provider's. `thinking` is called `effort` here, `image_quality` is called `quality`, and `image_size` is
called `size`.
"""


def recipe_page() -> str:
    """The page of the recipe."""
    return "\n".join(
        [
            "# Recipe keys\n",
            "A recipe is a TOML file. `plantain plan RECIPE` checks it and calls nothing. An unknown key is "
            "an error that names the "
            "nearest known one. Relative paths count from the recipe's own folder. "
            "",
            "Frozen when a run starts: `seed`, `[models]`, `[loop]`, the rubric, and what changes a "
            "model's answers. The rest "
            "may change when the run is resumed.\n",
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
            "TOML file of the sections that a recipe has, too; consent is in `[consent]`.\n",
            *_sections(Settings),
        ]
    )
