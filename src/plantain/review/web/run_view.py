"""A run in the viewer: read from its journal with one reader for each thread, never changed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plantain.journal import BadBlob, CallRow, JournalReader, StoredScore, StoredVerdict, TaskRow
from plantain.journal.questions.browsing import BrowsedPage, TaskQuery, page_of
from plantain.journal.verdicts import published_verdict
from plantain.pages.thumbnails import thumbnail as small
from plantain.pixels.decode import decode
from plantain.records import Attempt, Direction, InputError, SourceImage
from plantain.rubrics import unfavourable

SIDE, MOST = 176, 20_000
"""Pixels and bytes of a thumbnail at most."""

_DECODING = threading.Semaphore(2)


def thumbnail(data: bytes, *, synthetic: bool) -> bytes:
    """Return a JPEG of an image whose longest side is 176 pixels, marked as `synthetic` like the image.

    Raises:
        BadImage: the bytes cannot be decoded.
    """
    with _DECODING:
        pixels = decode(data)
    return small(pixels, SIDE, MOST, synthetic=synthetic)


PAGE = 50


@dataclass(frozen=True, slots=True)
class ViewedRound:
    """One attempt with its verdicts (`judges`), scores and calls, as the viewer shows it."""

    attempt: Attempt
    direction: Direction
    judges: tuple[StoredVerdict, ...]
    scores: tuple[StoredScore, ...]
    calls: tuple[CallRow, ...]

    @property
    def names(self) -> list[str]:
        """The names of all criteria, then of all facts, that at least one judge reported."""
        criteria = {name: None for one in self.judges for name in one.verdict.observations.criteria}
        facts = {name: None for one in self.judges for name in one.verdict.observations.facts}
        return [*criteria, *(name for name in facts if name not in criteria)]

    def cells(self, name: str) -> list[Cell]:
        """Return each judge's report on one criterion or fact, in the order of `judges`."""
        return [_cell(one, name, self.direction) for one in self.judges]


@dataclass(frozen=True, slots=True)
class Cell:
    """One judge's report on one criterion or fact.

    Attributes:
        passed: True if the criterion passed; of a fact, the answer.
        good: True if that counts for the edit, False if against it; None: unknown or neither.
        fact: True for a fact.
        value, codes, reason: number, failure codes and evidence of a criterion.
        judged: False if this judge did not report on it.
    """

    passed: bool | None
    good: bool | None
    fact: bool
    value: float | None
    codes: tuple[str, ...]
    reason: str
    judged: bool


@dataclass(frozen=True, slots=True)
class ViewedTask:
    """One task with all its rounds, as the viewer shows it.

    Attributes:
        rounds: rounds of the current generation; `earlier`: those that a retry superseded.
        calls: all calls of the task.
    """

    row: TaskRow
    image: SourceImage
    rounds: tuple[ViewedRound, ...]
    earlier: tuple[ViewedRound, ...]
    calls: tuple[CallRow, ...]

    @property
    def cost_usd(self) -> float | None:
        """The sum of its calls' known costs in US dollars; None if no cost is known."""
        known = [call.cost_usd for call in self.calls if call.cost_usd is not None]
        return sum(known) if known else None

    @property
    def seconds(self) -> float:
        """The sum of its calls' latencies in seconds."""
        return sum(call.latency_s or 0.0 for call in self.calls)


class RunView:
    """A run in the viewer, read from its journal.

    Args:
        run: folder of the run.
        name: shown on pages; default: the folder's name.
    """

    def __init__(self, run: Path, name: str = "") -> None:
        self.run = run
        self.name = name or run.resolve().name
        self._local = threading.local()
        reader = self.reader
        self.bench = reader.meta("bench") is not None
        self.title = reader.header.name

    @property
    def reader(self) -> JournalReader:
        """This thread's reader, opened on first use."""
        found = getattr(self._local, "reader", None)
        if found is None:
            found = self._local.reader = JournalReader.open(self.run)
        reader: JournalReader = found
        return reader

    def page(self, query: TaskQuery, after: str, before: str) -> BrowsedPage:
        return page_of(self.reader, query, size=PAGE, after=after, before=before)

    def counters(self) -> dict[str, object]:
        """Return the run's tasks by state, their total, the cost in dollars and the number of open calls."""
        reader = self.reader
        counts = reader.counts()
        return {
            "counts": {state.value: n for state, n in counts.items()},
            "total": sum(counts.values()),
            "spent": reader.spent_usd(),
            "open": len(reader.open_calls()),
        }

    def task(self, prefix: str) -> ViewedTask:
        """Return a task by a prefix of its id. Raise InputError if none or several match."""
        reader = self.reader
        row = reader.task(prefix)
        calls, verdicts, scores = reader.calls(row.id), reader.verdicts(row.id), reader.scores(row.id)
        direction = row.task.direction
        rounds = [_round(attempt, direction, verdicts, scores, calls) for attempt in reader.attempts(row.id)]
        return ViewedTask(
            row,
            reader.image(row.task.image_id),
            tuple(one for one in rounds if one.attempt.generation == row.generation),
            tuple(one for one in rounds if one.attempt.generation != row.generation),
            tuple(calls),
        )

    def read(self, sha256: str) -> bytes:
        """Return an image of the run by its hash. Raise InputError if there is none."""
        try:
            return self.reader.blobs.read(sha256)
        except BadBlob as error:
            raise InputError("no such image") from error

    def neighbours(self, task: str, query: TaskQuery) -> tuple[str, str]:
        """Return (id of the previous task, id of the next task) in a list; "" at its ends."""
        before = page_of(self.reader, query, size=1, before=task).tasks
        behind = page_of(self.reader, query, size=1, after=task).tasks
        return (before[0].id if before else ""), (behind[0].id if behind else "")


def _round(
    attempt: Attempt,
    direction: Direction,
    verdicts: Sequence[StoredVerdict],
    scores: Sequence[StoredScore],
    calls: Sequence[CallRow],
) -> ViewedRound:
    key = (attempt.generation, attempt.round)
    judges = [one for one in verdicts if (one.generation, one.round) == key]
    own = [(s.metric, s.score.value, s.detail) for s in scores if (s.generation, s.round) == key]
    if (published := published_verdict(own)) is not None:
        judges.append(StoredVerdict(attempt.task_id, *key, published, 0, decisive=False))
    return ViewedRound(
        attempt,
        direction,
        tuple(sorted(judges, key=lambda one: (not one.decisive, one.verdict.judge, one.draw))),
        tuple(one for one in scores if (one.generation, one.round) == key),
        tuple(call for call in calls if (call.key.generation, call.key.round) == key),
    )


def _cell(stored: StoredVerdict, name: str, direction: Direction) -> Cell:
    seen = stored.verdict.observations
    if name in seen.criteria:
        found = seen.criteria[name]
        codes = tuple(map(str, found.codes))
        return Cell(found.passed, found.passed, False, found.value, codes, found.evidence, True)
    fact = seen.facts.get(name)
    bad = unfavourable(direction).get(name)
    good = None if fact is None or bad is None else fact is not bad
    return Cell(fact, good, True, None, (), "", fact is not None)
