"""Routes over a run: its tasks by pages, one task, what calls cost, where judges differ; all by GET."""

from dataclasses import asdict, fields
from typing import Annotated, TypeAlias

import orjson
from fastapi import APIRouter, Depends, HTTPException, Request, Response

from plantain.journal.errors import BadBlob
from plantain.journal.questions.browsing import TaskOrder, TaskQuery, count_of, judge_pairs, newest_call
from plantain.journal.questions.telemetry import costs
from plantain.pixels.decode import BadImage
from plantain.records import InputError
from plantain.review.viewer.pages import href, picture, rendered
from plantain.review.viewer.run_view import RunView

LONGEST_SEARCH = 200

router = APIRouter()


async def _view(request: Request) -> RunView:
    view: RunView = request.app.state.view
    return view


async def _query(request: Request) -> TaskQuery:
    asked: dict[str, str | int] = {}
    for field in fields(TaskQuery):
        if value := request.query_params.get(field.name, "").strip():
            if len(value) > LONGEST_SEARCH:
                raise InputError(f"{field.name}: at most {LONGEST_SEARCH} characters")
            asked[field.name] = value
    if "round" in asked:
        if not str(asked["round"]).isdigit() or len(str(asked["round"])) > 6:
            raise InputError("round: a whole number")
        asked["round"] = int(asked["round"])
    return TaskQuery(**asked)  # type: ignore[arg-type]


View: TypeAlias = Annotated[RunView, Depends(_view)]


def _order(request: Request, view: View) -> TaskOrder:
    try:
        asked = TaskOrder(request.query_params.get("order") or TaskOrder.ID)
    except ValueError as error:
        raise InputError(f"order: one of {', '.join(TaskOrder)}") from error
    return asked if newest_call(view.reader) else TaskOrder.ID  # an imported release has no calls


Query: TypeAlias = Annotated[TaskQuery, Depends(_query)]
Order: TypeAlias = Annotated[TaskOrder, Depends(_order)]


@router.get("/")
def tasks(view: View, query: Query, order: Order, after: str = "", before: str = "") -> Response:
    """One page of tasks."""
    found = view.page(query, order, after, before)
    kept = query.given | ({} if order is TaskOrder.ID else {"order": order.value})
    return rendered(
        "tasks.html.j2",
        view=view,
        page=found,
        query=query,
        kept=kept,
        order=order.value,
        standing=view.standing(),
        previous=href("/", kept, before=found.tasks[0].place) if found.before and found.tasks else "",
        next=href("/", kept, after=found.tasks[-1].place) if found.behind and found.tasks else "",
        first=href("/", kept),
    )


@router.get("/task/{task}")
def task(view: View, query: Query, order: Order, task: str, at: str = "") -> Response:
    """One task in full; `at` is its place in the list that it was opened from."""
    found = view.task(task)
    kept = query.given | ({} if order is TaskOrder.ID else {"order": order.value})
    place = at if order is TaskOrder.RECENT else found.row.id
    previous, behind = view.beside(place, query, order) if place else ("", "")
    return rendered(
        "task.html.j2",
        view=view,
        task=found,
        has=view.reader.has_blob,
        kept=kept,
        back=href("/", kept),
        previous=href(f"/task/{previous}", kept) if previous else "",
        next=href(f"/task/{behind}", kept) if behind else "",
    )


@router.get("/judges")
def judges(view: View) -> Response:
    """Every two judges, and on how many attempts they differ."""
    return rendered("judges.html.j2", view=view, pairs=judge_pairs(view.reader))


@router.get("/calls")
def calls(view: View) -> Response:
    """What calls cost and how long they took, by step and model."""
    return rendered("calls.html.j2", view=view, rows=costs(view.reader), standing=view.standing())


@router.get("/api/standing")
def standing(view: View) -> Response:
    return _json(view.standing())


@router.get("/api/mark/{task}")
def mark(view: View, task: str) -> Response:
    return _json({"mark": view.task(task).mark})


@router.get("/api/count")
def count(view: View, query: Query, order: Order) -> Response:
    return _json({"count": count_of(view.reader, query, order)})


@router.get("/api/offered")
def filters(view: View) -> Response:
    return _json(asdict(view.offered()))


@router.get("/picture/{sha256}")
def whole(view: View, sha256: str) -> Response:
    """A picture as it lies in the run."""
    try:
        return picture(view.reader.blobs.read(sha256))
    except BadBlob as error:
        raise HTTPException(404, "no such picture") from error


@router.get("/thumbnail/{what}/{sha256}")
def thumbnail(view: View, what: str, sha256: str) -> Response:
    """A small copy; `what` is "original" or "edited"."""
    blobs = view.reader.blobs
    try:
        return picture(view.thumbnails.of(sha256, lambda: blobs.read(sha256), synthetic=what != "original"))
    except (BadBlob, BadImage) as error:
        raise HTTPException(404, "no such picture") from error


def _json(value: object) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")
