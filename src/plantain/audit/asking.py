"""Asking the judge that is audited: each answer is a call of the audit's own run, memoised like any other."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from plantain.audit.jury import Jury, ask
from plantain.audit.pictures import TrialPicture
from plantain.records import EditTask, InputError, Observations, TaskKind, TaskState
from plantain.roles import Judge, JudgeRequest
from plantain.runs.door import Door
from plantain.runs.observer import SILENT, ProgressObserver
from plantain.runs.open_run import OpenRun
from plantain.runs.opening import Beginning, changed_since
from plantain.runs.settings.terms import Terms


@dataclass(slots=True)
class Asking:
    """A judge, and the run in which its answers are kept. The run that is looked at is only read."""

    judge: Judge
    opened: OpenRun
    _taken: dict[str, bytes] = field(default_factory=dict)

    async def taken_in(self, picture: TrialPicture) -> bytes:
        """The picture's bytes, once they are in this run with what is known of them."""
        if picture.image.id not in self._taken:
            blob = await asyncio.to_thread(self.opened.journal.put_blob, picture.data, "image/jpeg")
            image = replace(picture.image, prepared_sha256=blob.sha256)
            await self.opened.journal.add_images([(image, blob)])
            self._taken[picture.image.id] = picture.data
        return picture.data

    async def observations(self, name: str, request: JudgeRequest) -> tuple[Observations | None, str]:
        """What the judge saw, recorded now or before; or None and why. `name` tells the edits of an audit apart."""
        about = request.finding.name if request.finding else "edit"
        task = EditTask(
            hashlib.sha256(f"audit\x1f{name}".encode()).hexdigest()[:20],
            request.image.id,
            request.image.modality,
            about,
            request.direction,
            TaskKind.BENCH,
        )
        await self.opened.journal.add_tasks([task])
        jury = Jury(self.judge.name, (self.judge,), request.rubric)
        seen, outcome = await ask(jury, self.opened.calls(task.id, 1), request, round=1, draw=0)
        state = TaskState.SUCCESS if outcome.ok else TaskState.STOPPED
        await self.opened.close_task(task.id, state, 1, outcome.reason)
        return seen, outcome.reason


@asynccontextmanager
async def asking(
    judge: str | Judge, terms: Terms, run: Path, seed: int = 0, observer: ProgressObserver = SILENT
) -> AsyncIterator[Asking]:
    """Opens a run for an audit of a judge.

    Args:
        judge: its name, or the judge itself.
        terms: under which it is asked.
        run: the audit's own folder, made or resumed.
        seed: of the audit.
        observer: told how it goes on.

    Raises:
        InputError: the judge cannot be had, or the folder holds another audit or another kind of run.
    """
    door = Door(terms)
    door.check()
    made = door.judge(judge) if isinstance(judge, str) else door.guarded(judge)
    async with door.open(
        run, Beginning("audit", seed, {"kind": "audit", "seed": seed}), observer=observer
    ) as opened:
        changed = await changed_since(
            opened.journal, "audit.models", {"judge": f"{made.name}: {made.fingerprint}"}
        )
        if changed:
            raise InputError(f"{run}: {changed}")
        yield Asking(made, opened)
