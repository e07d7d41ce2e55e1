"""Who asks: the study being served, its readers' desks, and what each role may reach."""

from __future__ import annotations

import threading
from typing import Annotated, TypeAlias

from fastapi import Depends, HTTPException, Request

from plantain.review.ratings import ADMINISTRATOR, READER, Ratings, StudyReader
from plantain.review.room.desk import Desk
from plantain.review.room.replies import refuse_foreign_origin
from plantain.review.study import Study

COOKIE = "plantain-review"

AGREEMENT = (
    "These pictures may be seen only by people whom their owner admits. I am one of them; I will not copy them, "
    "pass them on, or try to find out whom they show."
)


class Room:
    """A study being served: its desks and who sits at them. `secure`: behind TLS, cookies travel by HTTPS only."""

    def __init__(self, study: Study, ratings: Ratings, secure: bool) -> None:
        self.study, self.ratings, self.secure = study, ratings, secure
        self._desks: dict[str, Desk] = {}
        self._making = threading.Lock()

    def desk(self, reader: StudyReader) -> Desk:
        """The reader's desk, made when they first sit down."""
        with self._making:
            if reader.code not in self._desks:
                self._desks[reader.code] = Desk(self.study, self.ratings, reader)
            return self._desks[reader.code]

    def who(self, request: Request) -> tuple[StudyReader, str] | None:
        """Whose session a request belongs to, and its csrf token."""
        cookie = request.cookies.get(COOKIE, "")
        return self.ratings.session(cookie) if cookie else None

    @property
    def agreement(self) -> str:
        """What readers must confirm by name before they see a picture; "" for nothing."""
        return self.study.agreement or (AGREEMENT if self.study.credentialed else "")


def room_of(request: Request) -> Room:
    """The room that the application serves."""
    room: Room = request.app.state.room
    return room


async def here(request: Request) -> Room:
    """The same, as what a route depends on; asynchronous, so that no thread is asked for it."""
    return room_of(request)


def signed_in(request: Request) -> tuple[StudyReader, str]:
    """Anybody with a session; what writes must come from a page of ours."""
    found = room_of(request).who(request)
    if found is None:
        raise HTTPException(401, "sign in by your link")
    if request.method != "GET":
        refuse_foreign_origin(request)
        if request.headers.get("x-csrf-token", "") != found[1]:
            raise HTTPException(403, "reload the page")
    return found


async def reader(found: Annotated[tuple[StudyReader, str], Depends(signed_in)]) -> StudyReader:
    """A reader, who may still have to confirm the agreement."""
    if found[0].role != READER:
        raise HTTPException(403, "for readers")
    return found[0]


async def confirmed(request: Request, one: Annotated[StudyReader, Depends(reader)]) -> StudyReader:
    """A reader who may see pictures."""
    if room_of(request).agreement and not one.confirmed_name:
        raise HTTPException(403, "confirm the agreement first")
    return one


async def administrator(found: Annotated[tuple[StudyReader, str], Depends(signed_in)]) -> StudyReader:
    """Whoever serves the study."""
    if found[0].role != ADMINISTRATOR:
        raise HTTPException(403, "for the administrator")
    return found[0]


Here: TypeAlias = Annotated[Room, Depends(here)]
SignedIn: TypeAlias = Annotated[tuple[StudyReader, str], Depends(signed_in)]
AnyReader: TypeAlias = Annotated[StudyReader, Depends(reader)]
ConfirmedReader: TypeAlias = Annotated[StudyReader, Depends(confirmed)]
Administrator: TypeAlias = Annotated[StudyReader, Depends(administrator)]
