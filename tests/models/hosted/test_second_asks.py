"""An answer that is requested again: which faults this repairs, its cost, and answers that are never bought again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fakes.caller import Caller
from fakes.faults import FAULTS
from fakes.server import Answer, FakeProvider, Request, Spoil
from plantain.calls.limits import cost_of
from plantain.journal.rows import from_json, to_json
from plantain.records import OutcomeKind, Price, Usage
from plantain.records.tasks import RECIPE

PROVIDERS = ("gemini", "openai", "openai-compatible")


PRICE = Price(input_per_m=2.0, output_per_m=12.0)
ONE_ASK = {"gemini": (1_200 * 2 + 190 * 12) / 1e6, "openai": (900 * 2 + 120 * 12) / 1e6}
"""Dollars of the servers' usual answer at that price, by hand (`fakes.gemini_format`, `fakes.openai_format`)."""


@pytest.mark.parametrize("tiers", [("default", "priority"), ("priority", "default")])
def test_each_ask_of_a_call_is_billed_by_the_tier_that_served_it(
    server: FakeProvider, fresh: Caller, tiers: tuple[str, str]
) -> None:
    """One of two asks was served by a tier without a known price: the cost of the call is unknown, not half of it."""

    def served_by(tier: str, spoil: Spoil | None) -> Spoil:
        def named(request: Request, good: Answer) -> Answer:
            answer = spoil(request, good) if spoil else good
            body = {**json.loads(answer.body), "service_tier": tier}
            return replace(answer, body=json.dumps(body).encode())

        return named

    server.spoil = None
    server.script = [served_by(tiers[0], FAULTS["cut words"]("openai")), served_by(tiers[1], None)]
    reply = fresh("openai", "judge")
    assert reply.outcome.ok
    kept = from_json(Usage, to_json(reply.usage))  # as the journal keeps it
    assert kept == reply.usage
    assert PRICE.cost(kept) is None
    assert replace(PRICE, source=RECIPE).cost(kept) == pytest.approx(2 * ONE_ASK["openai"])


def without_usage(spoil: Spoil) -> Spoil:
    def silent(request: Request, good: Answer) -> Answer:
        answer = spoil(request, good)
        body = json.loads(answer.body)
        return replace(answer, body=json.dumps({k: v for k, v in body.items() if "usage" not in k}).encode())

    return silent


@pytest.mark.parametrize("provider", ["gemini", "openai"])
@pytest.mark.parametrize(
    ("name", "silent", "asks"),
    [("dropped", False, None), ("503", False, 1.0), ("429 bare", False, 1.0), ("429 bare", True, None)],
)
def test_a_failed_second_ask_is_free_only_after_an_error_of_the_provider(
    server: FakeProvider, fresh: Caller, provider: str, name: str, silent: bool, asks: float | None
) -> None:
    """A lost answer may have been billed, so its call is held; an error is not. The first ask is billed either way."""
    cut, then = FAULTS["cut words"](provider), FAULTS[name](provider)
    assert cut is not None and then is not None
    server.spoil, server.script = None, [without_usage(cut) if silent else cut, then]
    reply = fresh(provider, "judge")
    assert not reply.outcome.ok
    cost = cost_of(PRICE, reply.outcome, reply.usage)
    assert cost == (None if asks is None else pytest.approx(asks * ONE_ASK[provider]))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("step", ["write", "judge"])
def test_an_answer_cut_at_its_limit_is_requested_again_with_a_higher_limit(
    server: FakeProvider, call: Caller, provider: str, step: str
) -> None:
    server.spoil = FAULTS["cut words"]("gemini" if provider == "gemini" else "openai")
    reply = call(provider, step)
    assert reply.outcome.kind is OutcomeKind.MALFORMED
    assert "cut at max_output_tokens" in reply.outcome.reason
    asked = server.calls[-2:]
    fields = [request.fields.get("generationConfig", request.fields) for request in asked]
    named = ("maxOutputTokens", "max_output_tokens", "max_tokens")
    limits = [next(sent[name] for name in named if name in sent) for sent in fields]
    assert limits == [8_192, 16_384]
    assert reply.usage.output_tokens is not None  # both are billed
