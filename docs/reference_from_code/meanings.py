"""The meaning of a field: the string below it, its line under `Attributes:`, or docstring sentences that name it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from functools import cache

from pydantic import BaseModel

_ENTRY = re.compile(r"^ {4}([\w, ]+): ", re.M)
_SENTENCE = re.compile(r"(?<=[.;])\s+(?=[A-Z`])")


@cache
def meanings(owner: type) -> dict[str, str]:
    """Of every field of a class that is described in its own source; its bases are asked, too."""
    found: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if base in (object, BaseModel) or not base.__module__.startswith("plantain"):
            continue
        names = _names(base)
        doc = inspect.cleandoc(base.__doc__ or "")
        found.update(_by_sentence(doc.partition("Attributes:")[0].partition("Example:")[0], names))
        found.update(_by_entry(doc.partition("Attributes:")[2].partition("Example:")[0]))
        found.update(_below_fields(base))
    return found


def _names(owner: type) -> tuple[str, ...]:
    if issubclass(owner, BaseModel):
        return tuple(owner.model_fields)
    return tuple(field.name for field in dataclasses.fields(owner)) if dataclasses.is_dataclass(owner) else ()


def _by_sentence(text: str, names: tuple[str, ...]) -> dict[str, str]:
    """A field has the sentences that name it in code style."""
    sentences = _SENTENCE.split(" ".join(text.split()))
    found = {name: " ".join(one for one in sentences if f"`{name}`" in one) for name in names}
    return {name: text.rstrip(";") + "." * text.endswith(";") for name, text in found.items() if text}


def _by_entry(text: str) -> dict[str, str]:
    """Of the lines `name, name: meaning` under `Attributes:`."""
    found: dict[str, str] = {}
    parts = _ENTRY.split("\n" + textwrap.dedent(text).replace("\n", "\n    "))
    for names, text in zip(parts[1::2], parts[2::2], strict=True):
        for name in names.split(","):
            found[name.strip()] = " ".join(text.split())
    return found


def _below_fields(owner: type) -> dict[str, str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for one, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(one, ast.AnnAssign)
            and isinstance(one.target, ast.Name)
            and isinstance(after, ast.Expr)
        ):
            value = after.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[one.target.id] = " ".join(value.value.split())
    return found
