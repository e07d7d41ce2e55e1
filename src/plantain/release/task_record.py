"""The record of one task of a release, without telemetry, from which layouts are made and imports read; its pairs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import cast

import orjson
from pydantic import TypeAdapter, ValidationError

from plantain.journal import BlobRef, JsonValue, RecordedTask, StoredScore, StoredVerdict, TaskRow
from plantain.journal.rows import dumps
from plantain.records import (
    Attempt,
    Direction,
    EditTask,
    Outcome,
    Score,
    SourceImage,
    TaskState,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """One judge's verdict on an attempt.

    Attributes:
        draw: number of the verdict among the judge's verdicts on this attempt, from 0.
        decisive: True if it decides; of a panel, only the joint verdict does.
    """

    verdict: Verdict
    draw: int
    decisive: bool


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """One metric's score of one attempt; a missing value has a reason."""

    metric: str
    value: float | None
    reason: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One round of a task. None is an unknown value or a missing image.

    Attributes:
        generation: number of retries of the task before this round.
        round: number of the round in its generation, from 1.
        superseded: True if a later retry replaced it.
        role: role of its image in the release (see `ReleaseFile`); "" without an image.
        edit_outcome, judge_outcome: how the calls of editor and judge ended.
        edited, mask: files of the image as judged and released, and of its mask.
        support: extent of the change: "local", "diffuse" or "warp".
        verdicts, scores: verdicts of all judges, scores of all metrics.
    """

    generation: int
    round: int | None
    superseded: bool
    role: str
    instruction: str | None
    edit_outcome: Outcome | None
    edited: BlobRef | None
    mask: BlobRef | None
    support: str | None
    judge_outcome: Outcome | None
    verdicts: tuple[VerdictRecord, ...]
    scores: tuple[ScoreRecord, ...]

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that decided on the edit; None without one."""
        return next((verdict.verdict for verdict in self.verdicts if verdict.decisive), None)


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A finished task of a run: one finding added to, or removed from, one image.

    Attributes:
        finding, direction, modality: the finding, `Direction.ADD` or `REMOVE`, and the image's modality.
        generation: how often a retry restarted it.
        state: how it ended, e.g. `TaskState.SUCCESS`.
        round: round of success, else the last one; None if unknown.
        reason: why it did not succeed; "" if it did.
        split: "train", "validation" or "test".
        image: record of the original, as released.
        attempts: rounds of all generations, oldest first.
    """

    task_id: str
    finding: str
    direction: Direction
    modality: str
    generation: int
    state: TaskState
    round: int | None
    reason: str
    split: str
    image: SourceImage
    attempts: tuple[AttemptRecord, ...]

    @property
    def key(self) -> str:
        """The task's name in JSON files: "IMAGE-FINDING-DIRECTION"."""
        return f"{self.image.id}-{self.finding}-{self.direction.value}"


@cache
def _records() -> TypeAdapter[TaskRecord]:
    return TypeAdapter(TaskRecord)


def to_json(record: TaskRecord) -> bytes:
    """Encode a record as one line of JSON, without a line feed."""
    return dumps(record)


@lru_cache(maxsize=32)
def from_json(line: bytes | str) -> TaskRecord:
    """Return a task's record from JSON; the last 32 are cached. Raise ValueError, naming the first invalid field."""
    text = line.encode() if isinstance(line, str) else line
    if b"NaN" in text or b"Infinity" in text:
        orjson.loads(text)  # raises for them as numbers, which are not JSON; pydantic accepts them
    try:
        return _records().validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where or 'record'}: {first['msg']}") from error


