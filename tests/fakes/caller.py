"""Calls of hosted models' roles by the real SDKs, as a run makes them."""

from __future__ import annotations

import asyncio
from typing import Any

from fakes.requests import edit_request, judge_request, write_request
from fakes.server import FakeProvider
from plantain.models.resolver import resolve_editor, resolve_judge, resolve_writer
from plantain.roles import Reply
from plantain.roles.options import ProviderOptions

KEY_NAMES = ("GEMINI_API_KEY", "OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY")
RESOLVE = {"write": resolve_writer, "edit": resolve_editor, "judge": resolve_judge}


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
                f"{provider}/m", ProviderOptions(base_url=url, timeout_s=timeout_s)
            )
        role = self.roles[at]
        if step == "write":
            return self.runner.run(role.write(write_request()))
        return self.runner.run(role.edit(edit_request()) if step == "edit" else role.judge(judge_request()))
