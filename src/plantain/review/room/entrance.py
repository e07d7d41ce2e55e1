"""Coming in and going out: the pages, the sign-in by link, and the files that pages are made of."""

from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from plantain.review.ratings import ADMINISTRATOR, READER
from plantain.review.room.replies import as_json, body_of, page, refuse_foreign_origin, static_file
from plantain.review.room.visitors import COOKIE, Here, SignedIn

router = APIRouter()


@router.get("/")
def home(request: Request, room: Here) -> Response:
    found = room.who(request)
    if found is None:
        return RedirectResponse("/enter", 303)
    return RedirectResponse("/admin", 303) if found[0].role == ADMINISTRATOR else page("room.html")


@router.get("/enter")
def enter_page() -> Response:
    return page("enter.html")


@router.post("/enter")
async def enter(request: Request, room: Here) -> Response:
    refuse_foreign_origin(request)
    token = (await body_of(request)).get("token")
    begun = room.ratings.begin_session(token) if isinstance(token, str) and 0 < len(token) < 200 else None
    if begun is None:
        raise HTTPException(401, "this link is not known here")
    if before := request.cookies.get(COOKIE):
        room.ratings.end_session(before)
    response = as_json({"role": begun[0].role})
    response.set_cookie(COOKIE, begun[1], httponly=True, samesite="strict", secure=room.secure, path="/")
    return response


@router.post("/leave")
def leave(request: Request, room: Here, found: SignedIn) -> Response:
    room.ratings.end_session(request.cookies.get(COOKIE, ""))
    response = as_json({})
    response.delete_cookie(COOKIE)
    return response


@router.get("/static/{name}")
def static(name: str) -> Response:
    return static_file(name)


@router.get("/admin")
def admin(request: Request, room: Here) -> Response:
    found = room.who(request)
    if found is None or found[0].role != ADMINISTRATOR:
        return RedirectResponse("/" if found else "/enter", 303)
    return page("admin.html")


@router.get("/api/me")
def me(room: Here, found: SignedIn) -> Response:
    one, csrf = found
    reply: dict[str, Any] = {"code": one.code, "role": one.role, "csrf": csrf, "study": room.study.name}
    if one.role == READER:
        reply |= {
            "agreement": "" if one.confirmed_name else room.agreement,
            "display": bool(one.display),
            "changes": room.study.changes,
            "blocks": room.desk(one).blocks(),
        }
    return as_json(reply)
