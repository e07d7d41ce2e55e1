"""The cases of a study from a run: the last image of each final task, and the model that made it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from plantain.journal import BadBlob, JournalReader
from plantain.journal.reader import BLOBS_ABSENT
from plantain.journal.verdicts import PUBLISHED
from plantain.journal.verify import places_of
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import TaskKind, TaskState
from plantain.review.sources import Material, Read, is_final, restricted
from plantain.review.study import ORIGINAL


def blob_reader(run: Path, digest: str) -> Read:
    """Return a function that decodes the run's image with this hash to uint8 (H, W, 3); BadBlob if it is damaged."""

    def read() -> Pixels:
        with JournalReader.open(run) as reader:
            try:
                return decode(reader.read_blob(digest))
            except BadBlob as error:
                raise BadBlob("; ".join(places_of(reader, [digest]))) from error

    return read


def model_of(reader: JournalReader, task: str) -> str:
    """Return the name of the model that made an edit of a run: as in an imported table, else the run's editor."""
    published = (one.detail.get("model") for one in reader.scores(task) if one.metric == PUBLISHED)
    if model := next((model for model in published if model), None):
        return str(model)
    models = reader.header.frozen.get("models")
    return str(models.get("editor")) if isinstance(models, dict) and models.get("editor") else "editor"


def materials_of_run(run: Path, wanted: Collection[str] | None = None) -> Iterator[Material]:
    """Yield a case for the last image of every final edit task, or of the `wanted` ones, whatever its verdict."""
    with JournalReader.open(run) as reader:
        imported = reader.meta(BLOBS_ABSENT) is not None
        for row in reader.tasks():
            if wanted is not None and row.id not in wanted:
                continue
            if row.task.kind is not TaskKind.EDIT or not is_final(row):
                continue
            made = [one for one in reader.attempts(row.id, row.generation) if one.edited]
            image = reader.image(row.task.image_id)
            edited = made[-1].edited if made else None
            if not edited or (
                imported and not (reader.has_blob(image.prepared_sha256) and reader.has_blob(edited))
            ):
                continue
            model = model_of(reader, row.id)
            decided = row.state in (TaskState.SUCCESS, TaskState.FAILED)
            yield Material(
                source=row.id,
                original=image.id,
                stratum=f"{row.task.modality} {row.task.direction.value} {row.task.finding}",
                cluster=image.group or image.origin,
                modality=row.task.modality,
                finding=row.task.finding,
                direction=row.task.direction.value,
                instruction=made[-1].instruction,
                images={
                    ORIGINAL: blob_reader(run, image.prepared_sha256),
                    model: blob_reader(run, edited),
                },
                verdicts={model: row.state is TaskState.SUCCESS} if decided else {},
                spacing_mm=image.spacing_mm,
                credentialed=restricted(image),
            )
