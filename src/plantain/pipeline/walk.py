"""The walk of a run's pending tasks through the loop, with bounded concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy, why_not_shown
from plantain.journal import Journal, TaskRow
from plantain.pipeline.control import pass_through
from plantain.pipeline.loop import Closing, edit_until_qualified
from plantain.pipeline.rounds import Method, Rounds
from plantain.pipeline.text_check import TextCheck
from plantain.records import InputError, SourceImage, TaskKind, TaskState
from plantain.runs.image_cache import ImageCache
from plantain.runs.open_run import OpenRun


@dataclass(slots=True)
class Walk:
    """Everything that the tasks of a run need on their way; `all` sends every pending one through the loop."""

    method: Method
    opened: OpenRun
    catalogue: Catalogue
    taxonomy: Taxonomy
    text_check: TextCheck | None = None
    journal: Journal = field(init=False)
    pictures: ImageCache = field(init=False)

    def __post_init__(self) -> None:
        self.journal = self.opened.journal
        self.pictures = ImageCache(self.journal.reader)

    async def all(self, limit: int | None, tasks: Iterable[TaskRow] | None = None) -> None:
        """Sends the pending tasks, or those given, through the loop; at most `limit`."""
        pending = self.journal.reader.tasks(state=TaskState.PENDING) if tasks is None else tasks
        await self.opened.walk(pending, self._one, limit=limit)

    async def _one(self, row: TaskRow) -> None:
        image = await self._image(row.task.image_id)
        finding = self.taxonomy.get(row.task.modality, row.task.finding)
        obstacle = why_not_shown(finding, image)
        if obstacle:
            await self._close(row, Closing(TaskState.NOT_APPLICABLE, 0, obstacle))
            return
        await asyncio.to_thread(self.pictures.read, image.prepared_sha256)
        rounds = Rounds(
            method=self.method,
            calls=self.opened.calls(row.task.id, row.generation),
            journal=self.journal,
            task=row.task,
            generation=row.generation,
            finding=finding,
            image=image,
            pictures=self.pictures,
            text_check=self.text_check,
        )
        control = row.task.kind is TaskKind.CONTROL
        await self._close(row, await (pass_through(rounds) if control else edit_until_qualified(rounds)))

    async def _close(self, row: TaskRow, closing: Closing) -> None:
        await self.opened.close_task(row.task.id, closing.state, closing.round, closing.reason)

    async def _image(self, image_id: str) -> SourceImage:
        """The task's image; taken from the catalogue into the run when a task first needs it."""
        try:
            return self.journal.reader.image(image_id)
        except InputError:
            image = self.catalogue.get(image_id)
        data = await asyncio.to_thread(self.catalogue.read, image)
        blob = await asyncio.to_thread(self.journal.put_blob, data, "image/jpeg")
        await self.journal.add_images([(image, blob)])
        return image
