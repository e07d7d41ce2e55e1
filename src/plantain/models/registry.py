"""From a model's name, "provider/model", to the object that fills a role."""

from __future__ import annotations

import difflib
import importlib
from typing import Protocol, cast

from plantain.records import InputError
from plantain.roles import Editor, Judge, Writer

PROVIDERS = {"offline": "plantain.models.offline.provider"}
"""Provider -> module with `MODELS: dict[str, tuple[str, ...]]` (name -> roles) and `load(name, role)`."""


class Provider(Protocol):
    """What a provider's module offers."""

    MODELS: dict[str, tuple[str, ...]]

    def load(self, name: str, role: str) -> object: ...


def resolve_writer(name: str) -> Writer:
    return cast(Writer, _resolve(name, "writer"))


def resolve_editor(name: str) -> Editor:
    return cast(Editor, _resolve(name, "editor"))


def resolve_judge(name: str) -> Judge:
    return cast(Judge, _resolve(name, "judge"))


def _resolve(name: str, role: str) -> object:
    provider, _, model = name.partition("/")
    if provider not in PROVIDERS or not model:
        nearest = difflib.get_close_matches(provider, PROVIDERS, n=1)
        hint = f"did you mean {nearest[0]}/…?" if nearest else f"providers: {', '.join(PROVIDERS)}"
        raise InputError(f"models.{role}: {name!r} is not provider/model; {hint}")
    module = cast(Provider, importlib.import_module(PROVIDERS[provider]))
    return module.load(name, role)
