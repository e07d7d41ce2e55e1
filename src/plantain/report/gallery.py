"""Tasks in reports: the gallery's selection, and each task's history with images or as data."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

import orjson

from plantain.journal import BadBlob, JournalReader, StoredVerdict, TaskRow
from plantain.journal.questions.tasks import started_by_state, started_in_state
from plantain.journal.reader import BLOBS_ABSENT
from plantain.journal.rows import dumps
from plantain.journal.verdicts import PERSON, PUBLISHED, corrections_in, published_verdict
from plantain.pages.thumbnails import data_uri, difference
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode, decode_mask
from plantain.records import Attempt, Direction, Licence, SourceImage, TaskKind, Verdict
from plantain.records.counts import shared_out

T = TypeVar("T")


def there(reader: JournalReader, sha256: str) -> bool:
    """Return False only for an image that an imported release did not contain; elsewhere a missing blob is an error."""
    return reader.meta(BLOBS_ABSENT) is None or reader.has_blob(sha256)


def image_of(reader: JournalReader, sha256: str, decode: Callable[[bytes], T]) -> T | None:
    """Return a decoded image; None where it is not there, or damaged, which the reader's blobs then know."""
    if not there(reader, sha256):
        return None
    try:
        return decode(reader.read_blob(sha256))
    except BadBlob:
        reader.blobs.damaged |= {sha256}
        return None


def absence(reader: JournalReader, what: str, sha256: str, image: SourceImage) -> str:
    """Return a text that names the source of a missing image; "" for other images.

    Args:
        reader: of the run.
        what: "original", "edited", "raw" or "mask".
        sha256: of the missing image.
        image: the source image of its task.
    """
    if there(reader, sha256):
        return ""
    if what == "original":
        return (
            f"not in the imported release, which contains no originals: ask the owner of {image.dataset} for image "
            f"{image.id}, then prepare it with `plantain ingest` (the SHA-256 of the prepared image starts with "
            f"{sha256[:12]})"
        )
    if what == "raw":
        return f"not in the imported release: the run that made it has the editor's answer (SHA-256 {sha256[:12]}...)"
    return (
        "not in the imported folder: import one that contains the release's images, or ask for the run that made it "
        f"(SHA-256 {sha256[:12]}...)"
    )


def story_document(reader: JournalReader, task: TaskRow) -> dict[str, object]:
    """Return everything that the journal has of a task, all generations, ready for JSON.

    Blobs are named by hash in the records; `files` gives the path of each, `absent` the source of one that an
    imported release did not contain. `verdicts` has those of a panel's members too, and the decisive ones, which
    are also in the attempts.
    """
    image = reader.image(task.task.image_id)
    attempts = reader.attempts(task.id)
    hashes = {image.prepared_sha256: "original"}
    for attempt in attempts:
        named = ((attempt.edited, "edited"), (attempt.raw, "raw"), (attempt.mask, "mask"))
        hashes |= {sha: what for sha, what in named if sha is not None and sha not in hashes}
    absent = {sha: absence(reader, what, sha, image) for sha, what in sorted(hashes.items()) if sha}
    return {
        **asdict(task.task),
        "generation": task.generation,
        "state": task.state.value,
        "round": task.round,
        "reason": task.reason,
        "image": asdict(image),
        "attempts": orjson.loads(dumps(attempts)),
        "verdicts": orjson.loads(dumps(reader.verdicts(task.id))),
        "published": [
            {"generation": score.generation, "round": score.round, **score.detail}
            for score in reader.scores(task.id)
            if score.metric == PUBLISHED
        ],
        "calls": [asdict(call) for call in reader.calls(task.id)],
        "files": {sha: str(reader.blob_path(sha)) for sha, why in absent.items() if not why},
        "absent": {sha: why for sha, why in absent.items() if why},
    }


ORDER = ("success", "failed", "undecided", "not_applicable", "stopped", "pending")


@dataclass(frozen=True, slots=True)
class Size:
    """Longest side of images in pixels, and most bytes of each file."""

    side: int
    limit: int


THUMBNAIL = Size(264, 16_000)
PAGE = Size(640, 120_000)


