"""Connections in OpenAI's formats: to OpenAI, and to a compatible server, which reports its own models."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import httpx2

from plantain.files.secrets import Secret, redacted
from plantain.models.hosted.answers import JsonObject, objects, text, to_base64
from plantain.models.hosted.connection import Wire
from plantain.models.hosted.faults import MAY_BE_BILLED, Fault, read_body
from plantain.models.hosted.openai.compatible import ServerProfile
from plantain.roles import EncodedImage
from plantain.roles.options import ProviderOptions

Named = tuple[str, EncodedImage]
"""The field of a form, and the image in it."""

REQUEST_ID = "_request_id"
"""The key under which an answer to an edit has the id of its request, as in the objects of OpenAI's SDK."""

JSON_ALONE = frozenset({"moderation"})
"""Fields of an edit that OpenAI's reference has in its JSON form and not in the multipart one."""


def edit_in_json(fields: JsonObject, files: Sequence[Named]) -> JsonObject:
    """Make the JSON form of an edit: its fields, its images as data URLs in `images`, and any mask in `mask`."""
    shown = [(name, {"image_url": data_url(sent)}) for name, sent in files]
    mask = {name: url for name, url in shown if name == "mask"}
    return {**fields, "images": [url for name, url in shown if name != "mask"], **mask}


def data_url(image: EncodedImage) -> str:
    """Encode an image as a data URL: media type and base64."""
    return f"data:{image.media_type};base64,{to_base64(image.data)}"


class OpenAIWire(Wire):
    """The connection to one model in OpenAI's formats.

    Args:
        name: "provider/model".
        key: the API key; empty for servers without one.
        options: timeout, and the settings of the transport.
        address: the base URL.
    """

    def __init__(self, name: str, key: Secret, options: ProviderOptions, address: str) -> None:
        super().__init__(name, address, options)
        self.key = key

    async def sign(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key.reveal() or 'none'}"}

    async def post(self, path: str, body: JsonObject) -> JsonObject:
        """Post JSON, e.g. to "/responses", and return the answer's JSON object. Raise Fault if there is none."""
        return self._body_of(await self.request("POST", path, body))

    async def post_form(self, path: str, fields: JsonObject, files: Sequence[Named]) -> JsonObject:
        """Post a form with images, each under the name of its field, in order; return the answer's JSON object.

        An edit with a field of `JSON_ALONE` is sent as JSON. Answers with images contain no request id and often no
        model: both are taken from the headers.
        """
        if JSON_ALONE & fields.keys():
            reply = await self.request("POST", path, edit_in_json(fields, files))
        else:
            form = [(name, (_file_name(name, sent), sent.data, sent.media_type)) for name, sent in files]
            reply = await self.request("POST", path, data=fields, files=form)
        body = self._body_of(reply)
        for name, header in ((REQUEST_ID, "x-request-id"), ("model", "openai-model")):
            if reply.headers.get(header):
                body.setdefault(name, redacted(reply.headers[header]))
        return body

    def _body_of(self, reply: httpx2.Response) -> JsonObject:
        body = read_body(reply.content)
        if body.get("error") and not ("output" in body or body.get("choices") or body.get("data")):
            raise self.refused(reply)
        return body


def _file_name(field: str, image: EncodedImage) -> str:
    return f"{field.removesuffix('[]')}.{image.media_type.partition('/')[2]}"


IDLE_S = 30.0
"""Idle seconds after which the model is read again: the server may have restarted with another."""

NOT_YET = frozenset({0, 408, 429, 502, 503, 504})
"""Statuses of a server, or of a proxy before it, that is not there at the moment; 0 is none."""

UNLISTED = frozenset({400, 404, 405, 422, 501})
"""Statuses of a server that has no list of its models."""


class ServedWire(OpenAIWire):
    """The connection to one model of a compatible server.

    Args:
        server: kind of server.
        named: True to name the served model in every answer as the server lists it, with the server's version. They
            are read once, and again after a failure or an idle time.
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
        """Return (True if the server has the model, its version and models as text). Raise Fault if it fails."""
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
