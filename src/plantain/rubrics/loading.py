"""Rubrics from TOML: our own, those of other packages, and users' files, checked field by field."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from plantain.files.installed import entry_named, load_entry
from plantain.files.opening import read_toml_table
from plantain.records import Asked, InputError, Rubric, RubricCriterion
from plantain.records.messages import suggest
from plantain.rubrics.policies import POLICIES

GROUP = "plantain.rubrics"
"""Entry point group: name of the rubric -> a `plantain.records.Rubric`, or the path of its TOML file."""

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_RESERVED = frozenset({"criteria", "opinion", "qualified", "reason", "differences"})


@cache
def _adapter() -> TypeAdapter[Rubric]:
    return TypeAdapter(Rubric)


def read_rubric(path: Path) -> Rubric:
    """Return the rubric of a TOML file.

    Raises:
        InputError: names file, field and allowed values.
    """
    document = read_toml_table(path)
    try:
        return rubric_of(json.dumps(document, default=str))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def rubric_of(text: str) -> Rubric:
    """Return the rubric that `as_text` wrote. Raises ValueError in one line that names the field."""
    try:
        rubric = _adapter().validate_json(text, strict=True)
    except ValidationError as error:
        problems = sorted(
            error.errors(), key=lambda problem: problem["type"] != "unexpected_keyword_argument"
        )
        raise ValueError(_problem(problems[0])) from None
    _check(rubric)
    return rubric


def rubric_named(name: str) -> Rubric:
    """Return a rubric by its name, our own or another package's, or by the path of its file.

    Raises:
        InputError: the rubric is unknown (the message suggests the nearest) or invalid.
    """
    if name.endswith(".toml"):
        return read_rubric(Path(name))
    entry = entry_named(GROUP, name, "rubric", ", or a file.toml")
    loaded = load_entry(entry, "rubric")
    if isinstance(loaded, Path):
        return read_rubric(loaded)
    if not isinstance(loaded, Rubric):
        raise InputError(f"rubric {name!r}: {entry.value} is neither a Rubric nor the path of one")
    return loaded


def _problem(problem: ErrorDetails) -> str:
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] != "unexpected_keyword_argument":
        return ": ".join(filter(None, (where, problem["msg"].removeprefix("Value error, "))))
    section = {"criteria": RubricCriterion, "asked": Asked}.get(str(problem["loc"][0]), Rubric)
    known = [field.name for field in fields(section)]
    return f"unknown key {where!r}; {suggest(str(problem['loc'][-1]), known)}"


def as_text(rubric: Rubric) -> str:
    """Return a rubric as JSON without defaults, so that a new field with a default changes no hash."""
    return json.dumps(_stated(rubric), sort_keys=True, ensure_ascii=False)


def digest_of(rubric: Rubric) -> str:
    """Return the SHA-256 of its content, the identity of a user's own rubric."""
    return hashlib.sha256(as_text(rubric).encode()).hexdigest()


def _stated(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        stated = {}
        for field in fields(value):
            default = field.default_factory() if field.default_factory is not MISSING else field.default
            if getattr(value, field.name) != default:
                stated[field.name] = _stated(getattr(value, field.name))
        return stated
    if isinstance(value, (list, tuple)):
        return [_stated(inner) for inner in value]
    return dict(value) if isinstance(value, dict) else value


def _check(rubric: Rubric) -> None:
    """Raise ValueError for what types cannot exclude."""
    names = [criterion.name for criterion in rubric.criteria]
    for name in (*names, *rubric.facts, *rubric.codes):
        if not _NAME.match(name) or name in _RESERVED:
            raise ValueError(
                f"{name!r} cannot be a name: small letters, digits and _, and none of {sorted(_RESERVED)}"
            )
    if len({*names, *rubric.facts}) < len(names) + len(rubric.facts):
        raise ValueError("criteria and facts: each needs a name of its own")
    for criterion in rubric.criteria:
        if criterion.weight < 0:
            raise ValueError(f"criteria.{criterion.name}.weight: {criterion.weight:g} is below 0")
        least, most = criterion.scale or (0, 1)
        if least >= most:
            raise ValueError(f"criteria.{criterion.name}.scale: [{least}, {most}] does not go up")
        if criterion.key and (criterion.scale or not _NAME.match(criterion.key)):
            raise ValueError(
                f"criteria.{criterion.name}.key: a small-letter name, of a criterion without a scale"
            )
        if criterion.pass_at is not None and not least <= criterion.pass_at <= most:
            raise ValueError(f"criteria.{criterion.name}.pass_at: {criterion.pass_at:g} is not on its scale")
    if rubric.policy not in POLICIES:
        raise ValueError(f"policy: {rubric.policy!r}; choose one of {', '.join(POLICIES)}")
    if rubric.policy == "weighted" and not rubric.weighted:
        raise ValueError("policy: 'weighted' needs weights, and all of them are 0")
    if not 0 <= rubric.threshold <= 1:
        raise ValueError(f"threshold: {rubric.threshold:g}; from 0 to 1")
    if not 1 <= len(rubric.asked.templates) <= 2:
        raise ValueError("asked.templates: name one template, or one for additions and one for removals")
