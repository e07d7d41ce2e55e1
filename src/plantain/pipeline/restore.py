"""`[loop] restore = "outside"`: an answer is judged after its original was restored outside of the edit.

The answer as it came is kept as `raw`, with the mask of what may differ and the score `restored`: the share of the
pixels that was restored, or the reason why none were.
"""

from __future__ import annotations

from typing import NamedTuple

from plantain.journal import StoredScore
from plantain.pixels.decode import decode, decode_output
from plantain.pixels.encode import encode_jpeg, encode_mask
from plantain.pixels.prepare import resize
from plantain.records import Attempt, Finding, Score, unscored
from plantain.roles import EditedImage

NONE = "none"


class RestoredEdit(NamedTuple):
    """A restored answer: JPEG and PNG of the mask of what may differ, both None where it stays as it came."""

    edited: bytes | None
    mask: bytes | None
    score: StoredScore


def restore_identity(restore: str) -> dict[str, str]:
    """Return the setting as a part of what a run freezes and a request is known by; empty where it is off."""
    if restore == NONE:
        return {}
    from plantain.pixels.restore import VERSION  # heavy

    return {"restore": VERSION}


def restored(attempt: Attempt, edited: EditedImage, original: bytes, finding: Finding) -> RestoredEdit:
    """Restore one answer. Heavy: run it in a thread."""
    from plantain.pixels.restore import VERSION, restore_outside  # heavy

    before = decode(original)
    answer = edited.pixels if edited.pixels is not None else decode_output(edited.image.data)
    done = restore_outside(before, resize(answer, before.shape[1], before.shape[0]), finding)
    score = StoredScore(
        attempt.task_id,
        attempt.generation,
        attempt.round,
        "restored",
        unscored(done.why_not) if done.why_not else Score(done.share),
        {"how": VERSION, "residual_px": round(done.residual, 3)},
    )
    if done.why_not:
        return RestoredEdit(None, None, score)
    return RestoredEdit(encode_jpeg(done.pixels), encode_mask(done.mask), score)
