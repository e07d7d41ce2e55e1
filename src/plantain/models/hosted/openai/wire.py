"""The connection to a server of OpenAI's kind: one long-lived client, no retries, every fault one of our outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import httpx2
import openai
import orjson

from plantain.files.redaction import redacted
from plantain.files.secrets import Secret
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.faults import Fault, http_fault, not_allowed, read_body, wire_fault
from plantain.models.hosted.guarded import GuardedTransport
from plantain.models.hosted.pictures import to_base64
from plantain.models.hosted.scrub import scrub
from plantain.records import NotAllowed
from plantain.roles import EncodedImage
from plantain.roles.exchange import patience
from plantain.roles.options import ProviderOptions

T = TypeVar("T")

Named = tuple[str, EncodedImage]
"""The field of a form, and the picture in it."""

REQUEST_ID = "_request_id"
"""Under this name an answer to an edit bears the number of its request, as the SDK's own objects do."""

JSON_ALONE = frozenset({"moderation"})
"""Fields of an edit that OpenAI's reference has in its JSON form and not in the multipart one."""

CONNECT_S = 10.0
CLEARING_S = 1_800.0
"""Seconds that a request file may take to be looked through."""


class OpenAITransport(Protocol):
    """What carries requests for one model and brings back the body of each answer; raises `Fault` where there is none.

    The online one is `OpenAIWire`; another may collect requests and send them as a job.
    """

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    async def post(self, path: str, body: JsonObject) -> JsonObject: ...

    async def post_form(self, path: str, fields: JsonObject, files: Sequence[Named]) -> JsonObject: ...

    def scrub(self, body: JsonObject) -> object: ...

    async def aclose(self) -> None: ...


def edit_in_json(fields: JsonObject, files: Sequence[Named]) -> JsonObject:
    """An edit's fields with its pictures as data URLs: those of the field "mask" beside the others."""
    shown = [
        (name, {"image_url": f"data:{sent.media_type};base64,{to_base64(sent.data)}"}) for name, sent in files
    ]
    mask = {name: url for name, url in shown if name == "mask"}
    return {**fields, "images": [url for name, url in shown if name != "mask"], **mask}


