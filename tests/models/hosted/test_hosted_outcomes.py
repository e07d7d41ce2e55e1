"""Every fault x every step x every provider, by the real SDKs against a loopback server, ends in the right outcome."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest

from fakes.caller import KEY_NAMES, Caller, options_of
from fakes.faults import FAULTS, STEPS
from fakes.requests import write_request
from fakes.server import KEY, Answer, FakeProvider, Request
from plantain.models.registry import close_models
from plantain.models.resolver import resolve_writer
from plantain.records import OutcomeKind
from plantain.roles import Reply

PROVIDERS = ("gemini", "openai", "openai-compatible")


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
    "201": Expected(K.OK),  # a paid answer is not thrown away
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

CASES = [
    pytest.param(provider, step, name, id=f"{provider}-{step}-{name}")
    for provider in PROVIDERS
    for name, fault in FAULTS.items()
    for step in STEPS.get(name, ("write", "edit", "judge"))
    if fault("gemini" if provider == "gemini" else "openai") is not None
    and not (provider == "openai-compatible" and step == "edit")
]


def test_every_fault_has_an_expected_outcome() -> None:
    assert set(EXPECTED) == set(FAULTS)


@pytest.mark.parametrize(("provider", "step", "name"), CASES)
def test_fault(server: FakeProvider, call: Caller, provider: str, step: str, name: str) -> None:
    spoil = FAULTS[name]("gemini" if provider == "gemini" else "openai")
    server.spoil, before = spoil, len(server.calls)
    timeout = 0.4 if name in ("hung", "dripping") else 20.0
    reply = call(provider, step, timeout_s=timeout)
    expected = EXPECTED[name]

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
def test_unchanged_image_is_an_edit(server: FakeProvider, call: Caller, provider: str) -> None:
    server.spoil = FAULTS["same picture"](provider)
    assert call(provider, "edit").value is not None


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
    writer = resolve_writer(f"{provider}/m", options_of(provider, base_url=url, timeout_s=5))
    reply = await writer.write(write_request())
    await close_models(writer)
    return reply
