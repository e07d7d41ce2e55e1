"""Routes of the viewer, all by GET: over a run (its tasks) and over a study (cases with every answer)."""

from dataclasses import asdict, fields
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from plantain.journal.questions.browsing import TaskOrder, TaskQuery, count_of, newest_call
from plantain.records import InputError
from plantain.review.study import ORIGINAL
from plantain.review.web.pages import as_json, href, image, rendered
from plantain.review.web.run_view import RunView
from plantain.review.web.study_view import PAGE, CaseQuery, StudyView

MAX_SEARCH = 200

run_router, study_router, router = APIRouter(), APIRouter(), APIRouter()


async def _view(request: Request) -> Any:
    return request.app.state.view


def _given(request: Request, query: type[TaskQuery | CaseQuery]) -> dict[str, str]:
    """Return the fields of a query that a request states."""
    given = {field.name: request.query_params.get(field.name, "").strip() for field in fields(query)}
    for name, value in given.items():
        if len(value) > MAX_SEARCH:
            raise InputError(f"{name}: at most {MAX_SEARCH} characters")
    return {name: value for name, value in given.items() if value}


async def _task_query(request: Request) -> TaskQuery:
    given = _given(request, TaskQuery)
    number = given.pop("round", "0")
    if not number.isdecimal() or len(number) > 6:
        raise InputError("round: a whole number")
    return TaskQuery(**given, round=int(number))


async def _case_query(request: Request) -> CaseQuery:
    return CaseQuery(**_given(request, CaseQuery))


View = Annotated[RunView | StudyView, Depends(_view)]
Run = Annotated[RunView, Depends(_view)]
Study = Annotated[StudyView, Depends(_view)]
Tasks = Annotated[TaskQuery, Depends(_task_query)]
Cases = Annotated[CaseQuery, Depends(_case_query)]


def _order(request: Request, view: Run) -> TaskOrder:
    try:
        asked = TaskOrder(request.query_params.get("order") or TaskOrder.ID)
    except ValueError as error:
        raise InputError(f"order: one of {', '.join(TaskOrder)}") from error
    return asked if newest_call(view.reader) else TaskOrder.ID  # an imported release has no calls


Order = Annotated[TaskOrder, Depends(_order)]

# --- a run ------------------------------------------------------------------------------------------


@run_router.get("/")
def tasks(view: Run, query: Tasks, order: Order, after: str = "", before: str = "") -> Response:
    found = view.page(query, order, after, before)
    kept = query.given | ({} if order is TaskOrder.ID else {"order": order.value})
    return rendered(
        "run.html.j2",
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


@run_router.get("/task/{task}")
def task(view: Run, query: Tasks, order: Order, task: str, at: str = "") -> Response:
    """Return the page of one task; `at` is its place in the list from which it was opened."""
    found = view.task(task)
    kept = query.given | ({} if order is TaskOrder.ID else {"order": order.value})
    place = at if order is TaskOrder.RECENT else found.row.id
    previous, behind = view.neighbours(place, query, order) if place else ("", "")
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


@run_router.get("/api/count")
def count(view: Run, query: Tasks, order: Order) -> Response:
    return as_json({"count": count_of(view.reader, query, order)})


@run_router.get("/api/offered")
def filters(view: Run) -> Response:
    return as_json(asdict(view.offered()))


# --- both --------------------------------------------------------------------------------------------


@router.get("/api/standing")
def standing(view: View) -> Response:
    return as_json(view.standing())


@router.get("/api/mark/{name}")
def mark(view: View, name: str) -> Response:
    return as_json({"mark": view.mark(name)})


@router.get("/image/{name}")
def whole_image(view: View, name: str) -> Response:
    return image(view.read(name))


@router.get("/thumbnail/{what}/{name}")
def thumbnail(view: View, what: str, name: str) -> Response:
    """Return the thumbnail of an image; `what` is "original" or "edited"."""
    return image(view.thumbnails.of(name, lambda: view.read(name), synthetic=what != "original"))


# --- a study ----------------------------------------------------------------------------------------


@study_router.get("/")
def cases(view: Study, query: Cases, page: int = 1) -> Response:
    found = view.cases(query)
    page = max(1, min(page, -(-len(found) // PAGE) or 1))
    return rendered(
        "study.html.j2",
        view=view,
        query=query,
        kept=query.given,
        found=found[(page - 1) * PAGE : page * PAGE],
        total=len(found),
        readers=sorted({row.reader for rows in view.rows().values() for row in rows}),
        last=view.ratings.last(),
        original=ORIGINAL,
        previous=href("/", query.given, page=page - 1) if page > 1 else "",
        next=href("/", query.given, page=page + 1) if page * PAGE < len(found) else "",
        first=href("/", query.given),
    )


@study_router.get("/case/{name}")
def case(view: Study, query: Cases, name: str) -> Response:
    found = view.case(name)
    names = [one.case.id for one in view.cases(query)]
    at = names.index(name) if name in names else -1
    return rendered(
        "case.html.j2",
        view=view,
        found=found,
        kept=query.given,
        original=ORIGINAL,
        back=href("/", query.given),
        previous=href(f"/case/{names[at - 1]}", query.given) if at > 0 else "",
        next=href(f"/case/{names[at + 1]}", query.given) if 0 <= at < len(names) - 1 else "",
    )


@study_router.get("/region/{item}/{reader}")
def region(view: Study, item: str, reader: str) -> Response:
    return image(view.region(item, reader))
