"""Several servers that serve one model: each request goes to the one with the fewest, and one that fails has a rest."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from urllib.parse import urlsplit

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.faults import MAY_BE_BILLED, Fault
from plantain.models.hosted.openai.servers import ServerProfile
from plantain.models.hosted.openai.wire import Named, OpenAIWire
from plantain.models.hosted.scrub import objects, text
from plantain.records import OutcomeKind

T = TypeVar("T")

FIRST_REST_S = 2.0
LONGEST_REST_S = 120.0
"""Seconds for which a server is passed over after a failure; each further one doubles them."""

IDLE_S = 30.0
"""A server that answered nothing for so long may have been started anew meanwhile, with another model."""

PASSING = frozenset({OutcomeKind.TRANSPORT, OutcomeKind.RATE_LIMITED})

NOT_YET = frozenset({0, 408, 429, 502, 503, 504})
"""Statuses of a server, or of what stands before it, that is not there at the moment; 0 is none."""

ENDPOINT = "_endpoint"
"""Under this name an answer bears the address that gave it, where there is a choice of several."""


@dataclass(slots=True)
class Endpoint:
    """One server.

    Attributes:
        wire: the connection.
        outstanding: requests that it has not answered.
        rests_until: passed over before this moment while others are there; by the clock of `Endpoints`.
        rest_s: the last rest's length; 0 while it answers.
        served: what it says that it serves, with its version; None while it was not asked.
        heard_at: when it last answered.
        called: the model as its first answer called it; "" where answers call none.
    """

    wire: OpenAIWire
    outstanding: int = 0
    rests_until: float = 0.0
    rest_s: float = 0.0
    served: str | None = None
    heard_at: float = 0.0
    called: str = ""


class Endpoints:
    """A transport over one or several servers of one kind, all of which serve the model.

    A request that a server certainly did not begin to answer (no connection, 502, 503, a full queue) goes to the next
    one at once; whatever else happened is the caller's to judge. What a server says of itself is asked once, and again
    after it failed, after it was idle, and when its answers call the model otherwise than before: it may have come back
    with another one.

    Args:
        wires: one for each address.
        server: which kind they are.
        named: they are named endpoints of a recipe, whose answers are held to what `/models` and the version say.
        clock: seconds.
    """

    def __init__(
        self,
        wires: Sequence[OpenAIWire],
        server: ServerProfile,
        *,
        named: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.all = [Endpoint(wire) for wire in wires]
        self.name, self.model = wires[0].name, wires[0].model
        self._server = server
        self._named = named
        self._clock = clock

    async def post(self, path: str, body: JsonObject) -> JsonObject:
        """The body of the answer to a JSON request. Raises Fault."""
        return await self._answered(lambda wire: wire.post(path, body))

    async def post_form(self, path: str, fields: JsonObject, files: Sequence[Named]) -> JsonObject:
        """The body of the answer to a multipart request. Raises Fault."""
        return await self._answered(lambda wire: wire.post_form(path, fields, files))

    def scrub(self, body: JsonObject) -> object:
        return self.all[0].wire.scrub(body)

    async def aclose(self) -> None:
        for endpoint in self.all:
            await endpoint.wire.aclose()

    async def _answered(self, send: Callable[[OpenAIWire], Awaitable[JsonObject]]) -> JsonObject:
        passed_over: list[Endpoint] = []
        while True:
            endpoint = self._next(passed_over)
            try:
                body = await self._send(endpoint, send)
            except Fault as fault:
                passed_over.append(endpoint)
                if len(passed_over) == len(self.all) or not _never_begun(fault):
                    raise
                continue
            if len(self.all) > 1:
                body[ENDPOINT] = endpoint.wire.address
            if self._named:
                body["model"] = await self._answered_by(endpoint, text(body, "model"))
            return body

    async def _answered_by(self, endpoint: Endpoint, called: str) -> str:
        """The model that answered: as the server lists it, and as its answers call it where that has changed."""
        endpoint.called = endpoint.called or called
        if called in ("", endpoint.called):
            return endpoint.served or called
        known = endpoint.served
        with contextlib.suppress(Fault):  # what was answered is not lost for that
            endpoint.served = await served_by(endpoint.wire, self._server)
        if endpoint.served == known:
            return f"{known} (answers as {called})"
        endpoint.called = called
        return endpoint.served or called

    async def _send(
        self, endpoint: Endpoint, send: Callable[[OpenAIWire], Awaitable[JsonObject]]
    ) -> JsonObject:
        endpoint.outstanding += 1
        idle = endpoint.outstanding == 1 and self._clock() - endpoint.heard_at > IDLE_S
        try:
            if self._named and (endpoint.served is None or idle):
                endpoint.served = await served_by(endpoint.wire, self._server)
            body = await send(endpoint.wire)
        except Fault as fault:
            if fault.outcome.kind in PASSING and not fault.outcome.fatal:
                endpoint.rest_s = min(LONGEST_REST_S, 2.0 * endpoint.rest_s or FIRST_REST_S)
                endpoint.rests_until = self._clock() + max(endpoint.rest_s, fault.outcome.retry_after or 0.0)
                endpoint.served = None
            raise
        finally:
            endpoint.outstanding -= 1
        endpoint.rest_s = endpoint.rests_until = 0.0
        endpoint.heard_at = self._clock()
        return body

    def _next(self, passed_over: list[Endpoint]) -> Endpoint:
        """The one with the fewest requests; where all have a rest, the one whose rest ends first."""
        left = [endpoint for endpoint in self.all if endpoint not in passed_over]
        awake = [endpoint for endpoint in left if endpoint.rests_until <= self._clock()]
        if awake:
            return min(awake, key=lambda endpoint: endpoint.outstanding)
        return min(left, key=lambda endpoint: endpoint.rests_until)


def _never_begun(fault: Fault) -> bool:
    """Whether another server may have the request: this one did not work on it."""
    outcome = fault.outcome
    return outcome.kind in PASSING and outcome.unbilled and not outcome.fatal


async def served_by(wire: OpenAIWire, server: ServerProfile) -> str:
    """The model as `/models` has it, and the server's version: "Qwen/Qwen3-VL-8B vllm 0.30.0".

    What a server does not tell is left out.

    Raises:
        Fault: it does not answer, or not at the moment; nothing was asked of a model.
    """
    try:
        listed = await wire.get("/models")
    except Fault as fault:
        if fault.status not in (400, 404, 405, 422, 501):
            raise _not_asked(fault) from None
        listed = {}
    found = next((one for one in objects(listed.get("data")) if text(one, "id") == wire.model), {})
    model = text(found, "root") or text(found, "id") or text(listed, "model_path") or wire.model
    try:
        version = await version_of(wire, server)
    except Fault as fault:
        raise _not_asked(fault) from None
    return " ".join(filter(None, (model, server.name if version else "", version)))


def _not_asked(fault: Fault) -> Fault:
    """The fault of a question about the server itself: it bills nothing, and another server may have the request."""
    reason = f"asked for its models: {fault.outcome.reason.removesuffix(MAY_BE_BILLED)}"
    return Fault(replace(fault.outcome, reason=reason, unbilled=True), fault.status, fault.raw)


async def version_of(wire: OpenAIWire, server: ServerProfile) -> str:
    """What a server says is its version; "" where it says nothing. Raises Fault where it is not there at the moment."""
    if server.version is None:
        return ""
    path, name = server.version
    parts = urlsplit(wire.address)
    before = parts.path.rstrip("/").removesuffix("/v1")
    try:
        return text(await wire.get(f"{parts.scheme}://{parts.netloc}{before}{path}"), name)[:80]
    except Fault as fault:
        if fault.status in NOT_YET:
            raise
        return ""
