"""Requests that never arrive whole: the connection is closed, and others are served meanwhile."""

from __future__ import annotations

import socket
import threading

import pytest
from fastapi import FastAPI

from plantain.review import serving


def test_a_half_sent_request_does_not_keep_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 9112, 9.5: a server may close a connection that is idle in the middle of a request at any time."""
    monkeypatch.setattr(serving, "REQUEST_S", 0.5)
    app = FastAPI()

    @app.post("/")
    async def whole(body: dict[str, int]) -> dict[str, int]:
        return body

    opened = serving.listen("127.0.0.1", 0)
    threading.Thread(target=serving._run, args=(app, opened), daemon=True).start()
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 8\r\n"

    def answer(sent: bytes) -> bytes:
        with socket.create_connection(opened.getsockname(), timeout=60) as connection:
            connection.sendall(sent)
            try:
                return connection.recv(4096)
            except ConnectionResetError:
                return b""

    assert answer(b"") == b""
    assert answer(head) == b""
    assert answer(head + b'\r\n{"a"') == b""
    assert answer(head + b'\r\n{"a": 1}').startswith(b"HTTP/1.1 200")
