"""Routes over a study: its cases by pages, and one case with every answer; all by GET."""

from dataclasses import fields
from typing import Annotated, TypeAlias

import orjson
from fastapi import APIRouter, Depends, Request, Response

from plantain.records import InputError
from plantain.review.study import ORIGINAL
from plantain.review.viewer.pages import href, picture, rendered
from plantain.review.viewer.study_view import PAGE, CaseQuery, StudyView

LONGEST_SEARCH = 200

router = APIRouter()


async def _view(request: Request) -> StudyView:
    view: StudyView = request.app.state.view
    return view


async def _query(request: Request) -> CaseQuery:
    asked = {}
    for field in fields(CaseQuery):
        value = request.query_params.get(field.name, "").strip()
        if len(value) > LONGEST_SEARCH:
            raise InputError(f"{field.name}: at most {LONGEST_SEARCH} characters")
        asked[field.name] = value
    return CaseQuery(**asked)


View: TypeAlias = Annotated[StudyView, Depends(_view)]
Query: TypeAlias = Annotated[CaseQuery, Depends(_query)]


@router.get("/")
def cases(view: View, query: Query, page: int = 1) -> Response:
    """One page of cases."""
    found = view.cases(query)
    page = max(1, min(page, -(-len(found) // PAGE) or 1))
    return rendered(
        "cases.html.j2",
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


@router.get("/case/{name}")
def case(view: View, query: Query, name: str) -> Response:
    """One case with every answer."""
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


@router.get("/api/standing")
def standing(view: View) -> Response:
    return Response(orjson.dumps({"newest": view.ratings.last()}), media_type="application/json")


@router.get("/api/mark/{name}")
def mark(view: View, name: str) -> Response:
    return Response(orjson.dumps({"mark": str(view.ratings.last())}), media_type="application/json")


@router.get("/picture/{file}")
def whole(view: View, file: str) -> Response:
    """A picture of the study."""
    return picture(view.read(file))


@router.get("/region/{item}/{reader}")
def region(view: View, item: str, reader: str) -> Response:
    """What one reader drew."""
    return picture(view.region(item, reader))


@router.get("/thumbnail/{what}/{file}")
def thumbnail(view: View, what: str, file: str) -> Response:
    """A small copy; `what` is "original" or "edited"."""
    return picture(view.thumbnails.of(file, lambda: view.read(file), synthetic=what != "original"))
