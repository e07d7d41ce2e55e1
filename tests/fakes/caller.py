"""Calls of hosted models' roles by the real SDKs, as a run makes them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from fakes.requests import edit_request, judge_request, write_request
from fakes.server import KEY, FakeProvider
from plantain.models.registry import close_models, settings_class
from plantain.records import InputError
from plantain.roles import Editor, EditRequest, Judge, Reply, Writer, WriteRequest
from plantain.runs.settings_file import SectionError, validated
from plantain.runs.setup import load_model

KEY_NAMES = ("GEMINI_API_KEY", "OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY")


def set_keys(monkeypatch: pytest.MonkeyPatch, key: str = KEY) -> None:
    """Have every provider's key in the environment, and no other name of Gemini's."""
    for name in KEY_NAMES:
        monkeypatch.setenv(name, key)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


def resolve_writer(name: str, options: Any = None) -> Writer:
    return cast(Writer, load_model(name, "writer", options))


def resolve_editor(name: str, options: Any = None) -> Editor:
    return cast(Editor, load_model(name, "editor", options))


def resolve_judge(name: str, options: Any = None) -> Judge:
    return cast(Judge, load_model(name, "judge", options))


RESOLVE = {"write": resolve_writer, "edit": resolve_editor, "judge": resolve_judge}
REQUESTS = {"write": write_request, "edit": edit_request, "judge": judge_request}


CONTEXT = ("clearance", "jobs", "key_later", "edition")
"""Fields that a run adds to a provider's settings."""


def options_of(name: str, **fields: Any) -> Any:
    """Return the settings of a provider, or of a model's, as a recipe's section with these fields is read."""
    provider = name.partition("/")[0]
    stated = {field: value for field, value in fields.items() if field not in CONTEXT}
    try:
        made = validated(
            settings_class(provider), f"providers.{provider}", stated, strictly=False
        ).relative_to(Path())
    except (SectionError, ValueError) as error:
        raise InputError(str(error)) from error
    return made.within(**{field: fields[field] for field in CONTEXT if field in fields})


def options_at(server: FakeProvider, name: str, **fields: Any) -> Any:
    """Return the settings of a provider that is this server."""
    path = "" if name.startswith("gemini") else "/v1"
    return options_of(name, base_url=server.url + path, **fields)


async def asked(role: Any, request: Any) -> Reply[Any]:
    if isinstance(request, WriteRequest):
        return await role.write(request)  # type: ignore[no-any-return]
    return await (role.edit if isinstance(request, EditRequest) else role.judge)(request)  # type: ignore[no-any-return]


def ask(role: Any, request: Any) -> Reply[Any]:
    """Call a role once, in an event loop of its own, and close it."""

    async def once() -> Reply[Any]:
        try:
            return await asked(role, request)
        finally:
            await close_models(role)

    return asyncio.run(once())


class Caller:
    """Calls roles by the real SDKs, each provider's role made once."""

    def __init__(self, server: FakeProvider, runner: asyncio.Runner) -> None:
        self.server = server
        self.runner = runner
        self.roles: dict[tuple[str, str, float], Any] = {}

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *ended: object) -> None:
        self.runner.run(close_models(*self.roles.values()))

    def __call__(self, provider: str, step: str, *, timeout_s: float = 20.0) -> Reply[Any]:
        at = (provider, step, timeout_s)
        if at not in self.roles:
            options = options_at(self.server, provider, timeout_s=timeout_s)
            self.roles[at] = RESOLVE[step](f"{provider}/m", options)
        return self.runner.run(asked(self.roles[at], REQUESTS[step]()))
