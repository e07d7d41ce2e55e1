"""Around every request of a served page: headers of safety, known host names, bodies of a sane size."""

from __future__ import annotations

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class RequestGuard:
    """Around everything: headers of safety, hosts that this server is known by, bodies of a sane size.

    Args:
        forms: pages have forms that are sent to this server without a script; else none is sent anywhere.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], most: int, *, forms: bool = False) -> None:
        self.app, self.hosts, self.most = app, hosts, most
        policy = POLICY.replace("form-action 'none'", "form-action 'self'") if forms else POLICY
        self.headers = {**HEADERS, "Content-Security-Policy": policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        host = headers.get(b"host", b"").decode("latin-1")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        read = 0

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self.most:
                raise TooLarge
            return message

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [(k, v) for k, v in message["headers"] if k.lower() != b"server"]
                names = {k.lower() for k, _ in kept}
                kept += [(k.lower().encode(), v.encode()) for k, v in self.headers.items()]
                if b"cache-control" not in names:
                    kept.append((b"cache-control", b"no-store"))
                message["headers"] = kept
            await send(message)

        if self.hosts and name not in self.hosts:
            await Response("unknown host", 421)(scope, receive, with_headers)
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.most:
            await Response(orjson.dumps({"detail": "too large"}), 413, media_type="application/json")(
                scope, receive, with_headers
            )
            return
        try:
            await self.app(scope, limited, with_headers)
        except TooLarge:
            await Response(orjson.dumps({"detail": "too large"}), 413)(scope, receive, with_headers)


class TooLarge(Exception):
    """A body without a length that went on and on."""
