"""The gallery: which tasks are shown, and each one's story with its pictures."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from plantain.journal import JournalReader, StoredVerdict, TaskRow
from plantain.journal.questions.tasks import started_by_state, started_in_state
from plantain.journal.verdicts import PERSON, corrections_in
from plantain.pages.thumbnails import data_uri, difference
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import decode, decode_mask
from plantain.records import Attempt, Direction, Licence, SourceImage, TaskKind
from plantain.report.absent import there

ORDER = ("success", "failed", "undecided", "not_applicable", "stopped", "pending")


@dataclass(frozen=True, slots=True)
class Size:
    """How large pictures are: longest side in pixels, and bytes of each file at most."""

    side: int
    limit: int


THUMBNAIL = Size(264, 16_000)
PAGE = Size(640, 120_000)


@dataclass(frozen=True, slots=True)
class RoundStory:
    """One attempt with its pictures as data URIs; None where there is none.

    `panel` holds the members' verdicts, `same_as` the earlier round that had brought the same picture, or 0, and
    `by_hand` what people said of it.
    """

    attempt: Attempt
    edited: str | None
    difference: str | None
    outlined: bool
    panel: tuple[StoredVerdict, ...]
    same_as: int
    by_hand: tuple[StoredVerdict, ...] = ()


@dataclass(frozen=True, slots=True)
class Story:
    """One task from source to end, all generations if `whole`. `remark` says what a reader might take wrongly."""

    task: TaskRow
    image: SourceImage
    original: str | None
    rounds: tuple[RoundStory, ...]
    remark: str
    whole: bool

    @property
    def name(self) -> str:
        """The image's id; "" where its owner restricts ids, since pages are passed on."""
        return "" if self.image.licence is Licence.CREDENTIALED else self.image.id

    @property
    def counted(self) -> int:
        """Rounds of the current generation."""
        return sum(not shown.attempt.superseded for shown in self.rounds)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tasks a gallery shows: ids in order, and of how many of each outcome (shown, all)."""

    ids: tuple[str, ...]
    shown: tuple[tuple[str, int, int], ...]

    @property
    def complete(self) -> bool:
        return all(shown == total for _, shown, total in self.shown)


def select(reader: JournalReader, size: int, seed: int) -> Selection:
    """Chooses up to `size` tasks, as evenly over the outcomes as their numbers allow.

    Within an outcome the tasks with the smallest hash of (seed, task id) are taken, so that neither order nor looks
    decide. Tasks that nothing has happened to yet are left out.
    """
    totals = started_by_state(reader)
    quotas = _quotas(totals, size)
    chosen: list[str] = []
    for state, quota in quotas.items():
        ids = started_in_state(reader, state)
        chosen.extend(heapq.nsmallest(quota, ids, key=lambda task: _rank(seed, task)))
    return Selection(tuple(sorted(chosen)), tuple((s, quotas[s], totals[s]) for s in ORDER if s in totals))


def story_of(reader: JournalReader, task: TaskRow, size: Size, *, whole: bool = False) -> Story:
    """The story of a task's current generation, or of all, with pictures of the given size."""
    image = reader.image(task.task.image_id)
    before = decode(reader.read_blob(image.prepared_sha256)) if there(reader, image.prepared_sha256) else None
    generation = None if whole else task.generation
    attempts = reader.attempts(task.id, generation)
    verdicts = reader.verdicts(task.id, generation)
    counting = corrections_in(verdicts)
    members = [
        v for v in verdicts if not v.decisive and (v in counting or not v.verdict.judge.startswith(PERSON))
    ]
    return Story(
        task=task,
        image=image,
        original=None
        if before is None
        else data_uri(before, size.side, size.limit, synthetic=image.synthetic),
        rounds=tuple(
            _round(reader, attempt, before, members, size, came_back_from(attempt, attempts))
            for attempt in attempts
        ),
        remark=remark(task, image),
        whole=whole,
    )


def came_back_from(attempt: Attempt, attempts: Sequence[Attempt]) -> int:
    """The first earlier round of the generation that brought the same bytes, or 0."""
    earlier = (a for a in attempts if (a.generation, a.edited) == (attempt.generation, attempt.edited))
    first = next(earlier, attempt).round
    return first if attempt.edited and first < attempt.round else 0


def _round(
    reader: JournalReader,
    attempt: Attempt,
    before: Pixels | None,
    members: list[StoredVerdict],
    size: Size,
    same_as: int,
) -> RoundStory:
    here = (attempt.generation, attempt.round)
    beside = [v for v in members if (v.generation, v.round) == here]
    panel = tuple(v for v in beside if not v.verdict.judge.startswith(PERSON))
    by_hand = tuple(v for v in beside if v.verdict.judge.startswith(PERSON))
    if attempt.edited is None or not there(reader, attempt.edited):
        return RoundStory(attempt, None, None, False, panel, same_as, by_hand)
    after = decode(reader.read_blob(attempt.edited))
    mask: Mask | None = None
    if attempt.mask is not None and there(reader, attempt.mask):
        mask = decode_mask(reader.read_blob(attempt.mask))
    changed = None
    if before is not None and after.shape == before.shape:
        usable = mask if mask is not None and mask.shape == before.shape[:2] else None
        changed = difference(before, after, size.side, size.limit, usable)
    edited = data_uri(after, size.side, size.limit, synthetic=True)
    return RoundStory(attempt, edited, changed, mask is not None, panel, same_as, by_hand)


def remark(task: TaskRow, image: SourceImage) -> str:
    """What a reader would otherwise take wrongly of a task, in words; empty when nothing."""
    if task.task.kind == TaskKind.CONTROL:
        return "Control: nothing was meant to change."
    if image.synthetic and task.task.direction == Direction.REMOVE:
        return "Removes a finding that no patient had: this source image is itself synthetic."
    if image.synthetic:
        return "The source image is itself synthetic."
    return ""


def _quotas(totals: dict[str, int], size: int) -> dict[str, int]:
    """Shares `size` places over the outcomes: one each in turn until places or tasks run out."""
    quotas = {state: 0 for state in ORDER if totals.get(state)}
    left = min(size, sum(totals[state] for state in quotas))
    while left > 0:
        open_states = [state for state in quotas if quotas[state] < totals[state]]
        share = max(1, left // len(open_states))
        for state in open_states:
            taken = min(share, totals[state] - quotas[state], left)
            quotas[state] += taken
            left -= taken
    return quotas


def _rank(seed: int, task: str) -> bytes:
    return hashlib.sha256(f"{seed}\x1fgallery\x1f{task}".encode()).digest()