def make_record(
    row: TaskRow,
    image: SourceImage,
    attempts: Sequence[Attempt],
    verdicts: Sequence[StoredVerdict],
    scores: Sequence[StoredScore],
    images: Mapping[str, BlobRef],
    split: str,
) -> TaskRecord:
    """Make the record of a closed task; `image` is as released, `images` maps the attempts' hashes to blobs."""
    return TaskRecord(
        task_id=row.id,
        finding=row.task.finding,
        direction=row.task.direction,
        modality=row.task.modality,
        generation=row.generation,
        state=row.state,
        round=row.round or None,
        reason=row.reason,
        split=split,
        image=image,
        attempts=tuple(
            AttemptRecord(
                generation=attempt.generation,
                round=attempt.round or None,
                superseded=attempt.superseded,
                role=role_of(row, attempt),
                instruction=attempt.instruction or None,
                edit_outcome=attempt.edit_outcome,
                edited=images[attempt.edited] if attempt.edited is not None else None,
                mask=images[attempt.mask] if attempt.mask is not None else None,
                support=attempt.support,
                judge_outcome=attempt.judge_outcome,
                verdicts=tuple(
                    VerdictRecord(verdict.verdict, verdict.draw, verdict.decisive)
                    for verdict in verdicts
                    if (verdict.generation, verdict.round) == (attempt.generation, attempt.round)
                ),
                scores=tuple(
                    ScoreRecord(score.metric, score.score.value, score.score.reason, score.detail)
                    for score in scores
                    if (score.generation, score.round) == (attempt.generation, attempt.round)
                ),
            )
            for attempt in attempts
        ),
    )


def role_of(row: TaskRow, attempt: Attempt) -> str:
    """Return the role of an attempt's image in a release.

    One of success, failed, undecided, superseded, unjudged; "" without an image.
    """
    if attempt.edited is None:
        return ""
    if attempt.superseded:
        return "superseded"
    if row.state is TaskState.SUCCESS and attempt.round == row.round:
        return "success"
    if attempt.verdict is not None and attempt.verdict.qualified is None:
        return "undecided"
    # An imported failure may have no verdict: its tree only states that it was judged, and failed.
    judged = attempt.verdict is not None or (attempt.judge_outcome is not None and attempt.judge_outcome.ok)
    return "failed" if judged else "unjudged"


def recorded_task(record: TaskRecord) -> RecordedTask:
    """Convert a record to the form in which a journal stores tasks, inverting `make_record`."""
    task = EditTask(record.task_id, record.image.id, record.modality, record.finding, record.direction)
    row = TaskRow(task, record.generation, record.state, record.round or 0, record.reason)
    attempts, verdicts, scores, images = [], [], [], []
    for attempt in record.attempts:
        here = record.task_id, attempt.generation, attempt.round or 0
        attempts.append(
            Attempt(
                *here,
                instruction=attempt.instruction or "",
                edit_outcome=attempt.edit_outcome,
                edited=attempt.edited.sha256 if attempt.edited else None,
                mask=attempt.mask.sha256 if attempt.mask else None,
                support=attempt.support,
                judge_outcome=attempt.judge_outcome,
                verdict=None,
                superseded=attempt.superseded,
            )
        )
        verdicts += [StoredVerdict(*here, v.verdict, v.draw, v.decisive) for v in attempt.verdicts]
        for s in attempt.scores:
            detail = cast("dict[str, JsonValue]", dict(s.detail))
            scores.append(StoredScore(*here, s.metric, Score(s.value, s.reason), detail))
        images += [image for image in (attempt.edited, attempt.mask) if image is not None]
    return RecordedTask(row, tuple(attempts), tuple(verdicts), tuple(scores), tuple(images))


# --- preference pairs ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttemptPair:
    """A preference pair of one task.

    Attributes:
        chosen, rejected: indices of the two attempts in the task's record.
        chosen_first: True if slot 0 shows the chosen one.
    """

    chosen: int
    rejected: int
    chosen_first: bool


def pairs_of(record: TaskRecord) -> list[AttemptPair]:
    """Pair a task's success with each failure that has an image, in the current generation, by round."""
    roles = [attempt.role for attempt in record.attempts]
    if "success" not in roles:
        return []
    chosen = roles.index("success")
    return [
        AttemptPair(chosen, index, _first_slot(record.task_id, index))
        for index, role in enumerate(roles)
        if role == "failed"
    ]


def _first_slot(task_id: str, index: int) -> bool:
    """Return True to put the chosen image first, by hash, so that its column varies."""
    return hashlib.sha256(f"slot\x1f{task_id}\x1f{index}".encode()).digest()[0] < 128
