"""The text check of a build: an edit that moves, swaps or loses a marker, or draws text, never qualifies.

What was seen is a score of the attempt (`text_kept`, 1 or 0) that is durable before a judge is asked, so that a resumed
run decides as it did before, whatever it can read by then.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import orjson

from plantain.catalogue.gate import texts_from_json
from plantain.catalogue.store import Catalogue
from plantain.engines.contract import remote_engine
from plantain.journal import Journal, JsonValue, StoredScore
from plantain.pixels.decode import decode
from plantain.privacy.text import Text, TextReader
from plantain.privacy.text_changes import TextChange, text_changes
from plantain.privacy.text_reader import reader_named
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
"""Behind the judge's name in a verdict that the check took part in."""


_PART = "text check"
_NONE = "none"

_READERS = ThreadPoolExecutor(min(4, os.cpu_count() or 1), "text")
"""Who reads: every thread of them holds an engine of some two hundred megabytes, so that there are few."""


def text_check_of(reader: TextReader | None, catalogue: Catalogue, journal: Journal) -> TextCheck | None:
    """The check of a run; none without a reader, nor where the run began without one: its rounds would be redecided."""
    recorded = journal.reader.meta("method")
    if recorded is not None and orjson.loads(recorded).get(_PART, _NONE) == _NONE:
        return None
    return None if reader is None else TextCheck(reader, catalogue, journal)


def fingerprint(check: TextCheck | None) -> dict[str, str]:
    """The check as a part of a run's method, to which it is held when it is resumed."""
    return {_PART: _NONE if check is None else check.reads_with}


class TextCheck:
    """Compares edited images with their originals; for the tasks of one run.

    Args:
        reader: of text.
        catalogue: remembers what was read in the originals.
        journal: the run's.
    """

    def __init__(self, reader: TextReader, catalogue: Catalogue, journal: Journal) -> None:
        self._reader, self._catalogue, self._journal = reader, catalogue, journal
        self._travels = True

    @property
    def reads_with(self) -> str:
        """Name of the reader."""
        return self._reader.name

    async def objections(
        self, attempt: Attempt, image: SourceImage, original: bytes, edited: bytes
    ) -> tuple[str, ...]:
        """What the edit did to text, in words; empty where it left all of it alone and drew none."""
        for stored in self._journal.reader.scores(attempt.task_id, attempt.generation):
            if stored.metric == METRIC and stored.round == attempt.round:
                stored_changes = stored.detail["changes"]
                assert isinstance(stored_changes, list)
                return tuple(str(change) for change in stored_changes)
        changes = await self._compare(image, original, edited)
        words: list[JsonValue] = [str(change) for change in changes]
        score = Score(0.0 if changes else 1.0)
        detail: dict[str, JsonValue] = {"changes": words, "reader": self._reader.name}
        stored = StoredScore(attempt.task_id, attempt.generation, attempt.round, METRIC, score, detail)
        await self._journal.add_scores([stored])
        return tuple(str(change) for change in words)

    async def _compare(self, image: SourceImage, original: bytes, edited: bytes) -> tuple[TextChange, ...]:
        """On a worker of the run's engine that has the same reader; here where there is none, or it is lost."""
        known = await asyncio.to_thread(self._known, image)
        engine = remote_engine()
        if engine is not None and self._travels:
            ran = await engine.run("judge", compared_there, (self._reader.name, known, original, edited))
            if ran.value is not None:
                return ran.value
            self._travels = bool(ran.lost)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_READERS, compared, self._reader, known, original, edited)

    def _known(self, image: SourceImage) -> tuple[Text, ...] | None:
        kept = self._catalogue.reading(image.prepared_sha256)
        return None if kept is None else tuple(texts_from_json(kept[1]))


def compared(
    reader: TextReader, known: Sequence[Text] | None, original: bytes, edited: bytes
) -> tuple[TextChange, ...]:
    """What an edit did to text, of encoded images; see `text_changes`."""
    return text_changes(decode(original), decode(edited), known, reader)


def compared_there(
    reader: str, known: Sequence[Text] | None, original: bytes, edited: bytes
) -> tuple[TextChange, ...] | None:
    """The same by this process's own reader; None where it has not the one of that name."""
    own = reader_named(reader)
    return None if own is None else compared(own, known, original, edited)


def object_to(observations: Observations, objections: tuple[str, ...]) -> Observations:
    """A judge's report in which fidelity fails for what happened to text."""
    seen = observations.criteria.get(Criterion.FIDELITY_PRESERVATION)
    if seen is None:  # a rubric that does not ask for it: the veto is all
        return observations
    evidence = "; ".join(filter(None, (f"burned-in text: {', '.join(objections)}", seen.evidence)))
    codes = tuple(dict.fromkeys((*seen.codes, FailureCode.EXCESS_CHANGE))) if not seen.passed else ()
    failed = CriterionResult(False, None, codes or (FailureCode.EXCESS_CHANGE,), evidence)
    return replace(observations, criteria={**observations.criteria, Criterion.FIDELITY_PRESERVATION: failed})


def veto(verdict: Verdict) -> Verdict:
    """A verdict under which no policy lets the edit through: a wrong side is no matter of weights."""
    return replace(verdict, qualified=False)
