"""Two applications with one set of pages: a study for its readers, and a read-only viewer of a run or a study."""

from __future__ import annotations

import sqlite3

import orjson
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plantain.records import InputError
from plantain.review.answers import MAX_BYTES
from plantain.review.ratings import Ratings
from plantain.review.study import Study
from plantain.review.web import reading, viewing
from plantain.review.web.desk import NotAvailable
from plantain.review.web.pages import as_json, read_templates, rendered, static_file
from plantain.review.web.run_view import RunView
from plantain.review.web.study_view import StudyView

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
VIEWER_HOSTS = frozenset({"127.0.0.1", "localhost"})
VIEWER_BYTES = 4096
"""Bytes of a request's body that the viewer accepts; no route reads one."""


def create_app(
    study: Study, ratings: Ratings, *, hosts: frozenset[str] = frozenset(), secure: bool = False
) -> FastAPI:
    """Make the web application in which readers answer a study.

    Args:
        hosts: names accepted in the Host header; empty: all.
        secure: True if the server is behind TLS: cookies are sent over HTTPS only.
    """
    app = _application(hosts, MAX_BYTES)
    app.state.desks = reading.Desks(study, ratings, secure)
    app.add_exception_handler(NotAvailable, _not_available)
    app.add_exception_handler(InputError, _bad_answer)
    app.add_exception_handler(sqlite3.Error, _not_saved)
    app.include_router(reading.router)
    return app


def create_viewer(view: RunView | StudyView) -> FastAPI:
    """Make the read-only web application that shows a run or a study; it only answers requests from this machine."""
    app = _application(VIEWER_HOSTS, VIEWER_BYTES)
    app.state.view = view
    app.add_exception_handler(InputError, _bad_query)
    app.add_exception_handler(AnyHTTPException, _refused)
    app.add_exception_handler(sqlite3.Error, _unreadable)
    app.include_router(viewing.run_router if isinstance(view, RunView) else viewing.study_router)
    app.include_router(viewing.router)
    return app


def _application(hosts: frozenset[str], most: int) -> FastAPI:
    read_templates()
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(RequestGuard, hosts=hosts, most=most)
    app.add_api_route("/static/{name}", static_file, methods=["GET"])
    return app


async def _not_available(request: Request, error: Exception) -> Response:
    return as_json({"detail": "not found"}, 404)


async def _bad_answer(request: Request, error: Exception) -> Response:
    return as_json({"detail": str(error)}, 422)


async def _not_saved(request: Request, error: Exception) -> Response:
    text = str(error)
    why = "the disk is full" if "full" in text or "disk I/O" in text else text
    return as_json({"detail": f"not saved: {why}; please inform the owner of the study"}, 507)


async def _bad_query(request: Request, error: Exception) -> Response:
    return rendered("error.html.j2", 404, message=str(error))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, AnyHTTPException)
    return rendered("error.html.j2", error.status_code, message=str(error.detail))


async def _unreadable(request: Request, error: Exception) -> Response:
    return rendered("error.html.j2", 503, message=f"the database cannot be read: {error}")


class RequestGuard:
    """Middleware that adds security headers, and rejects unknown host names and large requests."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], most: int) -> None:
        self.app, self.hosts, self.most = app, hosts, most

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
                raise _TooLarge
            return message

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [(k, v) for k, v in message["headers"] if k.lower() != b"server"]
                kept += [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                if not any(k.lower() == b"cache-control" for k, _ in kept):
                    kept.append((b"cache-control", b"no-store"))
                message["headers"] = kept
            await send(message)

        too_large = Response(orjson.dumps({"detail": "too large"}), 413, media_type="application/json")
        if self.hosts and name not in self.hosts:
            await Response("unknown host", 421)(scope, receive, with_headers)
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.most:
            await too_large(scope, receive, with_headers)
            return
        try:
            await self.app(scope, limited, with_headers)
        except _TooLarge:
            await too_large(scope, receive, with_headers)


class _TooLarge(Exception):
    """A body without a declared length exceeded the limit."""
