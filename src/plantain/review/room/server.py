"""The room's server: sessions, cases, pictures and answers over loopback; it trusts no browser.

Annotations are evaluated here: FastAPI looks its dependencies up in them, and they are local to `create_app`.
"""

import sqlite3
import threading
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import orjson
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plantain.files.opening import read_inside
from plantain.records import InputError
from plantain.review.answers import MOST_BYTES
from plantain.review.ratings import ADMINISTRATOR, READER, Ratings, StudyReader
from plantain.review.results.export import export_archive
from plantain.review.room.desk import Desk, NotYours
from plantain.review.room.progress import study_progress
from plantain.review.study import PICTURES, Study

COOKIE = "plantain-review"
STATIC = {"room.js": "text/javascript", "pictures.js": "text/javascript", "questions.js": "text/javascript",
          "region.js": "text/javascript", "enter.js": "text/javascript", "admin.js": "text/javascript",
          "room.css": "text/css", "favicon.svg": "image/svg+xml"}  # fmt: skip
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
LONGEST_DAY_MS = 86_400_000

AGREEMENT = (
    "These pictures may be seen only by people whom their owner admits. I am one of them; I will not copy them, "
    "pass them on, or try to find out whom they show."
)


class RequestGuard:
    """Around everything: headers of safety, hosts that this server is known by, bodies of a sane size."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self.app, self.hosts = app, hosts

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
            if read > MOST_BYTES:
                raise TooLarge
            return message

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [(k, v) for k, v in message["headers"] if k.lower() != b"server"]
                told = {k.lower() for k, _ in kept}
                kept += [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                if b"cache-control" not in told:
                    kept.append((b"cache-control", b"no-store"))
                message["headers"] = kept
            await send(message)

        if self.hosts and name not in self.hosts:
            await Response("unknown host", 421)(scope, receive, with_headers)
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MOST_BYTES:
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


class Room:
    """A study being served: its pages, its desks and who sits at them."""

    def __init__(self, study: Study, ratings: Ratings) -> None:
        self.study, self.ratings = study, ratings
        self._desks: dict[str, Desk] = {}
        self._making = threading.Lock()

    def desk(self, reader: StudyReader) -> Desk:
        """The reader's desk, made when they first sit down."""
        with self._making:
            if reader.code not in self._desks:
                self._desks[reader.code] = Desk(self.study, self.ratings, reader)
            return self._desks[reader.code]

    def who(self, request: Request) -> tuple[StudyReader, str] | None:
        cookie = request.cookies.get(COOKIE, "")
        return self.ratings.session(cookie) if cookie else None

    @property
    def agreement(self) -> str:
        """What readers must confirm by name before they see a picture; "" for nothing."""
        return self.study.agreement or (AGREEMENT if self.study.credentialed else "")


