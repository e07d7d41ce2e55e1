"""Controls: images that pass through the same editor with nothing to change.

Whatever the editor leaves in every image (a watermark, its compression, its grain) is in a control too. So they tell
its traces from its edits, and a classifier that has learnt the traces.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from plantain.pipeline.loop import Closing, stopped
from plantain.pipeline.rounds import Rounds
from plantain.records import (
    Direction,
    EditTask,
    Finding,
    OutcomeKind,
    SourceImage,
    TaskKind,
    TaskState,
    derive_seed,
    task_id,
)

INSTRUCTION = "Keep this image exactly as it is."


def control_tasks(
    images: Iterator[SourceImage], normal: Finding, number: int, seed: int
) -> Iterator[EditTask]:
    """The controls of one modality: that many of its images, ranked by a seeded hash; never a rendered one.

    Args:
        images: all of the modality.
        normal: its normal class, which stands where an edit has its finding.
    """
    for image in heapq.nsmallest(
        number,
        (image for image in images if not image.synthetic),
        key=lambda image: (derive_seed(seed, "control", image.id, image.source_sha256), image.id),
    ):
        yield EditTask(
            control_id(image, normal.name),
            image.id,
            normal.modality,
            normal.name,
            Direction.ADD,
            TaskKind.CONTROL,
        )


def control_id(image: SourceImage, normal: str) -> str:
    """The task's id, by the source file and the name of the normal class."""
    return task_id(image.source_sha256, image.frame, f"control\x1f{normal}", Direction.ADD)


async def pass_through(rounds: Rounds) -> Closing:
    """Runs a control: one edit, with an instruction that never varies. Nobody judges it: there is nothing to see."""
    attempt = await rounds.edit(rounds.instructed(INSTRUCTION))
    if attempt.edited is not None:
        return Closing(TaskState.SUCCESS, 1)
    assert attempt.edit_outcome is not None
    if attempt.edit_outcome.kind is OutcomeKind.NOT_APPLICABLE:
        return Closing(TaskState.NOT_APPLICABLE, 1, attempt.edit_outcome.reason)
    return stopped(attempt.edit_outcome, 1, "editor")
