"""After an edit: restore the original around it, check its text and its later turns, and reject it if a check fails.

`[loop] restore = "outside"` restores the original outside the edit. The editor's answer is kept as `raw`, with the mask
of the pixels that may differ. The score `restored` is the share of restored pixels, or the reason for none.

The text check rejects an edit that moves, swaps or loses a marker, or draws text. Its score `text_kept` (1 or 0) is
durable before a judge is called, so that a resumed run decides as before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from plantain.findings import Taxonomy
from plantain.journal import Journal, JsonValue, StoredScore
from plantain.pipeline.further import Chain, chain_of
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
from plantain.runs.open_run import ImageCache

UNTOUCHED = "untouched_kept"
"""The score of the original check."""


class RestoredEdit(NamedTuple):
    """The result of restoring the original around an edit.

    Attributes:
        edited: the restored edit as JPEG; None if it was not restored.
        mask: PNG of the pixels that may differ from the original; None likewise.
        score: share of restored pixels, or the reason for none.
    """

    edited: bytes | None
    mask: bytes | None
    score: StoredScore


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


@dataclass(frozen=True, slots=True)
class TextCheck:
    """A check for changes to the burned-in text of their originals.

    `name` is a suffix of the judge's name in verdicts that the check changed.
    """

    name: ClassVar[str] = "text check"
    reader: TextReader
    journal: Journal
    images: ImageCache

    async def objection(self, attempt: Attempt, image: SourceImage, edited: bytes) -> str:
        """Describe each change that an edit made to burned-in text; return "" if none was made."""
        for stored in self.journal.reader.scores(attempt.task_id, attempt.generation):
            if stored.metric == TextKept.name and stored.round == attempt.round:
                stored_changes = stored.detail["changes"]
                assert isinstance(stored_changes, list)
                return _texts_in_words(stored_changes)
        loop = asyncio.get_running_loop()
        changes = await loop.run_in_executor(READERS, self._compare, image, edited)
        words: list[JsonValue] = [str(change) for change in changes]
        score = Score(0.0 if changes else 1.0)
        detail: dict[str, JsonValue] = {"changes": words, "reader": self.reader.name}
        stored = StoredScore(attempt.task_id, attempt.generation, attempt.round, TextKept.name, score, detail)
        await self.journal.add_scores([stored])
        return _texts_in_words(words)

    def _compare(self, image: SourceImage, edited: bytes) -> tuple[TextChange, ...]:
        original = decode(self.images.read(image.prepared_sha256))
        return text_changes(original, decode(edited), self.reader)


def _texts_in_words(changes: Sequence[JsonValue]) -> str:
    return f"burned-in text: {', '.join(map(str, changes))}" if changes else ""


@dataclass(frozen=True, slots=True)
class OriginalCheck:
    """A check that an edit of a later turn equals the original where no turn made a change.

    Its score is the share of unchanged pixels there.
    """

    name: ClassVar[str] = "original check"
    journal: Journal
    images: ImageCache
    taxonomy: Taxonomy

    async def objection(self, attempt: Attempt, image: SourceImage, edited: bytes) -> str:
        """Describe how an edit differs from the original outside all changes; "" if it does not, or in a first turn."""
        if not image.parent:
            return ""
        for stored in self.journal.reader.scores(attempt.task_id, attempt.generation):
            if stored.metric == UNTOUCHED and stored.round == attempt.round:
                return _share_in_words(stored.score)
        chain = chain_of(self.journal.reader, self.journal.reader.task(attempt.task_id).task)
        score = await asyncio.to_thread(self._measure, chain, edited)
        key = (attempt.task_id, attempt.generation, attempt.round)
        await self.journal.add_scores([StoredScore(*key, UNTOUCHED, score)])
        return _share_in_words(score)

    def _measure(self, chain: Chain, edited: bytes) -> Score:
        from plantain.pixels.restore import changed_untouched  # heavy

        versions = [decode(self.images.read(image.prepared_sha256)) for _, image in chain]
        findings = [self.taxonomy.get(task.modality, task.finding) for task, _ in chain]
        share, why_not = changed_untouched([*versions, decode(edited)], findings)
        return unscored(why_not) if why_not else Score(1.0 - share)


EditCheck = TextCheck | OriginalCheck


def _share_in_words(score: Score) -> str:
    if score.value is None or score.value == 1.0:
        return ""
    share = 100 * (1 - score.value)
    amount = f"{share:.1f} %" if share >= 0.1 else "less than 0.1 %"
    return f"{amount} of the pixels that no turn touched differ from the original"


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
