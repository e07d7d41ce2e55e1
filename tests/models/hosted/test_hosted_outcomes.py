"""Every fault x every step x every provider, by the real SDKs against a loopback server, ends in the right outcome."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from fakes.faults import FAULTS, STEPS, status
from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.requests import edit_request, judge_request, write_request
from fakes.server import KEY, Answer, FakeProvider, Request, Spoil
from plantain.calls.budget import cost_of
from plantain.journal.payload import to_json, usage_from_json
from plantain.models.hosted.pictures import UNCHANGED
from plantain.models.registry import close_models
from plantain.models.resolver import resolve_editor, resolve_judge, resolve_writer
from plantain.records import OutcomeKind, Price
from plantain.roles import Reply
from plantain.roles.options import ProviderOptions

PROVIDERS = ("gemini", "openai", "openai-compatible")
KEY_NAMES = ("GEMINI_API_KEY", "OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY")


class Expected(NamedTuple):
    """The outcome; how often the model is asked within the call; whether the run must halt; the wait asked for."""

    kind: OutcomeKind
    asks: int = 1
    fatal: bool = False
    wait: tuple[float, float] | None = None


K = OutcomeKind
HALT = Expected(K.TRANSPORT, fatal=True)
AGAIN = Expected(K.MALFORMED, asks=2)

EXPECTED: dict[str, Expected] = {
    "400": Expected(K.MALFORMED),
    "400 bad key": HALT,
    "400 setting": Expected(K.MALFORMED, fatal=True),
    "400 moderation": Expected(K.REFUSED),
    "401": HALT,
    "403": HALT,
    "404 retired": HALT,
    "408": Expected(K.TRANSPORT),
    "409": Expected(K.TRANSPORT),
    "413": Expected(K.MALFORMED),
    "429 seconds": Expected(K.RATE_LIMITED, wait=(7, 7)),
    "429 date": Expected(K.RATE_LIMITED, wait=(20, 30)),
    "429 ms": Expected(K.RATE_LIMITED, wait=(1.5, 1.5)),
    "429 retry info": Expected(K.RATE_LIMITED, wait=(17, 17)),
    "429 long": Expected(K.RATE_LIMITED, wait=(600, 600)),
    "429 bare": Expected(K.RATE_LIMITED),
    "429 no quota": Expected(K.RATE_LIMITED, fatal=True),
    "429 spent": Expected(K.RATE_LIMITED, fatal=True),
    "500": Expected(K.TRANSPORT),
    "502 html": Expected(K.TRANSPORT),
    "503": Expected(K.TRANSPORT, wait=(3, 3)),
    "504": Expected(K.TRANSPORT),
    "dropped": Expected(K.TRANSPORT),
    "hung": Expected(K.TRANSPORT),
    "dripping": Expected(K.TRANSPORT),
    "truncated body": Expected(K.TRANSPORT),
    "cut JSON": Expected(K.TRANSPORT),
    "html 200": Expected(K.TRANSPORT),
    "list 200": Expected(K.TRANSPORT),
    "error 200": Expected(K.TRANSPORT),
    "garbage 200": Expected(K.TRANSPORT),
    "garbage 500": Expected(K.TRANSPORT),
    "garbage 429": Expected(K.RATE_LIMITED),
    "null error": Expected(K.TRANSPORT),
    "bad gzip": Expected(K.TRANSPORT),
    "302": Expected(K.TRANSPORT),
    "201": Expected(K.TRANSPORT),
    "204": Expected(K.TRANSPORT),
    "418": Expected(K.MALFORMED),
    "529": Expected(K.TRANSPORT),
    "empty 200": Expected(K.TRANSPORT),
    "nothing in it": Expected(K.TRANSPORT),
    "blocked before": Expected(K.REFUSED),
    "blocked after": Expected(K.REFUSED),
    "IMAGE_SAFETY": Expected(K.REFUSED),
    "NO_IMAGE": Expected(K.NO_IMAGE),
    "text, no picture": Expected(K.NO_IMAGE),
    "no data": Expected(K.NO_IMAGE),
    "declined": Expected(K.REFUSED),
    "content filter": Expected(K.REFUSED),
    "wide picture": Expected(K.MALFORMED),
    "tiny picture": Expected(K.MALFORMED),
    "no picture file": Expected(K.MALFORMED),
    "bad base64": Expected(K.MALFORMED),
    "same picture": Expected(K.OK),
    "webp picture": Expected(K.OK),
    "large picture": Expected(K.OK),
    "fenced": Expected(K.OK),
    "prose around": Expected(K.OK),
    "true as text": Expected(K.OK),
    "cut words": AGAIN,
    "missing key": AGAIN,
    "missing flag": AGAIN,
    "wrong type": AGAIN,
    "number as flag": AGAIN,
    "only prose": AGAIN,
    "empty words": AGAIN,
    "two reports": AGAIN,
}

OPENAI: dict[str, Expected] = {
    "201": Expected(K.OK),  # its SDK takes any 2xx; a paid answer is not thrown away
}
"""Where the formats differ: Google's SDK refuses whatever is not 200."""

