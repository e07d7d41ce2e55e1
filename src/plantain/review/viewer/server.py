"""The viewer's server: GET only, loopback only, nothing from outside, nothing written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException as AnyHTTPException

from plantain.records import InputError
from plantain.review.room.guard import RequestGuard
from plantain.review.serving import LOOPBACK, listen
from plantain.review.viewer import run_routes, study_routes
from plantain.review.viewer.pages import read_templates, rendered, static_file
from plantain.review.viewer.run_view import RunView
from plantain.review.viewer.study_view import StudyView

NAMES = frozenset({LOOPBACK, "localhost"})
"""Hosts that are answered: a page of another site cannot reach the viewer under a name of its own."""

MOST_BYTES = 4096
"""Of a request's body; no route wants one."""


def create_viewer(view: RunView | StudyView) -> FastAPI:
    """The application over a run or a study."""
    read_templates()
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.view = view
    app.add_middleware(RequestGuard, hosts=NAMES, most=MOST_BYTES, forms=True)
    app.add_exception_handler(InputError, _bad_input)
    app.add_exception_handler(AnyHTTPException, _refused)
    app.add_exception_handler(sqlite3.Error, _unreadable)
    app.add_api_route("/static/{name}", static_file, methods=["GET"])
    app.include_router(run_routes.router if isinstance(view, RunView) else study_routes.router)
    return app


def view_until_stopped(view: RunView | StudyView, port: int, announce: Callable[[str], None]) -> None:
    """Serves on 127.0.0.1 until it is interrupted. `announce` is called with the address once the port is held."""
    import uvicorn

    held = listen(LOOPBACK, port)
    config = uvicorn.Config(
        create_viewer(view), log_level="warning", access_log=False, server_header=False, lifespan="off"
    )
    announce(f"http://{LOOPBACK}:{held.getsockname()[1]}/")
    uvicorn.Server(config).run(sockets=[held])


async def _bad_input(request: Request, error: Exception) -> Response:
    return rendered("wrong.html.j2", 404, message=str(error))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, AnyHTTPException)
    return rendered("wrong.html.j2", error.status_code, message=str(error.detail))


async def _unreadable(request: Request, error: Exception) -> Response:
    return rendered("wrong.html.j2", 503, message=f"the journal cannot be read: {error}")
