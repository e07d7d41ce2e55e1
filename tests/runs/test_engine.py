"""`[engine]`: which settings it accepts, and that a lost worker has its own retry count."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from plantain.calls.policy import LOST, POLICY, CircuitBreaker, next_step
from plantain.engines.contract import EngineSection, Ran, WorkersSection
from plantain.pipeline.recipe import Recipe
from plantain.records import Outcome, OutcomeKind
from plantain.roles import Exchange, exchange, on_worker
from plantain.runs.settings_file import Settings, read_toml


def recipe(**engine: object) -> Recipe:
    return Recipe.model_validate({"name": "r", "data": {"catalogue": "c"}, "engine": engine})


def test_engine_is_not_frozen() -> None:
    assert recipe(kind="ray", workers=4).frozen_part() == recipe().frozen_part()


def test_workers_by_role() -> None:
    section = EngineSection.model_validate(
        {"kind": "ray", "workers": 3, "editor": {"gpus": 1, "workers": "auto", "resources": {"H200": 1}}}
    )
    assert section.of("editor").amounts == {"CPU": 1.0, "GPU": 1.0, "H200": 1.0}
    assert (
        section.of("editor").workers == "auto" and str(section.of("editor")) == "1 CPU and 1 GPU and 1 H200"
    )
    assert section.of("judge") == section.of("") == WorkersSection(workers=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [("worker = 3", "did you mean 'workers'"), ("editor = { cpus = 0 }", "takes nothing fits without end")],
)
def test_wrong_engine_settings_are_named(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f"[engine]\n{text}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_toml(file, Settings, "settings file")


def test_a_lost_worker_has_tries_of_its_own_and_opens_no_circuit_breaker() -> None:
    class Dying:
        async def run(self, role: str, function: object, arguments: object) -> Ran[Any]:
            return Ran(None, "a processor", lost="ActorDiedError")

    exchanged = Exchange()
    before = exchange.set(exchanged)
    outcome = asyncio.run(on_worker(Dying(), "editor", len, ()))
    exchange.reset(before)
    assert isinstance(outcome, Outcome) and exchanged.ran_on == "a processor"
    assert outcome == Outcome(
        OutcomeKind.TRANSPORT, "worker lost, with its answer if it had one: ActorDiedError"
    )
    broken = Outcome(OutcomeKind.TRANSPORT, "the connection failed")
    dice = random.Random(1)
    tries = POLICY[OutcomeKind.TRANSPORT].tries
    assert next_step(broken, tries, dice) is None
    assert next_step(outcome, tries, dice) is not None
    assert next_step(outcome, LOST.tries, dice) is None

    breaker = CircuitBreaker(900.0)
    for second in range(100):
        breaker.heard(outcome, float(second), float(second))
    assert not breaker.open
