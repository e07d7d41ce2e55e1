"""What a reader reaches: the agreement, the display's test, cases, pictures and answers; nothing of anybody else."""

import orjson
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from plantain.files.opening import read_inside
from plantain.records import InputError
from plantain.review.room.replies import as_json, body_of
from plantain.review.room.visitors import AnyReader, ConfirmedReader, Here
from plantain.review.study import PICTURES

LONGEST_DAY_MS = 86_400_000

router = APIRouter()


@router.post("/api/agreement")
async def agree(request: Request, room: Here, one: AnyReader) -> Response:
    name = (await body_of(request)).get("name")
    if not isinstance(name, str) or not 3 <= len(name.strip()) <= 200 or not name.strip().isprintable():
        raise InputError("name: your full name")
    room.ratings.confirm(one.code, name.strip())
    return as_json({})


@router.post("/api/display")
async def display(request: Request, room: Here, one: AnyReader) -> Response:
    body = await body_of(request)
    kept = {key: body.get(key) for key in ("dark", "light", "width", "height", "ratio")}
    seen, screen = (kept["dark"], kept["light"]), (kept["width"], kept["height"], kept["ratio"])
    if not all(isinstance(one, bool) for one in seen):
        raise InputError("dark, light: whether the smaller square was seen, yes or no")
    if not all(one is None or isinstance(one, (int, float)) for one in screen):
        raise InputError("width, height, ratio: numbers")
    room.ratings.set_display(one.code, orjson.dumps(kept).decode())
    return as_json({})


@router.get("/api/case/{block}/{position}")
def case(block: str, position: int, room: Here, one: ConfirmedReader) -> Response:
    return as_json(room.desk(one).case(block, position))


@router.get("/picture/{token}")
def picture(token: str, room: Here, one: ConfirmedReader) -> Response:
    path = room.study.folder / PICTURES / room.desk(one).picture(token)
    return Response(
        read_inside(room.study.folder, path),
        media_type="image/png",
        headers={"Cache-Control": "private, max-age=86400, immutable"},
    )


@router.post("/api/answer")
async def answer(request: Request, room: Here, one: ConfirmedReader) -> Response:
    body = await body_of(request)
    item, key, focus = body.get("item"), body.get("key"), body.get("focus_ms")
    if not isinstance(item, str) or not isinstance(key, str) or not 8 <= len(key) <= 64:
        raise InputError("item, key: text")
    if not isinstance(focus, int) or isinstance(focus, bool) or not 0 <= focus <= LONGEST_DAY_MS:
        raise InputError("focus_ms: milliseconds")
    desk = room.desk(one)
    return as_json(await run_in_threadpool(desk.answer, item, key, body.get("value"), focus))


@router.post("/api/close/{block}")
def close(block: str, room: Here, one: ConfirmedReader) -> Response:
    room.desk(one).close(block)
    return as_json({})


@router.post("/api/train-again/{block}")
def train_again(block: str, room: Here, one: ConfirmedReader) -> Response:
    room.desk(one).train_again(block)
    return as_json({})