def create_app(
    study: Study, ratings: Ratings, *, hosts: frozenset[str] = frozenset(), secure: bool = False
) -> FastAPI:
    """The application.

    Args:
        hosts: names in the Host header that are answered; empty: all.
        secure: behind TLS: cookies travel by HTTPS only.
    """
    room = Room(study, ratings)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(RequestGuard, hosts=hosts)

    def signed_in(request: Request) -> tuple[StudyReader, str]:
        found = room.who(request)
        if found is None:
            raise HTTPException(401, "sign in by your link")
        if request.method != "GET":
            _refuse_foreign_origin(request)
            if request.headers.get("x-csrf-token", "") != found[1]:
                raise HTTPException(403, "reload the page")
        return found

    def reader(found: Annotated[tuple[StudyReader, str], Depends(signed_in)]) -> StudyReader:
        if found[0].role != READER:
            raise HTTPException(403, "for readers")
        return found[0]

    def confirmed(one: Annotated[StudyReader, Depends(reader)]) -> StudyReader:
        if room.agreement and not one.confirmed_name:
            raise HTTPException(403, "confirm the agreement first")
        return one

    def administrator(found: Annotated[tuple[StudyReader, str], Depends(signed_in)]) -> StudyReader:
        if found[0].role != ADMINISTRATOR:
            raise HTTPException(403, "for the administrator")
        return found[0]

    @app.exception_handler(NotYours)
    async def not_yours(request: Request, error: NotYours) -> Response:
        return _json({"detail": "no such thing"}, 404)

    @app.exception_handler(InputError)
    async def bad_input(request: Request, error: InputError) -> Response:
        return _json({"detail": str(error)}, 422)

    @app.exception_handler(sqlite3.Error)
    async def disk(request: Request, error: sqlite3.Error) -> Response:
        return _json({"detail": f"not saved: {_why(error)}; please tell the administrator"}, 507)

    # --- pages --------------------------------------------------------------------------------------

    @app.get("/")
    def home(request: Request) -> Response:
        found = room.who(request)
        if found is None:
            return RedirectResponse("/enter", 303)
        return RedirectResponse("/admin", 303) if found[0].role == ADMINISTRATOR else _page("room.html")

    @app.get("/enter")
    def enter_page() -> Response:
        return _page("enter.html")

    @app.post("/enter")
    async def enter(request: Request) -> Response:
        _refuse_foreign_origin(request)
        token = (await _body(request)).get("token")
        begun = ratings.begin_session(token) if isinstance(token, str) and 0 < len(token) < 200 else None
        if begun is None:
            raise HTTPException(401, "this link is not known here")
        if before := request.cookies.get(COOKIE):
            ratings.end_session(before)
        response = _json({"role": begun[0].role})
        response.set_cookie(COOKIE, begun[1], httponly=True, samesite="strict", secure=secure, path="/")
        return response

    @app.post("/leave")
    def leave(request: Request, found: Annotated[tuple[StudyReader, str], Depends(signed_in)]) -> Response:
        ratings.end_session(request.cookies.get(COOKIE, ""))
        response = _json({})
        response.delete_cookie(COOKIE)
        return response

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in STATIC:
            raise HTTPException(404)
        return Response(
            _resource("static", name), media_type=STATIC[name], headers={"Cache-Control": "no-cache"}
        )

    # --- a reader -----------------------------------------------------------------------------------

    @app.get("/api/me")
    def me(found: Annotated[tuple[StudyReader, str], Depends(signed_in)]) -> Response:
        one, csrf = found
        said: dict[str, Any] = {"code": one.code, "role": one.role, "csrf": csrf, "study": study.name}
        if one.role == READER:
            said |= {
                "agreement": "" if one.confirmed_name else room.agreement,
                "display": bool(one.display),
                "blocks": room.desk(one).blocks(),
            }
        return _json(said)

    @app.post("/api/agreement")
    async def agree(request: Request, one: Annotated[StudyReader, Depends(reader)]) -> Response:
        name = (await _body(request)).get("name")
        if not isinstance(name, str) or not 3 <= len(name.strip()) <= 200:
            raise InputError("name: your full name")
        ratings.confirm(one.code, name.strip())
        return _json({})

    @app.post("/api/display")
    async def display(request: Request, one: Annotated[StudyReader, Depends(reader)]) -> Response:
        said = await _body(request)
        kept = {key: said.get(key) for key in ("dark", "light", "width", "height", "ratio")}
        if not all(value is None or (isinstance(value, (bool, int, float))) for value in kept.values()):
            raise InputError("display: numbers and yes or no")
        ratings.set_display(one.code, orjson.dumps(kept).decode())
        return _json({})

    @app.get("/api/case/{block}/{position}")
    def case(block: str, position: int, one: Annotated[StudyReader, Depends(confirmed)]) -> Response:
        return _json(room.desk(one).case(block, position))

    @app.get("/picture/{token}")
    def picture(token: str, one: Annotated[StudyReader, Depends(confirmed)]) -> Response:
        path = study.folder / PICTURES / room.desk(one).picture(token)
        return Response(
            read_inside(study.folder, path),
            media_type="image/png",
            headers={"Cache-Control": "private, max-age=86400, immutable"},
        )

    @app.post("/api/answer")
    async def answer(request: Request, one: Annotated[StudyReader, Depends(confirmed)]) -> Response:
        said = await _body(request)
        item, key, focus = said.get("item"), said.get("key"), said.get("focus_ms")
        if not isinstance(item, str) or not isinstance(key, str) or not 8 <= len(key) <= 64:
            raise InputError("item, key: text")
        if not isinstance(focus, int) or isinstance(focus, bool) or not 0 <= focus <= LONGEST_DAY_MS:
            raise InputError("focus_ms: milliseconds")
        desk = room.desk(one)
        from starlette.concurrency import run_in_threadpool

        return _json(await run_in_threadpool(desk.answer, item, key, said.get("value"), focus))

    @app.post("/api/close/{block}")
    def close(block: str, one: Annotated[StudyReader, Depends(confirmed)]) -> Response:
        room.desk(one).close(block)
        return _json({})

    @app.post("/api/train-again/{block}")
    def train_again(block: str, one: Annotated[StudyReader, Depends(confirmed)]) -> Response:
        room.desk(one).train_again(block)
        return _json({})

    # --- the administrator --------------------------------------------------------------------------

    @app.get("/admin")
    def admin(request: Request) -> Response:
        found = room.who(request)
        if found is None or found[0].role != ADMINISTRATOR:
            return RedirectResponse("/" if found else "/enter", 303)
        return _page("admin.html")

    @app.get("/api/admin")
    def progress(one: Annotated[StudyReader, Depends(administrator)], agreement: bool = False) -> Response:
        return _json(study_progress(study, ratings, agreement=agreement))

    @app.get("/api/admin/export")
    def download(one: Annotated[StudyReader, Depends(administrator)]) -> Response:
        return Response(
            export_archive(study, ratings),
            media_type="application/zip",
            headers={"Content-Disposition": 'attachment; filename="study.zip"'},
        )

    return app


def _refuse_foreign_origin(request: Request) -> None:
    """A page of another site cannot write here, whatever cookies its visitor has."""
    origin = request.headers.get("origin")
    if origin is not None and origin.split("://", 1)[-1] != request.headers.get("host"):
        raise HTTPException(403, "from another site")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPException(403, "from another site")


async def _body(request: Request) -> dict[str, Any]:
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise HTTPException(415, "application/json")
    try:
        said = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, "not JSON") from error
    if not isinstance(said, dict):
        raise HTTPException(400, "an object is needed")
    return said


def _json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


def _page(name: str) -> HTMLResponse:
    return HTMLResponse(_resource("templates", name))


def _resource(folder: str, name: str) -> bytes:
    return Path(str(resources.files("plantain.review.room"))).joinpath(folder, name).read_bytes()


def _why(error: sqlite3.Error) -> str:
    text = str(error)
    return "the disk is full" if "full" in text or "disk I/O" in text else text
