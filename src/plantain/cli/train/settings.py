"""`--set NAME=VALUE` of the training commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, get_origin

from pydantic import ValidationError

from plantain.records import InputError
from plantain.records.messages import suggest
from plantain.train.plans import Plan

P = TypeVar("P", bound=Plan)


def read_plan(form: type[P], settings: Sequence[str]) -> P:
    """Return the plan with these settings. Raise InputError naming the setting that is unknown or out of range."""
    values: dict[str, object] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting}: write NAME=VALUE")
        if name not in form.model_fields:
            raise InputError(f"--set {name}: no such setting; {suggest(name, form.model_fields)}")
        several = get_origin(form.model_fields[name].annotation) is tuple
        values[name] = [part for part in value.split(",") if part] if several else value
    try:
        return form.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"--set {first['loc'][0]}: {first['msg'].lower()}") from error


def settings_help(form: type[Plan]) -> str:
    """Return the settings with their defaults, for `--help`."""
    return "NAME=VALUE, may be repeated: " + ", ".join(
        f"{name}={_written(field.default)}" for name, field in form.model_fields.items()
    )


def _written(value: object) -> str:
    if value is None:
        return ""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
