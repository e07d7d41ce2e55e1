"""The text check of a build: an edit that moves, swaps or loses a marker, or draws text, never qualifies.

The result is a score of the attempt (`text_kept`, 1 or 0) that is durable before a judge is called, so that a resumed
run decides as it did before.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from plantain.catalogue.gate import texts_from_json
from plantain.catalogue.store import Catalogue
from plantain.journal import Journal, JsonValue, StoredScore
from plantain.pixels.decode import decode
from plantain.privacy.text import TextReader
from plantain.privacy.text_changes import TextChange, text_changes
from plantain.records import (
    Attempt,
    Criterion,
    CriterionResult,
    FailureCode,
    Observations,
    Score,
    SourceImage,
    Verdict,
)

METRIC = "text_kept"

NAME = "text check"
"""Its part of a run's method, and a suffix of the judge's name in verdicts that it changed."""

_READERS = ThreadPoolExecutor(min(4, os.cpu_count() or 1), "text")
"""Few, since each thread needs an engine of about 200 MB."""


def fingerprint(check: TextCheck | None) -> dict[str, str]:
    """Return the check as a part of a run's method, which a resumed run must repeat."""
    return {NAME: "none" if check is None else check.reader.name}


@dataclass(frozen=True, slots=True)
class TextCheck:
    """Compares edited images with their originals, whose text the catalogue may know; for the tasks of one run."""

    reader: TextReader
    catalogue: Catalogue
    journal: Journal

    async def objections(
        self, attempt: Attempt, image: SourceImage, original: bytes, edited: bytes
    ) -> tuple[str, ...]:
        """Return what the edit did to text, in words; empty if it neither changed nor drew any."""
        for stored in self.journal.reader.scores(attempt.task_id, attempt.generation):
            if stored.metric == METRIC and stored.round == attempt.round:
                stored_changes = stored.detail["changes"]
                assert isinstance(stored_changes, list)
                return tuple(str(change) for change in stored_changes)
        loop = asyncio.get_running_loop()
        changes = await loop.run_in_executor(_READERS, self._compare, image, original, edited)
        words: list[JsonValue] = [str(change) for change in changes]
        score = Score(0.0 if changes else 1.0)
        detail: dict[str, JsonValue] = {"changes": words, "reader": self.reader.name}
        stored = StoredScore(attempt.task_id, attempt.generation, attempt.round, METRIC, score, detail)
        await self.journal.add_scores([stored])
        return tuple(str(change) for change in words)

    def _compare(self, image: SourceImage, original: bytes, edited: bytes) -> tuple[TextChange, ...]:
        kept = self.catalogue.reading(image.prepared_sha256)
        known = None if kept is None else tuple(texts_from_json(kept[1]))
        return text_changes(decode(original), decode(edited), known, self.reader)


def object_to(observations: Observations, objections: tuple[str, ...]) -> Observations:
    """Return a judge's report in which fidelity fails because of what happened to text."""
    seen = observations.criteria.get(Criterion.FIDELITY_PRESERVATION)
    if seen is None:  # a rubric that does not ask for it: the veto is all
        return observations
    evidence = "; ".join(filter(None, (f"burned-in text: {', '.join(objections)}", seen.evidence)))
    codes = tuple(dict.fromkeys((*seen.codes, FailureCode.EXCESS_CHANGE))) if not seen.passed else ()
    failed = CriterionResult(False, None, codes or (FailureCode.EXCESS_CHANGE,), evidence)
    return replace(observations, criteria={**observations.criteria, Criterion.FIDELITY_PRESERVATION: failed})


def veto(verdict: Verdict) -> Verdict:
    """Return a verdict that rejects the edit under any policy: a wrong side marker cannot be outweighed."""
    return replace(verdict, qualified=False)
