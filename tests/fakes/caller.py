"""Calls of hosted models' roles by the real SDKs, as a run makes them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from fakes.requests import edit_request, judge_request, write_request
from fakes.server import FakeProvider
from plantain.models.registry import settings_class
from plantain.records import InputError
from plantain.roles import Editor, Judge, Reply, Writer
from plantain.runs.settings_file import SectionError, validated
from plantain.runs.setup import load_model

KEY_NAMES = ("GEMINI_API_KEY", "OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY")


def resolve_writer(name: str, options: Any = None) -> Writer:
    return cast(Writer, load_model(name, "writer", options))


def resolve_editor(name: str, options: Any = None) -> Editor:
    return cast(Editor, load_model(name, "editor", options))


def resolve_judge(name: str, options: Any = None) -> Judge:
    return cast(Judge, load_model(name, "judge", options))


RESOLVE = {"write": resolve_writer, "edit": resolve_editor, "judge": resolve_judge}


CONTEXT = ("clearance", "jobs", "key_later", "edition")
"""What a run adds to a provider's settings."""


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


class Caller:
    """Calls roles by the real SDKs, each provider's role made once."""

    def __init__(self, server: FakeProvider, runner: asyncio.Runner) -> None:
        self.server = server
        self.runner = runner
        self.roles: dict[tuple[str, str, float], Any] = {}

    def __call__(self, provider: str, step: str, *, timeout_s: float = 20.0) -> Reply[Any]:
        at = (provider, step, timeout_s)
        if at not in self.roles:
            url = self.server.url if provider == "gemini" else f"{self.server.url}/v1"
            self.roles[at] = RESOLVE[step](
                f"{provider}/m", options_of(provider, base_url=url, timeout_s=timeout_s)
            )
        role = self.roles[at]
        if step == "write":
            return self.runner.run(role.write(write_request()))
        return self.runner.run(role.edit(edit_request()) if step == "edit" else role.judge(judge_request()))
