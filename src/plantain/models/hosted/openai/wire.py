"""The connection to OpenAI, or to a compatible server, in OpenAI's formats."""

from __future__ import annotations

from collections.abc import Sequence

import httpx2

from plantain.files.secrets import Secret, redacted
from plantain.models.hosted.answers import JsonObject, to_base64
from plantain.models.hosted.connection import Wire
from plantain.models.hosted.faults import read_body
from plantain.roles import EncodedImage
from plantain.roles.options import ProviderOptions

Named = tuple[str, EncodedImage]
"""The field of a form, and the image in it."""

REQUEST_ID = "_request_id"
"""The key under which an answer to an edit has the id of its request, as in the objects of OpenAI's SDK."""


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

        Answers with images contain no request id and often no model: both are taken from the headers.
        """
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