CASES = [
    pytest.param(provider, step, name, id=f"{provider}-{step}-{name}")
    for provider in PROVIDERS
    for name, fault in FAULTS.items()
    for step in STEPS.get(name, ("write", "edit", "judge"))
    if fault("gemini" if provider == "gemini" else "openai") is not None
    and not (provider == "openai-compatible" and step == "edit")
]


@pytest.fixture(scope="module")
def server() -> Iterator[FakeProvider]:
    with FakeProvider([gemini_route, openai_route]) as provider:
        yield provider


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """One event loop for all, so that connections live as long as they do in a run."""
    with asyncio.Runner() as runner:
        yield runner


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


RESOLVE = {"write": resolve_writer, "edit": resolve_editor, "judge": resolve_judge}


@pytest.fixture(scope="module")
def call(server: FakeProvider, runner: asyncio.Runner) -> Iterator[Caller]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GOOGLE_API_KEY", raising=False)
        for name in KEY_NAMES:
            patch.setenv(name, KEY)
        caller = Caller(server, runner)
        yield caller
        runner.run(close_models(*caller.roles.values()))


@pytest.fixture
def fresh(call: Caller) -> Iterator[Caller]:
    """Roles that no call before has left anything with."""
    caller = Caller(call.server, call.runner)
    yield caller
    call.runner.run(close_models(*caller.roles.values()))


def test_every_fault_has_an_expected_outcome() -> None:
    assert set(EXPECTED) == set(FAULTS)


@pytest.mark.parametrize(("provider", "step", "name"), CASES)
def test_fault(server: FakeProvider, call: Caller, provider: str, step: str, name: str) -> None:
    spoil = FAULTS[name]("gemini" if provider == "gemini" else "openai")
    server.spoil, before = spoil, len(server.calls)
    timeout = 0.4 if name in ("hung", "dripping") else 20.0
    reply = call(provider, step, timeout_s=timeout)
    expected = EXPECTED[name] if provider == "gemini" else OPENAI.get(name, EXPECTED[name])

    assert reply.outcome.kind is expected.kind, reply.outcome
    assert reply.outcome.fatal is expected.fatal, reply.outcome
    assert len(server.calls) - before == (1 if step == "edit" else expected.asks)
    if expected.wait is None:
        assert reply.outcome.retry_after is None
    else:
        assert reply.outcome.retry_after is not None
        assert expected.wait[0] <= reply.outcome.retry_after <= expected.wait[1]
    assert (reply.value is not None) is reply.outcome.ok
    if not reply.outcome.ok:
        assert reply.outcome.reason
        assert "\n" not in reply.outcome.reason
    for told in (repr(reply), reply.raw, reply.outcome.reason):
        assert KEY not in told


@pytest.mark.parametrize("provider", ["gemini", "openai"])
def test_unchanged_picture_is_kept_and_noted(server: FakeProvider, call: Caller, provider: str) -> None:
    server.spoil = FAULTS["same picture"](provider)
    reply = call(provider, "edit")
    assert reply.value is not None
    assert UNCHANGED in reply.raw


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("step", ["write", "judge"])
def test_second_ask_repairs_and_both_are_billed(
    server: FakeProvider, call: Caller, provider: str, step: str
) -> None:
    form = "gemini" if provider == "gemini" else "openai"
    spoil = FAULTS["cut words"](form)
    assert spoil is not None
    server.spoil, server.script = None, [spoil]
    once = call(provider, step)
    server.script = []
    plain = call(provider, step)
    assert once.outcome.ok
    assert plain.usage.input_tokens is not None
    assert once.usage.input_tokens == 2 * plain.usage.input_tokens


PRICE = Price(input_per_m=2.0, output_per_m=12.0, tiers=(("flex", 0.5), ("priority", 2.0)))
ONE_ASK = {"gemini": (1_200 * 2 + 190 * 12) / 1e6, "openai": (900 * 2 + 120 * 12) / 1e6}
"""Dollars of the servers' usual answer at that price, by hand (`fakes.gemini_format`, `fakes.openai_format`)."""


def told_tier(form: str, tier: str, spoil: Spoil | None, where: str) -> Spoil:
    """An answer that names its service tier, in its body or in a header."""

    def named(request: Request, good: Answer) -> Answer:
        answer = spoil(request, good) if spoil else good
        if where != "body":
            return replace(answer, headers={**answer.headers, where: tier})
        body = json.loads(answer.body)
        if form == "gemini":
            body["usageMetadata"]["serviceTier"] = tier
        else:
            body["service_tier"] = tier
        return replace(answer, body=json.dumps(body).encode())

    return named


