"""`[loop] restore = "outside"`: the answer is laid over its original, and what was not asked for is put back.

Judge and people see the restored picture; the answer as it came is kept beside it, with the mask of what may differ and
the score `restored`: the share of the pixels that was put back, or the reason why the answer stayed as it came.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plantain.journal import JsonValue, StoredScore
from plantain.pixels.decode import decode, decode_untrusted
from plantain.pixels.encode import encode_jpeg, encode_mask
from plantain.pixels.prepare import resize
from plantain.records import Attempt, EditTask, Finding, Score, SourceImage, TaskKind, unscored
from plantain.roles import EditedImage

if TYPE_CHECKING:
    from plantain.offline.outside import Restored

METRIC = "restored"

NONE, OUTSIDE = "none", "outside"


@dataclass(frozen=True, slots=True)
class PutBack:
    """What is kept of an answer that was looked at.

    Attributes:
        edited: the restored picture in normal form; None where the answer stays as it came.
        mask: PNG of what may differ from the original; None where the answer stays as it came.
        score: share put back, or why nothing was.
    """

    edited: bytes | None
    mask: bytes | None
    score: StoredScore


def restore_identity(restore: str) -> dict[str, str]:
    """The setting as a part of what a run freezes and a request is known by; nothing where it is off."""
    if restore == NONE:
        return {}
    from plantain.offline.outside import VERSION  # heavy

    return {"restore": VERSION}


def restores(restore: str, task: EditTask) -> bool:
    """Whether answers of a task are restored: a control asks what the editor does by itself."""
    return restore != NONE and task.kind is not TaskKind.CONTROL


def restored(
    attempt: Attempt,
    edited: EditedImage,
    original: bytes,
    image: SourceImage,
    finding: Finding,
    task: EditTask,
) -> PutBack:
    """Restores one answer. Heavy: run it in a thread."""
    from plantain.offline.outside import put_back  # heavy

    before = decode(original)
    answer = (
        edited.pixels if edited.pixels is not None else decode_untrusted(edited.image.data, "edited image")
    )
    done = put_back(
        before,
        resize(answer, before.shape[1], before.shape[0]),
        attempt.instruction,
        image,
        finding,
        task.direction,
    )
    score = StoredScore(
        attempt.task_id, attempt.generation, attempt.round, METRIC, score_of(done), detail_of(done)
    )
    if done.why_not:
        return PutBack(None, None, score)
    return PutBack(encode_jpeg(done.pixels), encode_mask(done.mask), score)


def score_of(done: Restored) -> Score:
    """The share of the pixels that was put back; unscored with the reason where the answer stays as it came."""
    return unscored(done.why_not) if done.why_not else Score(done.share)


def detail_of(done: Restored) -> dict[str, JsonValue]:
    """How it was done, and by how many pixels the two still lie apart."""
    from plantain.offline.outside import VERSION

    return {"how": VERSION, "residual_px": round(done.residual, 3)}
