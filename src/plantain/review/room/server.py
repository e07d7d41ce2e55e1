"""The room's server: sessions, cases, pictures and answers over loopback; it trusts no browser."""

from __future__ import annotations

import sqlite3

from fastapi import FastAPI, Request, Response

from plantain.records import InputError
from plantain.review.answers import MOST_BYTES
from plantain.review.ratings import Ratings
from plantain.review.room import administration, entrance, reading
from plantain.review.room.desk import NotYours
from plantain.review.room.guard import RequestGuard
from plantain.review.room.replies import as_json
from plantain.review.room.visitors import Room
from plantain.review.study import Study


def create_app(
    study: Study, ratings: Ratings, *, hosts: frozenset[str] = frozenset(), secure: bool = False
) -> FastAPI:
    """The application.

    Args:
        hosts: names in the Host header that are answered; empty: all.
        secure: behind TLS: cookies travel by HTTPS only.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.room = Room(study, ratings, secure)
    app.add_middleware(RequestGuard, hosts=hosts, most=MOST_BYTES)
    app.add_exception_handler(NotYours, _not_yours)
    app.add_exception_handler(InputError, _bad_input)
    app.add_exception_handler(sqlite3.Error, _not_saved)
    for part in (entrance, reading, administration):
        app.include_router(part.router)
    return app


async def _not_yours(request: Request, error: Exception) -> Response:
    return as_json({"detail": "no such thing"}, 404)


async def _bad_input(request: Request, error: Exception) -> Response:
    return as_json({"detail": str(error)}, 422)


async def _not_saved(request: Request, error: Exception) -> Response:
    return as_json({"detail": f"not saved: {_why(error)}; please tell the administrator"}, 507)


def _why(error: Exception) -> str:
    text = str(error)
    return "the disk is full" if "full" in text or "disk I/O" in text else text
