"""How many calls are in flight: the stated number, else enough to keep the devices busy."""

from __future__ import annotations

import asyncio

import pytest

from plantain.calls import Budget
from plantain.calls.admission import ModelGate
from plantain.calls.limits import FIRST
from plantain.models.diffusers.provider import Settings
from plantain.runs.settings_file import Limits
from plantain.runs.terms import Terms, calls_at_once, model_limits, tasks_at_once


@pytest.mark.parametrize(
    ("device", "limits", "at_once"),
    [
        ("cuda:0", {}, 8),
        ("cuda:0,cuda:1,cuda:2,cuda:3", {}, 12),
        ("cuda:0,cuda:1,cuda:2,cuda:3,cuda:4,cuda:5,cuda:6,cuda:7", {"concurrency": 3}, 3),
    ],
)
def test_open_editors_have_as_many_calls_in_flight_as_their_devices_take(
    device: str, limits: dict[str, int], at_once: int
) -> None:
    terms = Terms(
        models=("offline/templates", "diffusers/flux2-klein-4b"),
        limits=Limits(**limits),  # type: ignore[arg-type]
        providers={"diffusers": Settings(device=device)},
    )
    assert calls_at_once(terms, "diffusers/flux2-klein-4b") == at_once
    assert tasks_at_once(terms) == max(at_once, terms.limits.concurrency)
    assert calls_at_once(terms, "offline/templates") == terms.limits.concurrency

    async def first_calls(model: str) -> int:
        return ModelGate(model, model_limits(terms, model), Budget(None), lambda one: None).window.size

    first = {model: asyncio.run(first_calls(model)) for model in terms.models}
    assert first["diffusers/flux2-klein-4b"] == at_once, "devices that get no call are not started"
    assert first["offline/templates"] == min(FIRST, terms.limits.concurrency)