@dataclass(frozen=True, slots=True)
class RoundStory:
    """One attempt with its images as data URIs, or None.

    `panel` has the members' verdicts, `same_as` the earlier round with the same image, or 0, `by_hand` the corrections
    of readers, `published` the verdict that an imported edit came with.
    """

    attempt: Attempt
    edited: str | None
    difference: str | None
    outlined: bool
    panel: tuple[StoredVerdict, ...]
    same_as: int
    by_hand: tuple[StoredVerdict, ...] = ()
    published: Verdict | None = None

    @property
    def verdict(self) -> Verdict | None:
        """The judge's deciding verdict, else the published one."""
        return self.attempt.verdict or self.published


@dataclass(frozen=True, slots=True)
class Story:
    """One task's rounds, of all generations if `whole`. `remark` prevents a misunderstanding."""

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
    """Which tasks a gallery shows: ids in order, and for each state how many (shown, all)."""

    ids: tuple[str, ...]
    shown: tuple[tuple[str, int, int], ...]

    @property
    def complete(self) -> bool:
        return all(shown == total for _, shown, total in self.shown)


def select(reader: JournalReader, size: int, seed: int) -> Selection:
    """Choose up to `size` tasks, as evenly over the states as their numbers allow.

    Of each state the tasks with the smallest hash of (seed, task id) are taken, so that neither order nor appearance
    decides. Tasks that have not started are left out.
    """
    totals = started_by_state(reader)
    quotas = shared_out({state: totals[state] for state in ORDER if totals.get(state)}, size)
    chosen: list[str] = []
    for state, quota in quotas.items():
        ids = started_in_state(reader, state)
        chosen.extend(heapq.nsmallest(quota, ids, key=lambda task: _rank(seed, task)))
    return Selection(tuple(sorted(chosen)), tuple((s, quotas[s], totals[s]) for s in ORDER if s in totals))


def story_of(reader: JournalReader, task: TaskRow, size: Size, *, whole: bool = False) -> Story:
    """Return the story of a task's current generation, or of every generation, with images of the given size."""
    image = reader.image(task.task.image_id)
    before = image_of(reader, image.prepared_sha256, decode)
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
    """Return the first earlier round of the generation with the same bytes, or 0."""
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
    own = [v for v in members if (v.generation, v.round) == here]
    panel = tuple(v for v in own if not v.verdict.judge.startswith(PERSON))
    by_hand = tuple(v for v in own if v.verdict.judge.startswith(PERSON))
    published = published_in(reader, attempt)
    after = image_of(reader, attempt.edited, decode) if attempt.edited else None
    if after is None:
        return RoundStory(attempt, None, None, False, panel, same_as, by_hand, published)
    mask = image_of(reader, attempt.mask, decode_mask) if attempt.mask else None
    changed = None
    if before is not None and after.shape == before.shape:
        usable = mask if mask is not None and mask.shape == before.shape[:2] else None
        changed = difference(before, after, size.side, size.limit, usable)
    edited = data_uri(after, size.side, size.limit, synthetic=True)
    return RoundStory(attempt, edited, changed, mask is not None, panel, same_as, by_hand, published)


def published_in(reader: JournalReader, attempt: Attempt) -> Verdict | None:
    """Return the verdict that an imported attempt was published with, or None."""
    scores = [s for s in reader.scores(attempt.task_id, attempt.generation) if s.round == attempt.round]
    return published_verdict((s.metric, s.score.value, s.detail) for s in scores)


def remark(task: TaskRow, image: SourceImage) -> str:
    """Return a remark that prevents a misunderstanding about a task; "" if none is needed."""
    if task.task.kind == TaskKind.CONTROL:
        return "Control: nothing was meant to change."
    if image.synthetic and task.task.direction == Direction.REMOVE:
        return "Removes a finding that no patient had: this source image is itself synthetic."
    if image.synthetic:
        return "The source image is itself synthetic."
    return ""


def _rank(seed: int, task: str) -> bytes:
    return hashlib.sha256(f"{seed}\x1fgallery\x1f{task}".encode()).digest()
