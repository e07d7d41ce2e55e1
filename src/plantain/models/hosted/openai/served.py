"""The connection to a compatible server, which reports its own models and version."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from plantain.files.secrets import Secret
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.bodies import objects, text
from plantain.models.hosted.faults import MAY_BE_BILLED, Fault
from plantain.models.hosted.openai.servers import ServerProfile
from plantain.models.hosted.openai.wire import Named, OpenAIWire
from plantain.roles.options import ProviderOptions

IDLE_S = 30.0
"""Idle seconds after which the model is read again: the server may have restarted with another."""

NOT_YET = frozenset({0, 408, 429, 502, 503, 504})
"""Statuses of a server, or of a proxy before it, that is not there at the moment; 0 is none."""

UNLISTED = frozenset({400, 404, 405, 422, 501})
"""Statuses of a server that has no list of its models."""


class ServedWire(OpenAIWire):
    """Sends requests for one model of a server.

    Args:
        server: which kind it is.
        named: name the served model in every answer as the server lists it, with the server's version. They are read
            once, and again after a failure or an idle time.
    """

    def __init__(
        self, name: str, key: Secret, options: ProviderOptions, server: ServerProfile, *, named: bool
    ) -> None:
        super().__init__(name, key, options, options.base_url)
        self._server = server
        self._named = named
        self._served: str | None = None
        self._heard_at = 0.0

    async def post(self, path: str, body: JsonObject) -> JsonObject:
        return await self._labelled(lambda: super(ServedWire, self).post(path, body))

    async def post_form(self, path: str, fields: JsonObject, files: Sequence[Named]) -> JsonObject:
        return await self._labelled(lambda: super(ServedWire, self).post_form(path, fields, files))

    async def look(self) -> tuple[bool, str]:
        """Return True if the server has the model, and its version and models as text. Raise Fault."""
        models = [text(one, "id") for one in await self._models()]
        about = " ".join(filter(None, (self._server.name, await self._version())))
        listed = f"{about}: {', '.join(models) or 'lists no models'}"
        missing = bool(self.model and models) and self.model not in models
        return not missing, f"no {self.model!r} at this address; {listed}" if missing else listed

    def url_of(self, path: str) -> str:
        outside = self._server.version and path == self._server.version[0]
        return f"{self.address.removesuffix('/v1') if outside else self.address}{path}"

    async def _labelled(self, send: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        if not self._named:
            return await send()
        try:
            if self._served is None or time.monotonic() - self._heard_at > IDLE_S:
                self._heard_at = time.monotonic()
                self._served = await self._serves()
            served = self._served
            body = await send()
        except Fault:
            self._served = None
            raise
        self._heard_at = time.monotonic()
        body["model"] = served
        return body

    async def _serves(self) -> str:
        """Return the model as `/models` has it, and the server's version: "Qwen/Qwen3-VL-8B vllm 0.30.0".

        Raises:
            Fault: the server does not answer, or not at the moment; it bills nothing.
        """
        try:
            listed, version = await self._models(), await self._version()
        except Fault as fault:
            reason = f"listing its models: {fault.outcome.reason.removesuffix(MAY_BE_BILLED)}"
            outcome = replace(fault.outcome, reason=reason, unbilled=True)
            raise Fault(outcome, fault.status, fault.raw) from None
        found = next((one for one in listed if text(one, "id") == self.model), {})
        model = text(found, "root") or self.model
        return " ".join(filter(None, (model, self._server.name if version else "", version)))

    async def _models(self) -> list[JsonObject]:
        try:
            return objects((await self.get("/models")).get("data"))
        except Fault as fault:
            if fault.status not in UNLISTED:
                raise
            return []

    async def _version(self) -> str:
        """Return the server's version; "" if it states none."""
        if not self._server.version:
            return ""
        path, name = self._server.version
        try:
            return text(await self.get(path), name)[:80]
        except Fault as fault:
            if fault.status in NOT_YET:
                raise
            return ""
