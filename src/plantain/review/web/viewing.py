"""Routes of the viewer, all by GET: over a run (its tasks) and over a study (cases with every answer)."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from plantain.journal.questions.browsing import TaskQuery
from plantain.records import InputError
from plantain.review.study import ORIGINAL
from plantain.review.web.pages import href, image, rendered
from plantain.review.web.run_view import RunView
from plantain.review.web.run_view import thumbnail as make_thumbnail
from plantain.review.web.study_view import PAGE, StudyView

MAX_SEARCH = 200

run_router, study_router, router = APIRouter(), APIRouter(), APIRouter()


async def _view(request: Request) -> Any:
    return request.app.state.view


async def _task_query(state: str = "", text: str = "") -> TaskQuery:
    if len(text) > MAX_SEARCH:
        raise InputError(f"text: at most {MAX_SEARCH} characters")
    return TaskQuery(state.strip(), text.strip())


View = Annotated[RunView | StudyView, Depends(_view)]
Run = Annotated[RunView, Depends(_view)]
Study = Annotated[StudyView, Depends(_view)]
Tasks = Annotated[TaskQuery, Depends(_task_query)]


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


# --- both --------------------------------------------------------------------------------------------


@router.get("/image/{name}")
def whole_image(view: View, name: str) -> Response:
    return image(view.read(name))


@router.get("/thumbnail/{what}/{name}")
def thumbnail(view: View, what: str, name: str) -> Response:
    """Return the thumbnail of an image; `what` is "original" or "edited"."""
    return image(make_thumbnail(view.read(name), synthetic=what != "original"))


# --- a study ----------------------------------------------------------------------------------------


@study_router.get("/")
def cases(view: Study, page: int = 1) -> Response:
    found = view.study.cases
    page, rows = max(1, min(page, -(-len(found) // PAGE) or 1)), view.rows()
    return rendered(
        "study.html.j2",
        view=view,
        found=[(case, rows.get(case.id, [])) for case in found[(page - 1) * PAGE : page * PAGE]],
        total=len(found),
        readers=len({row.reader for own in rows.values() for row in own}),
        original=ORIGINAL,
        previous=href("/", page=page - 1) if page > 1 else "",
        next=href("/", page=page + 1) if page * PAGE < len(found) else "",
    )


@study_router.get("/case/{name}")
def case(view: Study, name: str) -> Response:
    case, rows = view.case(name)
    names = [one.id for one in view.study.cases]
    at = names.index(name)
    return rendered(
        "case.html.j2",
        view=view,
        case=case,
        answers=rows,
        original=ORIGINAL,
        previous=f"/case/{names[at - 1]}" if at > 0 else "",
        next=f"/case/{names[at + 1]}" if at < len(names) - 1 else "",
    )
