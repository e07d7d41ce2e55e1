"""Asks the head of a Ray cluster, without Ray, whether it is one and whether it wants a token.

Ray reads how it authenticates once, when it is imported; a driver that shows a token has its own requests checked, too,
and a cluster without one then loses every worker as it begins. So the head is asked first: one call of gRPC.
"""

from __future__ import annotations

import os
import re
import socket
import struct

METHOD = b"/ray.rpc.NodeInfoGcsService/CheckAlive"
"""Which every head answers, and to a caller without a token says that it wants one."""

OK, UNIMPLEMENTED, UNAUTHENTICATED = 0, 12, 16
"""gRPC's status codes."""

SETTINGS, HEADERS, DATA, END_STREAM, END_HEADERS = 4, 1, 0, 1, 4
"""Frames and flags of HTTP/2 (RFC 9113)."""

_LONGEST = 1 << 16


def wants_token(host: str, port: int, seconds: float) -> bool | None:
    """Whether the head at an address wants a token; None where that is not said (TLS, which wants a certificate).

    Args:
        host, port: where it listens.
        seconds: that it has to answer.

    Raises:
        OSError: nothing answers there, or something else than the head of a Ray cluster.
    """
    with socket.create_connection((host, port), seconds) as connection:
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
            return None
        connection.sendall(_request(f"{host}:{port}".encode()))
        status = _status(connection)
    if status == UNIMPLEMENTED:
        raise ConnectionError("what answers there is no head of a Ray cluster")
    return None if status is None else status == UNAUTHENTICATED


def _request(authority: bytes) -> bytes:
    """The call, with a message of nothing."""
    fields = {
        b":method": b"POST",
        b":scheme": b"http",
        b":path": METHOD,
        b":authority": authority,
        b"te": b"trailers",
        b"content-type": b"application/grpc",
    }
    # Each as a literal that is not indexed, with a new name (RFC 7541, 6.2.2); none is longer than 126 bytes.
    headers = b"".join(b"\0%c%b%c%b" % (len(n), n, len(v), v) for n, v in fields.items())
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(SETTINGS, 0, 0, b"")
    return preface + _frame(HEADERS, END_HEADERS, 1, headers) + _frame(DATA, END_STREAM, 1, bytes(5))


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _status(connection: socket.socket) -> int | None:
    """The call's status; None where a server of HTTP/2 gives none that can be read. Raises OSError for any other."""
    answer = b""
    while len(answer) < _LONGEST and (more := connection.recv(4096)):
        answer += more
        if answer[3:4] not in (b"", bytes([SETTINGS])):  # which such a server sends first
            break
        if found := re.search(rb"grpc-status[\x01\x02]([0-9]{1,2})", answer):
            return int(found[1])
    if answer[3:4] != bytes([SETTINGS]):
        raise ConnectionError("what answers there is no head of a Ray cluster")
    return None
