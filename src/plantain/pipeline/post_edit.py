"""After an edit: restore the original around it, check its burned-in text, and reject it if a check fails.

`[loop] restore = "outside"` restores the original outside the edit. The editor's answer is kept as `raw`, with the mask
of the pixels that may differ. The score `restored` is the share of restored pixels, or the reason for none.

The text check rejects an edit that moves, swaps or loses a marker, or draws text. Its score `text_kept` (1 or 0) is
durable before a judge is called, so that a resumed run decides as before.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import NamedTuple

from plantain.catalogue.gate import texts_from_json
from plantain.catalogue.store import Catalogue
from plantain.journal import Journal, JsonValue, StoredScore
from plantain.pixels.decode import decode, decode_output
from plantain.pixels.encode import encode_jpeg, encode_mask, resize
from plantain.privacy.text import READERS, TextChange, TextKept, TextReader, text_changes
from plantain.records import (
    Attempt,
    Criterion,
    CriterionResult,
    FailureCode,
    Finding,
    Observations,
    Score,
    SourceImage,
    Verdict,
    unscored,
)
from plantain.roles import EditedImage

NONE = "none"


class RestoredEdit(NamedTuple):
    """A restored edit as JPEG, and a PNG mask of the pixels that may differ; both None if it was not restored."""

    edited: bytes | None
    mask: bytes | None
    score: StoredScore


def restore_identity(restore: str) -> dict[str, str]:
    """Return {"restore": version}, which identifies runs and requests with restoring; {} if it is off."""
    if restore == NONE:
        return {}
    from plantain.pixels.restore import VERSION  # heavy

    return {"restore": VERSION}


def restored(attempt: Attempt, edited: EditedImage, original: bytes, finding: Finding) -> RestoredEdit:
    """Restore the original's pixels outside an edit's change, with a score; slow, so call it in a thread."""
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


NAME = "text check"
"""Its part of a run's method, and a suffix of the judge's name in verdicts that it changed."""


def fingerprint(check: TextCheck | None) -> dict[str, str]:
    """Return {NAME: name of the text reader, or "none"}, which a resumed run must repeat."""
    return {NAME: "none" if check is None else check.reader.name}


@dataclass(frozen=True, slots=True)
class TextCheck:
    """Check if edits change the burned-in text of their originals, which the catalogue may have recorded."""

    reader: TextReader
    catalogue: Catalogue
    journal: Journal

    async def objections(
        self, attempt: Attempt, image: SourceImage, original: bytes, edited: bytes
    ) -> tuple[str, ...]:
        """Describe each change that an edit made to burned-in text; return () if none was made."""
        for stored in self.journal.reader.scores(attempt.task_id, attempt.generation):
            if stored.metric == TextKept.name and stored.round == attempt.round:
                stored_changes = stored.detail["changes"]
                assert isinstance(stored_changes, list)
                return tuple(str(change) for change in stored_changes)
        loop = asyncio.get_running_loop()
        changes = await loop.run_in_executor(READERS, self._compare, image, original, edited)
        words: list[JsonValue] = [str(change) for change in changes]
        score = Score(0.0 if changes else 1.0)
        detail: dict[str, JsonValue] = {"changes": words, "reader": self.reader.name}
        stored = StoredScore(attempt.task_id, attempt.generation, attempt.round, TextKept.name, score, detail)
        await self.journal.add_scores([stored])
        return tuple(str(change) for change in words)

    def _compare(self, image: SourceImage, original: bytes, edited: bytes) -> tuple[TextChange, ...]:
        kept = self.catalogue.reading(image.prepared_sha256)
        known = None if kept is None else tuple(texts_from_json(kept[1]))
        return text_changes(decode(original), decode(edited), known, self.reader)


def object_to(observations: Observations, objection: str) -> Observations:
    """Fail the criterion fidelity of a report, with `objection` as evidence; unchanged without that criterion."""
    seen = observations.criteria.get(Criterion.FIDELITY_PRESERVATION)
    if seen is None:  # a rubric that does not ask for it: the veto is all
        return observations
    evidence = "; ".join(filter(None, (objection, seen.evidence)))
    codes = tuple(dict.fromkeys((*seen.codes, FailureCode.EXCESS_CHANGE))) if not seen.passed else ()
    failed = CriterionResult(False, None, codes or (FailureCode.EXCESS_CHANGE,), evidence)
    return replace(observations, criteria={**observations.criteria, Criterion.FIDELITY_PRESERVATION: failed})


def veto(verdict: Verdict) -> Verdict:
    """Return the verdict with `qualified` False under every policy, for an edit that failed a check."""
    return replace(verdict, qualified=False)
