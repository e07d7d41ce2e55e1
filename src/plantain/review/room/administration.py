"""What the administrator reaches: progress, and the download."""

from fastapi import APIRouter, Response

from plantain.review.results.export import export_archive
from plantain.review.room.progress import study_progress
from plantain.review.room.replies import as_json
from plantain.review.room.visitors import Administrator, Here

router = APIRouter()


@router.get("/api/admin")
def progress(room: Here, one: Administrator, agreement: bool = False) -> Response:
    return as_json(study_progress(room.study, room.ratings, agreement=agreement))


@router.get("/api/admin/export")
def download(room: Here, one: Administrator) -> Response:
    return Response(
        export_archive(room.study, room.ratings),
        media_type="application/zip",
        headers={"Content-Disposition": 'attachment; filename="study.zip"'},
    )