@pytest.mark.parametrize(
    ("provider", "where"),
    [("gemini", "body"), ("gemini", "X-Gemini-Service-Tier"), ("openai", "body")],
    ids=["gemini", "gemini, in a header", "openai"],
)
@pytest.mark.parametrize(
    ("first", "second", "asks"),
    [
        ("flex", "standard", 1.5),
        ("standard", "flex", 1.5),
        ("priority", "standard", 3.0),
        ("flex", "flex", 1.0),
    ],
)
def test_each_ask_of_a_call_is_billed_by_the_tier_that_served_it(
    server: FakeProvider, fresh: Caller, provider: str, where: str, first: str, second: str, asks: float
) -> None:
    cut = FAULTS["cut words"](provider)
    server.spoil = None
    server.script = [told_tier(provider, first, cut, where), told_tier(provider, second, None, where)]
    reply = fresh(provider, "judge")
    assert reply.outcome.ok
    kept = usage_from_json(to_json(reply.usage))  # as the journal keeps it
    assert kept == reply.usage
    assert PRICE.cost(kept) == pytest.approx(asks * ONE_ASK[provider])


@pytest.mark.parametrize("provider", ["gemini", "openai"])
def test_more_room_than_a_model_has_is_a_cut_answer_and_halts_nothing(
    server: FakeProvider, fresh: Caller, provider: str
) -> None:
    """Vertex AI's words for a limit out of range, which is a wrong setting where the recipe itself says it."""
    said = "maxOutputTokens value of 80000 but the supported range is from 1 (inclusive) to 65537 (exclusive)"
    server.spoil, server.script = None, [FAULTS["cut words"](provider), status(400, said)(provider)]
    reply = fresh(provider, "judge")
    assert (reply.outcome.kind, reply.outcome.fatal) == (OutcomeKind.MALFORMED, False)
    assert (
        "was cut at max_output_tokens" in reply.outcome.reason and "supported range" in reply.outcome.reason
    )
    assert PRICE.cost(reply.usage) == pytest.approx(ONE_ASK[provider])


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
def test_second_ask_that_brings_nothing_is_free_only_where_the_provider_said_no(
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
def test_answer_cut_at_its_limit_is_never_asked_for_under_the_same_limit(
    server: FakeProvider, call: Caller, provider: str, step: str
) -> None:
    server.spoil = FAULTS["cut words"]("gemini" if provider == "gemini" else "openai")
    reply = call(provider, step)
    assert reply.outcome.kind is OutcomeKind.MALFORMED
    assert "cut at max_output_tokens" in reply.outcome.reason
    asked = server.calls[-2:]
    fields = [request.fields.get("generationConfig", request.fields) for request in asked]
    named = ("maxOutputTokens", "max_output_tokens", "max_tokens")
    limits = [next(said[name] for name in named if name in said) for said in fields]
    assert limits == [8_192, 16_384]
    assert reply.usage.output_tokens is not None  # both are billed


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", ["503", "429 bare", "dropped"])
def test_try_after_a_failed_second_ask_does_not_buy_the_cut_answer_again(
    server: FakeProvider, fresh: Caller, provider: str, name: str
) -> None:
    form = "gemini" if provider == "gemini" else "openai"
    cut, fault = FAULTS["cut words"](form), FAULTS[name](form)
    assert cut is not None and fault is not None
    server.spoil, server.script, before = None, [cut, fault], len(server.calls)
    assert not fresh(provider, "judge").outcome.ok
    assert fresh(provider, "judge").outcome.ok  # the next try of the same call
    fields = [request.fields.get("generationConfig", request.fields) for request in server.calls[before:]]
    named = ("maxOutputTokens", "max_output_tokens", "max_tokens")
    limits = [next(said[name] for name in named if name in said) for said in fields]
    assert limits == [8_192, 16_384, 16_384]
    assert fresh(provider, "judge").outcome.ok  # another call begins as usual
    assert len(server.calls) - before == 4


@pytest.mark.parametrize("provider", PROVIDERS)
def test_wrong_key_halts_and_is_not_repeated(
    server: FakeProvider, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fake, like real providers, quotes the key that it rejects."""
    wrong = "sk-wrong-abcdef0123456789"
    for name in KEY_NAMES:
        monkeypatch.setenv(name, wrong)
    server.spoil = None
    reply = asyncio.run(_write(provider, server.url if provider == "gemini" else f"{server.url}/v1"))
    assert reply.outcome.fatal
    assert "key" in reply.outcome.reason
    assert wrong not in repr(reply) + reply.raw


def test_compatible_server_without_schemas_is_asked_without_one(server: FakeProvider, call: Caller) -> None:
    from fakes.openai_format import error

    def refuse_schema(request: Request, good: Answer) -> Answer:
        if "response_format" in request.fields:
            return error(400, "response_format is not supported by this server")
        return good

    server.spoil, before = refuse_schema, len(server.calls)
    reply = call("openai-compatible", "judge")
    assert reply.outcome.ok, reply.outcome
    assert ["response_format" in c.fields for c in server.calls[before:]] == [True, False]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_connection_refused_is_transport(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEY_NAMES:
        monkeypatch.setenv(name, KEY)
    with FakeProvider([]) as gone:
        url = gone.url
    reply = asyncio.run(_write(provider, url))
    assert reply.outcome.kind is OutcomeKind.TRANSPORT
    assert not reply.outcome.fatal


async def _write(provider: str, url: str) -> Reply[str]:
    writer = resolve_writer(f"{provider}/m", ProviderOptions(base_url=url, timeout_s=5))
    reply = await writer.write(write_request())
    await close_models(writer)
    return reply
