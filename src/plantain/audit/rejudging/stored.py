"""Judging stored attempts again: nothing is generated, and every verdict stands beside the older ones.

A jury takes a number in the run when it first judges there, by its label and fingerprint, and its calls and verdicts
take the draws that belong to the number; those of the run's own judges begin at 0. So another prompt, or another
version of a judge, is another column, and what was judged before is never asked again.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import orjson

from plantain.audit.jury import MOST_MEMBERS, Jury, ask
from plantain.findings import Taxonomy
from plantain.journal import BadBlob, Journal, JournalReader, StoredVerdict
from plantain.journal.verdicts import JUDGED_AGAIN
from plantain.records import (
    Attempt,
    EditTask,
    Finding,
    InputError,
    Observations,
    Outcome,
    OutcomeKind,
    SourceImage,
    Step,
    TaskKind,
    derive_seed,
)
from plantain.roles import JudgeRequest
from plantain.rubrics import decide
from plantain.runs.image_cache import ImageCache
from plantain.runs.open_run import OpenRun

JURIES = "audit.juries"
"""Key of the run's meta: who has judged its attempts again, in the order of their numbers."""


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """One round that came to an image, with its task."""

    task: EditTask
    attempt: Attempt

    @property
    def key(self) -> tuple[str, int, int]:
        return self.attempt.task_id, self.attempt.generation, self.attempt.round


@dataclass(frozen=True, slots=True)
class SeatedJury:
    """A jury with its number in a run."""

    jury: Jury
    number: int

    @property
    def draw(self) -> int:
        """Of its verdicts, and of its first member's first call."""
        return JUDGED_AGAIN * (self.number + 1)


async def seat(journal: Journal, juries: Sequence[Jury]) -> list[SeatedJury]:
    """Gives each jury its number in the run, the same as in earlier processes."""
    known: list[list[str]] = orjson.loads(journal.reader.meta(JURIES) or "[]")
    before, seated = len(known), []
    for jury in juries:
        entry = [jury.name, jury.fingerprint, jury.rubric.name]
        if entry not in known:
            known.append(entry)
        seated.append(SeatedJury(jury, known.index(entry)))
    if len(known) > before:
        await journal.set_meta(JURIES, orjson.dumps(known).decode())
    return seated


def stored_attempts(
    reader: JournalReader, sample: int | None = None, seed: int = 0
) -> Iterator[StoredAttempt]:
    """The attempts of edit tasks that have an image, of current generations, by task and round, streamed.

    Args:
        reader: of the run.
        sample: so many at most, drawn by hash: a larger sample holds a smaller one. None for all.
        seed: of the draw.
    """
    everything = _edited(reader)
    if sample is None:
        yield from everything
        return
    drawn = heapq.nsmallest(sample, everything, key=lambda one: _lot(seed, one))
    yield from sorted(drawn, key=lambda one: one.key)


def _lot(seed: int, one: StoredAttempt) -> bytes:
    return hashlib.sha256("\x1f".join(map(str, (seed, *one.key))).encode()).digest()


def _edited(reader: JournalReader) -> Iterator[StoredAttempt]:
    task: EditTask | None = None
    for attempt in reader.all_attempts():
        if attempt.edited is None:
            continue
        if task is None or task.id != attempt.task_id:
            task = reader.task(attempt.task_id).task
        if task.kind is TaskKind.EDIT:
            yield StoredAttempt(task, attempt)


