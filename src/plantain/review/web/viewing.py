"""Routes of the viewer, all by GET: over a run (its tasks) and over a study (cases with every answer)."""

from dataclasses import asdict, fields
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from plantain.journal.questions.browsing import TaskQuery, count_of
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
    return TaskQuery(**_given(request, TaskQuery))


async def _case_query(request: Request) -> CaseQuery:
    return CaseQuery(**_given(request, CaseQuery))


View = Annotated[RunView | StudyView, Depends(_view)]
Run = Annotated[RunView, Depends(_view)]
Study = Annotated[StudyView, Depends(_view)]
Tasks = Annotated[TaskQuery, Depends(_task_query)]
Cases = Annotated[CaseQuery, Depends(_case_query)]


# --- a run ------------------------------------------------------------------------------------------


@run_router.get("/")
def tasks(view: Run, query: Tasks, after: str = "", before: str = "") -> Response:
    found, kept = view.page(query, after, before), query.given
    return rendered(
        "run.html.j2",
        view=view,
        page=found,
        query=query,
        kept=kept,
        counters=view.counters(),
        previous=href("/", kept, before=found.tasks[0].id) if found.before and found.tasks else "",
        next=href("/", kept, after=found.tasks[-1].id) if found.behind and found.tasks else "",
        first=href("/", kept),
    )


@run_router.get("/task/{task}")
def task(view: Run, query: Tasks, task: str) -> Response:
    """Return the page of one task."""
    found, kept = view.task(task), query.given
    previous, behind = view.neighbours(found.row.id, query)
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
def count(view: Run, query: Tasks) -> Response:
    return as_json({"count": count_of(view.reader, query)})


@run_router.get("/api/offered")
def filters(view: Run) -> Response:
    return as_json(asdict(view.offered()))


# --- both --------------------------------------------------------------------------------------------


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
