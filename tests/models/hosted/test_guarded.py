"""The transport of both SDKs: the addresses that it connects to, and the images that it sends."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import ssl
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx2
import orjson
import pybase64
import pytest

from fakes.away import ELSEWHERE, NAME, Anything, RecordedConnections, look_hosted, resolve_as
from fakes.caller import ask, options_at, options_of, resolve_writer
from fakes.openai_format import openai_route
from fakes.requests import write_request
from fakes.server import KEY, FakeProvider
from plantain.files.secrets import hide_environment
from plantain.models.hosted.connection import GuardedTransport
from plantain.models.hosted.images_sent import images_in
from plantain.records import InputError, NotAllowed, OutcomeKind, Reach
from plantain.roles import Reply
from plantain.roles.options import ProviderOptions, destination

IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
HASH = hashlib.sha256(IMAGE).hexdigest()
BASE64 = pybase64.b64encode(IMAGE).decode()
HOSTED = ("gemini", "openai", "openai-compatible")


def write(provider: str, options: Any) -> Reply[Any]:
    return ask(resolve_writer(f"{provider}/m", options), write_request())


@pytest.mark.parametrize(
    ("kind", "body", "found"),
    [
        ("application/json", orjson.dumps({"a": [{"inlineData": {"data": BASE64}}]}), {HASH}),
        ("application/json", orjson.dumps({"text": "word " * 100, "hash": "0" * 64}), set()),
        (
            'multipart/form-data; boundary="xx"',
            b'--xx\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nhello\r\n'
            b'--xx\r\nContent-Disposition: form-data; name="image"; filename="i.png"\r\n\r\n'
            + IMAGE
            + b"\r\n--xx--\r\n",
            {HASH},
        ),
        ("application/octet-stream", IMAGE, {HASH}),
        ("application/json", b"{broken", {hashlib.sha256(b"{broken").hexdigest()}),
    ],
)
def test_images_are_found_in_request_bodies(kind: str, body: bytes, found: set[str]) -> None:
    assert {image.sha256 for image in images_in(kind, body)} == found


@pytest.mark.parametrize(
    ("name", "addresses", "reach"),
    [
        ("localhost", ["127.0.0.1", "::1"], Reach.LOOPBACK),
        ("gpu.localhost", [ELSEWHERE], Reach.HOSTED),
        ("two.example", ["127.0.0.1", ELSEWHERE], Reach.HOSTED),
        ("mapped.example", ["::ffff:203.0.113.7"], Reach.HOSTED),
        ("127.0.0.1", [], Reach.LOOPBACK),
    ],
)
def test_a_name_is_loopback_by_its_addresses(
    name: str, addresses: list[str], reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_as(monkeypatch, {} if name[0].isdigit() else {name: addresses})
    assert destination(f"http://{name}:8000/v1", ProviderOptions()).reach is reach


@pytest.mark.parametrize("provider", HOSTED)
def test_nothing_is_sent_to_another_machine_without_clearance(
    provider: str, server: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_at(server, provider)
    options = options.but(base_url=look_hosted(monkeypatch, options.base_url))
    with RecordedConnections() as connections:
        reply = write(provider, options)
    assert (reply.outcome.kind, reply.outcome.fatal) == (OutcomeKind.REFUSED, True)
    assert NAME in reply.outcome.reason and ELSEWHERE in reply.outcome.reason
    assert connections == [] and server.calls == []
    gate = Anything()
    assert write(provider, options.within(clearance=gate)).outcome.ok
    ((to, images),) = gate.asked
    assert to.reach is Reach.HOSTED and to.address.startswith(f"http://{NAME}:")
    assert images == {hashlib.sha256(write_request().original.data).hexdigest()}


@pytest.mark.parametrize("provider", HOSTED)
def test_a_name_that_changes_its_address_is_refused(
    provider: str, server: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: loopback when it is looked at, elsewhere when the connection is made."""
    names = {"gpu.example": ["127.0.0.1"]}
    resolve_as(monkeypatch, names)
    real = GuardedTransport._transport

    def moving(self: GuardedTransport, to: Any) -> Any:
        assert to.reach is Reach.LOOPBACK
        names["gpu.example"] = [ELSEWHERE]
        return real(self, to)

    monkeypatch.setattr(GuardedTransport, "_transport", moving)
    options = options_at(server, provider)
    with RecordedConnections() as connections:
        reply = write(provider, options.but(base_url=options.base_url.replace("127.0.0.1", "gpu.example")))
    assert reply.outcome.fatal and "resolves to 203.0.113.7" in reply.outcome.reason
    assert connections == []