@dataclass(slots=True)
class StoredJudging:
    """Has stored attempts judged within their own run.

    Attributes:
        opened: the run.
        taxonomy: where findings come from; one that it does not know is judged without.
        policy, threshold: what qualifies, see `plantain.rubrics.decide`.
        retry: ask again where a judge gave no answer before.
        paired: every jury is asked with the same seed, so that what differs between them is not the draw.
        unjudged: why attempts have no verdict of a jury, by (jury, reason) with how often.
    """

    opened: OpenRun
    taxonomy: Taxonomy
    policy: str
    threshold: float
    retry: bool = False
    paired: bool = False
    unjudged: Counter[tuple[str, str]] = field(default_factory=Counter)
    pictures: ImageCache = field(init=False)

    def __post_init__(self) -> None:
        self.pictures = ImageCache(self.opened.journal.reader)

    async def judge(self, one: StoredAttempt, seated: SeatedJury) -> bool:
        """Has one attempt judged; returns whether there is a verdict, new or old.

        Raises:
            RunHalted: the verdict, or the one that is there, is of another model behind the judge's name than before,
                and changes are not accepted.
        """
        reader = self.opened.journal.reader
        task_id, generation, round = one.key
        calls = self.opened.calls(task_id, generation)
        if any(_is_of(seated, stored, one) for stored in reader.verdicts(task_id, generation)):
            # A process that a changed model stopped has stored the verdicts that were in flight.
            await calls.check_recorded(Step.JUDGE, round, range(seated.draw, seated.draw + JUDGED_AGAIN))
            return True
        image = reader.image(one.task.image_id)
        obstacle = await asyncio.to_thread(self._unreadable, image, one.attempt)
        if obstacle:
            self.unjudged[seated.jury.name, obstacle] += 1
            return False

        def verdicts(seen: Observations) -> tuple[StoredVerdict, ...]:
            jury = seated.jury
            verdict = decide(seen, jury.rubric, judge=jury.name, policy=self.policy, threshold=self.threshold)
            return (StoredVerdict(task_id, generation, round, verdict, seated.draw, decisive=False),)

        seen, outcome = await ask(
            seated.jury,
            calls,
            self._request(one, image, seated),
            round=round,
            draw=self._draw(one, seated),
            identity={"image": image.prepared_sha256, "edited": one.attempt.edited},
            verdicts=verdicts,
        )
        if seen is None:
            self.unjudged[seated.jury.name, describe_ending(outcome)] += 1
        return seen is not None

    def why_not(self, jury: str) -> Counter[str]:
        """Why attempts have no verdict of this jury, counted."""
        return Counter({reason: n for (name, reason), n in self.unjudged.items() if name == jury})

    def _draw(self, one: StoredAttempt, seated: SeatedJury) -> int:
        """Of the first member's call: the latest asking, or with `retry` a new one where that failed."""
        task_id, generation, round = one.key
        own = [
            row
            for row in self.opened.journal.reader.calls(task_id, generation)
            if row.key.round == round
            and row.final
            and seated.draw <= row.key.draw < seated.draw + JUDGED_AGAIN
            and row.outcome is not None
        ]
        if not own:
            return seated.draw
        latest = max(row.key.draw for row in own)
        base = latest - (latest - seated.draw) % MOST_MEMBERS
        ended_badly = any(row.key.draw >= base and row.outcome and not row.outcome.ok for row in own)
        return base + MOST_MEMBERS if self.retry and ended_badly else base

    def _request(self, one: StoredAttempt, image: SourceImage, seated: SeatedJury) -> JudgeRequest:
        assert one.attempt.edited is not None
        draw = 0 if self.paired else seated.draw
        return JudgeRequest(
            image=image,
            original=self.pictures.image(image.prepared_sha256),
            edited=self.pictures.image(one.attempt.edited),
            instruction=one.attempt.instruction,
            finding=self._finding(one.task),
            direction=one.task.direction,
            rubric=seated.jury.rubric,
            seed=derive_seed(self.opened.journal.header.seed, *one.key, "judged again", draw),
        )

    def _finding(self, task: EditTask) -> Finding | None:
        try:
            return self.taxonomy.get(task.modality, task.finding)
        except InputError:
            return None

    def _unreadable(self, image: SourceImage, attempt: Attempt) -> str:
        """Why the two pictures cannot be looked at; "" where they can."""
        if not self.opened.journal.reader.has_blob(image.prepared_sha256):
            return "its original is not in this run"
        try:
            self.pictures.read(image.prepared_sha256)
            self.pictures.read(attempt.edited or "")
        except BadBlob as error:
            return str(error)
        return ""


def _is_of(seated: SeatedJury, stored: StoredVerdict, one: StoredAttempt) -> bool:
    return (stored.verdict.judge, stored.draw, stored.round) == (
        seated.jury.name,
        seated.draw,
        one.attempt.round,
    )


def describe_ending(outcome: Outcome) -> str:
    """How a call without an answer ended, for a person."""
    kind = outcome.kind.value.replace("_", " ")
    return f"{kind}: {outcome.reason}" if outcome.reason and outcome.kind is not OutcomeKind.OK else kind