class OpenAIWire:
    """Sends requests for one model.

    Args:
        name: "provider/model".
        key: the API key; an empty one for servers that want none.
        options: timeout, and what the transport needs to know of the address.
        address: the base URL. One in the environment is ignored: images go where the recipe says.
    """

    def __init__(self, name: str, key: Secret, options: ProviderOptions, address: str) -> None:
        self.name = name
        self.model = name.partition("/")[2]
        self.key = key
        self.address = address
        self._options = options
        self._timeout_s = options.timeout_s
        self._transport: GuardedTransport | None = None
        self._client: openai.AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(self, path: str, body: JsonObject) -> JsonObject:
        """The body of the answer to a JSON request, e.g. to "/responses".

        Raises:
            Fault: whatever else came, or nothing did.
        """
        request = self._connected().post(
            path,
            cast_to=httpx2.Response,
            content=orjson.dumps(body),  # the SDK's own encoder looks at every character of every picture
            options={"headers": {"Content-Type": "application/json"}},
        )
        return await self._read(request)

    async def post_form(self, path: str, fields: JsonObject, files: Sequence[Named]) -> JsonObject:
        """The body of the answer to a multipart request with pictures, each under the name of its field, in order.

        An edit whose fields stand in its JSON form alone is sent in that.
        Image answers name no request and often no model: both are taken from the headers.

        Raises:
            Fault: whatever else came, or nothing did.
        """
        if JSON_ALONE & fields.keys():
            sent = self._connected().post(
                path,
                cast_to=httpx2.Response,
                content=orjson.dumps(edit_in_json(fields, files)),
                options={"headers": {"Content-Type": "application/json"}},
            )
            return await self._read_named(sent)
        request = self._connected().post(
            path,
            cast_to=httpx2.Response,
            body=fields,
            files=[
                (
                    name,
                    (
                        f"{name.removesuffix('[]')}.{sent.media_type.partition('/')[2]}",
                        sent.data,
                        sent.media_type,
                    ),
                )
                for name, sent in files
            ],
            options={"headers": {"Content-Type": "multipart/form-data"}},
        )
        return await self._read_named(request)

    async def _read_named(self, request: Awaitable[httpx2.Response]) -> JsonObject:
        response = await self._sent(request)
        body = self._body_of(response)
        for name, header in ((REQUEST_ID, "x-request-id"), ("model", "openai-model")):
            if response.headers.get(header):
                body.setdefault(name, redacted(response.headers[header]))
        return body

    async def look_up(self) -> JsonObject:
        """What the provider says of the model; free of charge.

        Raises:
            Fault: it is not there, or the key does not work.
        """
        return await self.get(f"/models/{self.model}")

    async def get(self, path: str) -> JsonObject:
        """The body of what lies at a path of the address, or at another address of the same server. Raises Fault."""
        return await self._read(self._connected().get(path, cast_to=httpx2.Response))

    def scrub(self, body: JsonObject) -> object:
        """A body as it may be kept."""
        return scrub(body)

    async def aclose(self) -> None:
        """Closes the client; the next call opens another."""
        client, self._client, self._transport, self._loop = self._client, None, None, None
        if client is not None:
            await client.close()

    async def clear_file(self, file: Path) -> None:
        """Has the pictures of a request file cleared. Raises Fault where one may not be sent."""
        self._connected()
        assert self._transport is not None
        await self._sent(self._transport.clear_file(file), CLEARING_S)

    async def do(
        self, request: Callable[[openai.AsyncOpenAI], Awaitable[T]], timeout_s: float | None = None
    ) -> T:
        """Any other request by the same client and under the same rules.

        Raises:
            Fault: it was not obeyed.
        """
        return await self._sent(request(self._connected()), timeout_s)

    async def _read(self, request: Awaitable[httpx2.Response]) -> JsonObject:
        return self._body_of(await self._sent(request))

    def _body_of(self, response: httpx2.Response) -> JsonObject:
        body = read_body(response.content)
        if body.get("error") and not ("output" in body or body.get("choices") or body.get("data")):
            raise self._status_fault(response)
        return body

    async def _sent(self, request: Awaitable[T], timeout_s: float | None = None) -> T:
        """Waits for a request; whatever the SDK raises of the provider or the wire becomes a Fault."""
        try:
            async with asyncio.timeout(timeout_s or patience(self._timeout_s)):
                return await request
        except openai.APIStatusError as error:
            raise self._status_fault(error.response) from None
        except NotAllowed as why:
            raise not_allowed(why) from None
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, NotAllowed):
                raise not_allowed(error.__cause__) from None
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            outcome = wire_fault(cause, self._timeout_s) or wire_fault(
                httpx2.NetworkError(""), self._timeout_s
            )
            assert outcome is not None
            raise Fault(outcome) from None
        except (httpx2.HTTPError, httpx2.StreamError, TimeoutError) as error:
            raise Fault(wire_fault(error, self._timeout_s)) from None

    def _connected(self) -> openai.AsyncOpenAI:
        """The client, made in the running event loop; a client of an earlier loop cannot be used any more.

        Where it may send, and through which proxy, is for the transport to say; redirects are not followed.
        """
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._transport = GuardedTransport(self.name, self.address, self._options)
            self._client = self._new_client(
                httpx2.Timeout(self._timeout_s, connect=min(CONNECT_S, self._timeout_s)),
                openai.DefaultAsyncHttpxClient(
                    transport=self._transport,
                    trust_env=False,
                    follow_redirects=False,
                    event_hooks={"request": [_in_one_piece]},
                ),
            )
            self._loop = loop
        return self._client

    def _new_client(self, timeout: httpx2.Timeout, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        key = self.key.reveal() or "none"
        return openai.AsyncOpenAI(
            api_key=key, base_url=self.address, max_retries=0, timeout=timeout, http_client=http
        )

    def _status_fault(self, response: httpx2.Response) -> Fault:
        content = redacted(response.text)
        outcome = http_fault(self.name, response.status_code, content, dict(response.headers))
        raw = {"status": response.status_code, "body": self.scrub({"text": content})}
        return Fault(outcome, response.status_code, raw)


async def _in_one_piece(request: httpx2.Request) -> None:
    """Joins a multipart body, which would otherwise be sent in a dozen writes of a few bytes each."""
    await request.aread()


class CompatibleWire(OpenAIWire):
    """The same to a server that is not OpenAI's: it learns nothing of an account there."""

    def _new_client(self, timeout: httpx2.Timeout, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        return without_environment(super()._new_client(timeout, http))


def without_environment(client: openai.AsyncOpenAI) -> openai.AsyncOpenAI:
    """A client that says nothing of what the environment holds for OpenAI itself: organisation, project, headers."""
    client.organization = client.project = client.admin_api_key = None
    client._custom_headers = {}  # of OPENAI_CUSTOM_HEADERS; there is no public way not to read them
    return client
