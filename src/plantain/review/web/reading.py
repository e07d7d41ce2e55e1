"""Routes of a served study: entering by link, cases and answers of a reader."""

from __future__ import annotations

import threading
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from plantain.records import InputError
from plantain.review.ratings import Ratings, StudyReader
from plantain.review.study import Study
from plantain.review.web.desk import Desk
from plantain.review.web.pages import as_json, image, rendered

COOKIE = "plantain-review"
MAX_FOCUS_MS = 86_400_000

AGREEMENT = (
    "These images may be seen only by people whom their owner admits. I am one of them; I will not copy them, "
    "pass them on, or try to find out whom they show."
)
"""The agreement that readers confirm by name before they see credentialed images."""

router = APIRouter()


class Desks:
    """A served study with the view of each reader. `secure`: cookies are sent over HTTPS only."""

    def __init__(self, study: Study, ratings: Ratings, secure: bool) -> None:
        self.study, self.ratings, self.secure = study, ratings, secure
        self._desks: dict[str, Desk] = {}
        self._lock = threading.Lock()

    def desk(self, reader: StudyReader) -> Desk:
        with self._lock:
            if reader.code not in self._desks:
                self._desks[reader.code] = Desk(self.study, self.ratings, reader)
            return self._desks[reader.code]

    def visitor(self, request: Request) -> StudyReader | None:
        """Return the reader whose session cookie a request has; None without a valid one."""
        cookie = request.cookies.get(COOKIE, "")
        return self.ratings.session(cookie) if cookie else None


async def _desks(request: Request) -> Desks:
    desks: Desks = request.app.state.desks
    return desks


def _signed_in(request: Request) -> StudyReader:
    desks: Desks = request.app.state.desks
    found = desks.visitor(request)
    if found is None:
        raise HTTPException(401, "sign in by your link")
    if request.method != "GET":
        _refuse_other_sites(request)
    return found


def _refuse_other_sites(request: Request) -> None:
    """Raise HTTPException for a request that a page of another site sent."""
    origin = request.headers.get("origin")
    foreign = origin is not None and origin.split("://", 1)[-1] != request.headers.get("host")
    if foreign or request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPException(403, "from another site")


async def _confirmed(request: Request, one: Annotated[StudyReader, Depends(_signed_in)]) -> StudyReader:
    if request.app.state.desks.study.credentialed and not one.confirmed_name:
        raise HTTPException(403, "confirm the agreement first")
    return one


Here = Annotated[Desks, Depends(_desks)]
SignedIn = Annotated[StudyReader, Depends(_signed_in)]
Reader = Annotated[StudyReader, Depends(_confirmed)]


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object that was sent. Raise HTTPException for anything else."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise HTTPException(415, "application/json")
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, "not JSON") from error
    if not isinstance(body, dict):
        raise HTTPException(400, "an object is needed")
    return body


# --- entering ---------------------------------------------------------------------------------------


@router.get("/")
def home(request: Request, here: Here) -> Response:
    return rendered("reading.html.j2") if here.visitor(request) else RedirectResponse("/enter", 303)


@router.get("/enter")
def enter_page() -> Response:
    return rendered("enter.html.j2")


@router.post("/enter")
async def enter(request: Request, here: Here) -> Response:
    _refuse_other_sites(request)
    token = (await _body(request)).get("token")
    started = here.ratings.begin_session(token) if isinstance(token, str) and 0 < len(token) < 200 else None
    if started is None:
        raise HTTPException(401, "unknown link")
    if before := request.cookies.get(COOKIE):
        here.ratings.end_session(before)
    response = as_json({})
    response.set_cookie(COOKIE, started[1], httponly=True, samesite="strict", secure=here.secure, path="/")
    return response


# --- a reader ---------------------------------------------------------------------------------------


@router.get("/api/me")
def me(here: Here, one: SignedIn) -> Response:
    asked = AGREEMENT if here.study.credentialed and not one.confirmed_name else ""
    blocks = here.desk(one).blocks()
    return as_json({"code": one.code, "study": here.study.name, "agreement": asked, "blocks": blocks})


@router.post("/api/agreement")
async def agree(request: Request, here: Here, one: SignedIn) -> Response:
    name = (await _body(request)).get("name")
    if not isinstance(name, str) or not 3 <= len(name.strip()) <= 200 or not name.strip().isprintable():
        raise InputError("name: your full name")
    here.ratings.confirm(one.code, name.strip())
    return as_json({})


@router.get("/api/case/{block}/{position}")
def case(block: str, position: int, here: Here, one: Reader) -> Response:
    return as_json(here.desk(one).case(block, position))


@router.get("/image/{token}")
def reader_image(token: str, here: Here, one: Reader) -> Response:
    return image(here.desk(one).image(token))


@router.post("/api/answer")
async def answer(request: Request, here: Here, one: Reader) -> Response:
    body = await _body(request)
    item, key, focus = body.get("item"), body.get("key"), body.get("focus_ms")
    if not isinstance(item, str) or not isinstance(key, str) or not 8 <= len(key) <= 64:
        raise InputError("item, key: text")
    if not isinstance(focus, int) or isinstance(focus, bool) or not 0 <= focus <= MAX_FOCUS_MS:
        raise InputError("focus_ms: milliseconds")
    return as_json(await run_in_threadpool(here.desk(one).answer, item, key, body.get("value"), focus))


@router.post("/api/close/{block}")
def close(block: str, here: Here, one: Reader) -> Response:
    here.desk(one).close(block)
    return as_json({})
