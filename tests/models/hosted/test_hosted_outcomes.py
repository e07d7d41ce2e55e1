"""Every fault x every step x every provider, by the real SDKs against a loopback server, ends in the right outcome."""

from __future__ import annotations

import time
from typing import NamedTuple

import pytest

from fakes.caller import Caller
from fakes.faults import FAULTS, STEPS
from fakes.server import KEY, Answer, FakeProvider, Request
from plantain.records import OutcomeKind

PROVIDERS = ("gemini", "openai", "openai-compatible")


class Expected(NamedTuple):
    """The outcome; how often the model is asked within the call; whether the run must halt; the requested wait."""

    kind: OutcomeKind
    asks: int = 1
    fatal: bool = False
    wait: tuple[float, float] | None = None


K = OutcomeKind
HALT = Expected(K.TRANSPORT, fatal=True)
AGAIN = Expected(K.MALFORMED, asks=2)

EXPECTED: dict[str, Expected] = {
    "400 bad key": HALT,
    "400 setting": Expected(K.MALFORMED, fatal=True),
    "400 moderation": Expected(K.REFUSED),
    "401": HALT,
    "403": HALT,
    "404 retired": HALT,
    "429 seconds": Expected(K.RATE_LIMITED, wait=(7, 7)),
    "429 ms": Expected(K.RATE_LIMITED, wait=(1.5, 1.5)),
    "429 bare": Expected(K.RATE_LIMITED),
    "429 no quota": Expected(K.RATE_LIMITED, fatal=True),
    "429 spent": Expected(K.RATE_LIMITED, fatal=True),
    "500": Expected(K.TRANSPORT),
    "502 html": Expected(K.TRANSPORT),
    "503": Expected(K.TRANSPORT, wait=(3, 3)),
    "dropped": Expected(K.TRANSPORT),
    "hung": Expected(K.TRANSPORT),
    "dripping": Expected(K.TRANSPORT),
    "truncated body": Expected(K.TRANSPORT),
    "error 200": Expected(K.TRANSPORT),
    "garbage 200": Expected(K.TRANSPORT),
    "201": Expected(K.OK),  # a paid answer is not thrown away
    "nothing in it": Expected(K.TRANSPORT),
    "blocked before": Expected(K.REFUSED),
    "blocked after": Expected(K.REFUSED),
    "IMAGE_SAFETY": Expected(K.REFUSED),
    "NO_IMAGE": Expected(K.NO_IMAGE),
    "text, no image": Expected(K.NO_IMAGE),
    "no data": Expected(K.NO_IMAGE),
    "declined": Expected(K.REFUSED),
    "content filter": Expected(K.REFUSED),
    "wide image": Expected(K.MALFORMED),
    "no image file": Expected(K.MALFORMED),
    "bad base64": Expected(K.MALFORMED),
    "same image": Expected(K.OK),
    "webp image": Expected(K.OK),
    "fenced": Expected(K.OK),
    "prose around": Expected(K.OK),
    "true as text": Expected(K.OK),
    "cut words": AGAIN,
    "missing key": AGAIN,
    "number as flag": AGAIN,
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


def arrived(server: FakeProvider, calls: int) -> None:
    """Wait for requests that a client has sent and given up before a loaded server read them."""
    deadline = time.monotonic() + 20
    while len(server.calls) < calls and time.monotonic() < deadline:
        time.sleep(0.01)


def test_every_fault_has_an_expected_outcome() -> None:
    assert set(EXPECTED) == set(FAULTS)


@pytest.mark.parametrize(("provider", "step", "name"), CASES)
def test_fault(server: FakeProvider, call: Caller, provider: str, step: str, name: str) -> None:
    spoil = FAULTS[name]("gemini" if provider == "gemini" else "openai")
    server.spoil, before = spoil, len(server.calls)
    timeout = 0.4 if name in ("hung", "dripping") else 20.0
    expected = EXPECTED[name]
    asks = 1 if step == "edit" else expected.asks
    for _ in range(10):  # on a loaded machine the time can end before the request is sent
        reply = call(provider, step, timeout_s=timeout)
        arrived(server, before + asks)
        if len(server.calls) > before:
            break
    assert reply.outcome.kind is expected.kind, reply.outcome
    assert reply.outcome.fatal is expected.fatal, reply.outcome
    assert len(server.calls) - before == asks
    if expected.wait is None:
        assert reply.outcome.retry_after is None
    else:
        assert reply.outcome.retry_after is not None
        assert expected.wait[0] <= reply.outcome.retry_after <= expected.wait[1]
    assert (reply.value is not None) is reply.outcome.ok
    if not reply.outcome.ok:
        assert reply.outcome.reason
        assert "\n" not in reply.outcome.reason
    for shown in (repr(reply), reply.raw, reply.outcome.reason):
        assert KEY not in shown


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
