"""A threaded loopback HTTP server that plays a provider: routes answer, a script spoils the answers.

A route is a function from a request to an answer, or None when the path is not its own. `FakeProvider.routes` holds
those of `gemini_format` and `openai_format`; add others (batch jobs) by appending to it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-fake-0123456789abcdef-plantain"
"""The key that the server wants. It looks like a key, so that tests can grep for it."""


SESSION = "/upload/session/"
"""Under this path files are sent to an address that was given out before, without a key."""


@dataclass(frozen=True)
class Request:
    """One request as the server saw it; without its headers, which hold the key.

    `fields` is the JSON body, or the text fields of a multipart body; `files` the files of the latter, `parts` the same
    in order, also where several have one name; `headers` are names alone.
    """

    method: str
    path: str
    fields: dict[str, Any]
    files: dict[str, bytes]
    body: bytes
    key: str
    at: float
    parts: tuple[tuple[str, bytes], ...] = ()
    headers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Answer:
    """An answer of the server.

    Attributes:
        latency_s: slept before anything is sent.
        close: the connection is closed without an answer.
        drip_s: seconds between the first bytes of the body, which then come one by one.
        cut: this many bytes of the body are left out at its end, though announced.
    """

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    latency_s: float = 0.0
    close: bool = False
    cut: int = 0
    drip_s: float = 0.0


Route = Callable[[Request], Answer | None]
Spoil = Callable[[Request, Answer], Answer]


def json_answer(value: object, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(json.dumps(value).encode(), status, {"Content-Type": "application/json", **named})


class FakeProvider:
    """A provider on 127.0.0.1; a context manager.

    Args:
        routes: asked in order for an answer.
        spoil: makes another answer of a good one; the place for faults. `script` is tried first.
        latency_s: of every answer.
        checks_key: whether requests to a path must contain `KEY`; routes of other paths check it themselves.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        *,
        spoil: Spoil | None = None,
        latency_s: float = 0.0,
        checks_key: Callable[[str], bool] = lambda path: not path.startswith(SESSION),
    ) -> None:
        self.routes = list(routes)
        self.spoil = spoil
        self.checks_key = checks_key
        self.script: list[Spoil] = []
        self.key = KEY
        """That it wants; "" for any."""
        self.latency_s = latency_s
        self.calls: list[Request] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.provider = self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FakeProvider:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: Request) -> Answer:
        with self._lock:
            self.calls.append(request)
            step = self.script.pop(0) if self.script else self.spoil
        if self.key and request.key != self.key and self.checks_key(request.path):
            message = f"Incorrect API key provided: {request.key}"
            return json_answer({"error": {"message": message, "code": "invalid_api_key"}}, 401)
        good = next((a for route in self.routes if (a := route(request)) is not None), None)
        if good is None:
            return json_answer({"error": {"message": f"no route {request.path}", "code": 404}}, 404)
        good = replace(good, latency_s=good.latency_s + self.latency_s)
        return step(request, good) if step else good


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512
    provider: FakeProvider

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are part of the play."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: request lines do not belong in test output."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind = self.headers.get("Content-Type") or ""
        fields, parts = ({}, ()) if self.path.startswith(SESSION) else _parse(kind, body)
        key = (
            self.headers.get("x-goog-api-key")
            or self.headers.get("api-key")
            or (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        )
        answer = self.server.provider.answer(
            Request(
                self.command,
                self.path,
                fields,
                dict(parts),
                body,
                key,
                time.monotonic(),
                parts,
                frozenset(name.lower() for name in self.headers),
            )
        )
        if answer.latency_s:
            time.sleep(answer.latency_s)
        if answer.close:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": str(len(answer.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        for byte in answer.body[:40] if answer.drip_s else b"":
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(answer.drip_s)
        if answer.drip_s:
            self.wfile.write(answer.body[40:])
        elif answer.cut:
            self.wfile.write(answer.body[: -answer.cut])
            self.close_connection = True
        else:
            self.wfile.write(answer.body)
        self.wfile.flush()


def _parse(kind: str, body: bytes) -> tuple[dict[str, Any], tuple[tuple[str, bytes], ...]]:
    if kind.partition(";")[0] == "application/json" and body:
        return json.loads(body), ()
    if not kind.startswith("multipart/"):
        return {}, ()
    message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    fields: dict[str, Any] = {}
    files: list[tuple[str, bytes]] = []
    for part in message.iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        data = part.get_payload(decode=True)
        if part.get_filename():
            files.append((name, data))
        else:
            fields[name] = data.decode()
    return fields, tuple(files)
