"""The bucket through which batch jobs of Vertex AI go, by Cloud Storage's JSON interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import httpx2

from plantain.files.redaction import redacted
from plantain.models.hosted.faults import Fault, http_fault, not_allowed, read_body, signed, wire_fault
from plantain.models.hosted.guarded import GuardedTransport
from plantain.models.hosted.outgoing import sending_cleared_file
from plantain.models.hosted.scrub import objects, scrub, text
from plantain.models.hosted.vertex.credentials import RenewedCredentials
from plantain.records import NotAllowed
from plantain.roles.options import ProviderOptions

T = TypeVar("T")

ADDRESS = "https://storage.googleapis.com"
PIECE = 1 << 20
TRANSFER_S = 1_800.0
"""Seconds that a file may take up or down."""


class CloudStorage:
    """Objects under "gs://bucket/folder". Each transfer opens its own connection: there are few.

    Args:
        name: "vertex/<model>", for messages and the run's gate.
        credentials: renewed here.
        options: `bucket`, proxy, authorities, and `storage_url` where it is not Google's own address.
    """

    def __init__(self, name: str, credentials: RenewedCredentials, options: ProviderOptions) -> None:
        self._name = name
        self._credentials = credentials
        self._url = (options.storage_url or ADDRESS).rstrip("/")
        self._options = replace(options, base_url=options.storage_url)
        self.folder = options.bucket.rstrip("/")

    async def put(self, uri: str, file: Path) -> None:
        """Sends a file of requests whose pictures may all go there. Raises Fault."""

        async def send(client: httpx2.AsyncClient, guard: GuardedTransport) -> None:
            await guard.clear_file(file)
            bucket, name = _parts(uri)
            where = f"{self._url}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(name, safe='')}"
            with sending_cleared_file():
                headers = {"Content-Type": "application/jsonl", "Content-Length": str(file.stat().st_size)}
                await self._asked(client, "POST", where, headers, _pieces(file))

        await self._with_client(send)

    async def list(self, folder: str) -> list[str]:
        """Addresses of the objects under "gs://bucket/folder". Raises Fault."""

        async def ask(client: httpx2.AsyncClient, guard: GuardedTransport) -> list[str]:
            bucket, prefix = _parts(folder.rstrip("/") + "/")
            found: list[str] = []
            page = ""
            while True:
                where = f"{self._url}/storage/v1/b/{bucket}/o?prefix={quote(prefix, safe='')}"
                reply = await self._asked(
                    client, "GET", f"{where}&pageToken={quote(page)}" if page else where
                )
                body = read_body(reply.content)
                found += [f"gs://{bucket}/{text(one, 'name')}" for one in objects(body.get("items"))]
                page = text(body, "nextPageToken")
                if not page:
                    return found

        return await self._with_client(ask)

    async def get(self, uri: str, to: Path) -> None:
        """Fetches an object. Raises Fault."""

        async def fetch(client: httpx2.AsyncClient, guard: GuardedTransport) -> None:
            bucket, name = _parts(uri)
            where = f"{self._url}/storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media"
            async with client.stream("GET", where, headers=await self._signature()) as reply:
                if reply.status_code >= 400:
                    await reply.aread()
                    raise self._fault(reply)
                with to.open("wb") as file:
                    async for piece in reply.aiter_bytes():
                        file.write(piece)

        await self._with_client(fetch)

    async def delete(self, uri: str) -> None:
        """Deletes an object; one that is gone already is no fault. Raises Fault."""

        async def remove(client: httpx2.AsyncClient, guard: GuardedTransport) -> None:
            bucket, name = _parts(uri)
            where = f"{self._url}/storage/v1/b/{bucket}/o/{quote(name, safe='')}"
            try:
                await self._asked(client, "DELETE", where)
            except Fault as fault:
                if fault.status != 404:
                    raise

        await self._with_client(remove)

    async def _with_client(self, work: Callable[[httpx2.AsyncClient, GuardedTransport], Awaitable[T]]) -> T:
        """Does something over a connection under the run's gate; once more with a new token after a 401."""

        async def once() -> T:
            guard = GuardedTransport(self._name, self._url, self._options)
            client = httpx2.AsyncClient(
                transport=guard, timeout=self._options.timeout_s, trust_env=False, follow_redirects=False
            )
            try:
                async with asyncio.timeout(TRANSFER_S), client:
                    return await work(client, guard)
            except NotAllowed as why:
                raise not_allowed(why) from None
            except (httpx2.HTTPError, httpx2.StreamError, TimeoutError) as error:
                raise Fault(wire_fault(error, self._options.timeout_s)) from None

        return await signed(once, self._credentials)

    async def _asked(
        self,
        client: httpx2.AsyncClient,
        method: str,
        where: str,
        headers: dict[str, str] | None = None,
        content: AsyncIterator[bytes] | None = None,
    ) -> httpx2.Response:
        signature = await self._signature()
        reply = await client.request(method, where, headers={**signature, **(headers or {})}, content=content)
        if reply.status_code >= 400:
            raise self._fault(reply)
        return reply

    async def _signature(self) -> dict[str, str]:
        if self._credentials.expired or not self._credentials.token:
            await asyncio.to_thread(self._credentials.refresh, None)
        return {"Authorization": f"Bearer {self._credentials.token}"}

    def _fault(self, reply: httpx2.Response) -> Fault:
        content = redacted(reply.text)
        outcome = http_fault(self._name, reply.status_code, content, dict(reply.headers))
        return Fault(
            outcome, reply.status_code, {"status": reply.status_code, "body": scrub({"text": content})}
        )


def _parts(uri: str) -> tuple[str, str]:
    """Bucket and name of an object."""
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    return bucket, name


async def _pieces(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as requests:
        while piece := await asyncio.to_thread(requests.read, PIECE):
            yield piece