def test_no_other_address_is_ever_asked(server: FakeProvider) -> None:
    """Neither redirects nor addresses in answers are followed."""

    async def ask(url: str) -> Any:
        transport = GuardedTransport("openai/m", server.url, ProviderOptions())
        async with httpx2.AsyncClient(transport=transport, follow_redirects=True) as client:
            return await client.post(url, json={"a": 1}, headers={"Authorization": f"Bearer {KEY}"})

    with FakeProvider([openai_route]) as elsewhere, RecordedConnections() as connections:
        for url in (
            elsewhere.url,
            f"{server.url}@{elsewhere.url[7:]}",
            server.url.replace("http:", "https:"),
        ):
            with pytest.raises((NotAllowed, httpx2.InvalidURL)):
                asyncio.run(ask(url))
        server.spoil = lambda request, good: replace(good, status=307, headers={"Location": elsewhere.url})
        with pytest.raises(NotAllowed, match="redirects are not followed"):
            asyncio.run(ask(f"{server.url}/v1/responses"))
        assert elsewhere.calls == []
        assert {f"http://{host}:{port}" for host, port in connections} == {server.url}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"on_premises": True}, "on_premises: true without base_url"),
        ({"on_premises": True, "base_url": "https://API.openai.com./v1"}, "public address"),
    ],
)
def test_a_wrong_declaration_of_an_address_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve_writer("openai/m", options_of("openai", **changes))


def test_on_the_premises_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeProvider([]) as environment:
        monkeypatch.setenv("http_proxy", environment.url)
        url = "http://gpu.hospital.invalid/v1"
        write("openai", options_of("openai", base_url=url, on_premises=True, clearance=Anything()))
        assert environment.calls == []


class Forbidding(BaseHTTPRequestHandler):
    """A proxy that refuses every client and names it in its reason, its page and a header."""

    def do_CONNECT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        sent = self.headers["Proxy-Authorization"]
        who = base64.b64decode(sent.split()[1]).decode()
        page = json.dumps({"error": {"message": f"{who} ({sent}) may not use http://{who}@proxy"}}).encode()
        self.send_response_only(407, f"Denied {who}")
        for name, value in (
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(page))),
            ("X", sent),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(page)

    do_POST = do_CONNECT  # noqa: N815  # the base class wants it

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("password", ["Tr0ub4dor-Q9xzK7", "Tr0ub%40dor%2FQ9xzK7", "plain"])
def test_a_proxys_password_is_hidden_and_its_refusal_is_fatal_and_unbilled(
    scheme: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Forbidding) as proxy:
        threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setenv(f"{scheme}_proxy", f"http://alice:{password}@127.0.0.1:{proxy.server_port}")
        hide_environment()
        reply = write(
            "openai", options_of("openai", base_url=f"{scheme}://provider.invalid/v1", clearance=Anything())
        )
        proxy.shutdown()
    shown = json.dumps([reply.outcome.reason, reply.raw])
    assert "[key]" in shown and "proxy refused" in shown
    for secret in (
        password,
        unquote(password),
        base64.b64encode(f"alice:{unquote(password)}".encode()).decode(),
    ):
        assert secret not in shown
    # it was taken for an outage, its calls for lost money
    assert reply.outcome.fatal and reply.outcome.unbilled


def test_a_hospitals_own_certificates(tmp_path: Path) -> None:
    """A server whose authority is in no public list."""
    pytest.importorskip("cryptography")
    from release.certificates import make_chain

    chain = make_chain(tmp_path, usage=None)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain.certificates, chain.key)
    with FakeProvider([openai_route]) as server:
        server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
        url = server.url.replace("http:", "https:").replace("127.0.0.1", "localhost") + "/v1"
        known = options_of("openai", base_url=url, ca_bundle=chain.root)
        assert write("openai", known).outcome.ok
        assert not write("openai", known.but(ca_bundle=None)).outcome.ok
