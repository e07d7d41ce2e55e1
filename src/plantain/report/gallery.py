"""Tasks in reports: the gallery's selection, and each task's history with images or as data."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice, zip_longest
from typing import TypeVar

import numpy as np
import orjson

from plantain.journal import BadBlob, JournalReader, StoredVerdict, TaskRow
from plantain.journal.questions.tasks import started_by_state, started_in_state
from plantain.journal.reader import BLOBS_ABSENT
from plantain.journal.rows import dumps
from plantain.journal.verdicts import PERSON, PUBLISHED, corrections_in, published_verdict
from plantain.pages.thumbnails import box_around, changed_region, data_uri, outline
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.boxes import Box
from plantain.pixels.decode import decode, decode_mask
from plantain.records import Attempt, Direction, Licence, SourceImage, TaskKind, TaskState, Verdict
from plantain.records.tasks import shared_out

T = TypeVar("T")


def there(reader: JournalReader, sha256: str) -> bool:
    """Return True unless the run is an imported release without this image."""
    return reader.meta(BLOBS_ABSENT) is None or reader.has_blob(sha256)


def image_of(reader: JournalReader, sha256: str, decode: Callable[[bytes], T]) -> T | None:
    """Read and decode an image of a run; None if missing or damaged, which `reader.blobs.damaged` records."""
    if not there(reader, sha256):
        return None
    try:
        return decode(reader.read_blob(sha256))
    except BadBlob:
        reader.blobs.damaged |= {sha256}
        return None


def absence(reader: JournalReader, what: str, sha256: str, image: SourceImage) -> str:
    """Explain where an image that is missing in an imported folder can be obtained; return "" if it is there.

    Args:
        reader: journal of the run.
        what: "original", "edited", "raw" or "mask".
        sha256: hash of the image.
        image: the source image of its task.
    """
    if there(reader, sha256):
        return ""
    source = "ask for the run that made it"
    if what == "original":
        source = (
            f"ask the owner of {image.dataset} for image {image.id} and prepare it with `plantain ingest`"
        )
    return f"not in the imported release: {source} (SHA-256 {sha256[:12]}...)"


def story_document(reader: JournalReader, task: TaskRow) -> dict[str, object]:
    """Return all journal entries of a task, of all generations, as a dictionary for JSON.

    Records name images by SHA-256. `files` maps each hash to its path; `absent` maps the hash of an image that is not
    here to a sentence on where to obtain it. `verdicts` has every verdict, also those of a panel's members; the
    decisive ones are also in their attempts.
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
    """The longest side of a page's images in pixels, and the maximum size of each file in bytes."""

    side: int
    limit: int


FRAME, WHOLE = Size(88, 3_000), Size(180, 7_000)
"""Of a filmstrip's frames, and of whole images where others show the change enlarged."""
THUMBNAIL, PAIR, PAGE = Size(264, 12_000), Size(420, 26_000), Size(640, 60_000)
"""Of images enlarged around the change: in a gallery, at the head of a report, and on a task's page."""
PAIRS = 6
"""Tasks at the head of a report."""


@dataclass(frozen=True, slots=True)
class RoundStory:
    """One attempt with its images as data URIs, or None, cropped to the task's box.

    `frame` is a small image, `outline` an SVG path in pixels of the original:
    the editor's mask if `masked`, else where the image changed. `panel` has the members' verdicts, `same_as` the
    earlier round with the same image, or 0, `by_hand` the corrections of readers, `published` the verdict that an
    imported edit came with.
    """

    attempt: Attempt
    edited: str | None
    frame: str | None
    outline: str
    masked: bool
    panel: tuple[StoredVerdict, ...]
    same_as: int
    by_hand: tuple[StoredVerdict, ...] = ()
    published: Verdict | None = None

    @property
    def verdict(self) -> Verdict | None:
        """The judge's deciding verdict, else the published one; None without either."""
        return self.attempt.verdict or self.published


@dataclass(frozen=True, slots=True)
class Story:
    """One task with the rounds and images that a page shows, of all generations if `whole`.

    `original` is the whole image, of `shape` (H, W); `before` its part in `box`, which contains each round's change.
    """

    task: TaskRow
    image: SourceImage
    original: str | None
    before: str | None
    box: Box | None
    shape: tuple[int, ...]
    rounds: tuple[RoundStory, ...]
    remark: str
    whole: bool

    @property
    def name(self) -> str:
        """The image's id for pages; "" for a credentialed image, because pages are shared."""
        return "" if self.image.licence is Licence.CREDENTIALED else self.image.id

    @property
    def counted(self) -> int:
        """The number of the task's rounds, without those superseded by a retry."""
        return sum(not shown.attempt.superseded for shown in self.rounds)

    @property
    def last(self) -> RoundStory | None:
        """The last round with an edited image; None if no round has an image."""
        return next((one for one in reversed(self.rounds) if one.frame), None)


@dataclass(frozen=True, slots=True)
class Selection:
    """The tasks that a gallery shows: ids in order, and for each state the numbers (shown, all)."""

    ids: tuple[str, ...]
    shown: tuple[tuple[str, int, int], ...]

    @property
    def complete(self) -> bool:
        return all(shown == total for _, shown, total in self.shown)


def select(reader: JournalReader, size: int, seed: int) -> Selection:
    """Choose up to `size` tasks for a gallery, as evenly over the states as possible.

    Of each state the tasks with the smallest hash of (seed, task id) are chosen, which is independent of order and
    appearance. Tasks that have not started are skipped.
    """
    totals = started_by_state(reader)
    quotas = shared_out({state: totals[state] for state in ORDER if totals.get(state)}, size)
    chosen: list[str] = []
    for state, quota in quotas.items():
        ids = started_in_state(reader, state)
        chosen.extend(heapq.nsmallest(quota, ids, key=lambda task: _rank(seed, task)))
    return Selection(tuple(sorted(chosen)), tuple((s, quotas[s], totals[s]) for s in ORDER if s in totals))


def leading(reader: JournalReader, ids: Sequence[str], most: int = PAIRS) -> list[str]:
    """Choose up to `most` tasks for the top of a report: successes of each modality in turn, then a failed one."""
    rows = [row for row in map(reader.task, ids) if row.round and row.task.kind == TaskKind.EDIT]
    last = [row.id for row in rows if row.state == TaskState.FAILED][:1]
    last = last or [row.id for row in rows if row.state == TaskState.UNDECIDED][:1]
    by_modality: dict[str, list[str]] = {}
    for row in rows:
        if row.state == TaskState.SUCCESS:
            by_modality.setdefault(row.task.modality, []).append(row.id)
    turns = filter(None, chain.from_iterable(zip_longest(*by_modality.values())))
    return [*islice(turns, most - len(last)), *last]


def story_of(reader: JournalReader, task: TaskRow, size: Size, *, whole: bool = False) -> Story:
    """Collect a task's rounds and images for a page, of the current generation or, with `whole`, of all."""
    image = reader.image(task.task.image_id)
    before = image_of(reader, image.prepared_sha256, decode)
    generation = None if whole else task.generation
    attempts = reader.attempts(task.id, generation)
    verdicts = reader.verdicts(task.id, generation)
    counting = corrections_in(verdicts)
    members = [
        v for v in verdicts if not v.decisive and (v in counting or not v.verdict.judge.startswith(PERSON))
    ]
    edits = [_Edit.read(reader, attempt, before) for attempt in attempts]
    regions = [edit.region for edit in edits if edit.region is not None]
    box = box_around(np.logical_or.reduce(regions)) if regions else None
    last = max((n for n, edit in enumerate(edits) if edit.pixels is not None), default=-1)

    def shown(pixels: Pixels | None, size: Size, synthetic: bool, part: Box | None) -> str | None:
        if pixels is None:
            return None
        return data_uri(part.cut(pixels) if part else pixels, size.side, size.limit, synthetic=synthetic)

    def round_of(number: int, attempt: Attempt, edit: _Edit) -> RoundStory:
        here = (attempt.generation, attempt.round)
        own = [v for v in members if (v.generation, v.round) == here]
        part = box if edit.region is not None else None
        return RoundStory(
            attempt,
            shown(edit.pixels, size, True, part) if whole or number == last else None,
            shown(edit.pixels, FRAME, True, part),
            "" if edit.region is None else outline(edit.region),
            edit.mask is not None,
            tuple(v for v in own if not v.verdict.judge.startswith(PERSON)),
            came_back_from(attempt, attempts),
            tuple(v for v in own if v.verdict.judge.startswith(PERSON)),
            published_in(reader, attempt),
        )

    return Story(
        task=task,
        image=image,
        original=shown(before, size if whole else WHOLE, image.synthetic, None),
        before=shown(before, size, image.synthetic, box) if last >= 0 else None,
        box=box,
        shape=() if before is None else before.shape[:2],
        rounds=tuple(map(round_of, range(len(edits)), attempts, edits)),
        remark=remark(task, image),
        whole=whole,
    )


@dataclass(frozen=True, slots=True)
class _Edit:
    """An attempt's image, the editor's mask, and the region that changed, each None if it is not there."""

    pixels: Pixels | None = None
    mask: Mask | None = None
    region: Mask | None = None

    @classmethod
    def read(cls, reader: JournalReader, attempt: Attempt, before: Pixels | None) -> _Edit:
        pixels = image_of(reader, attempt.edited, decode) if attempt.edited else None
        if pixels is None or before is None or pixels.shape != before.shape:
            return cls(pixels)
        mask = image_of(reader, attempt.mask, decode_mask) if attempt.mask else None
        if mask is None or mask.shape != before.shape[:2] or not mask.any():
            return cls(pixels, None, changed_region(before, pixels))
        return cls(pixels, mask, mask)


def came_back_from(attempt: Attempt, attempts: Sequence[Attempt]) -> int:
    """Return the first earlier round of the generation with a byte-identical image, or 0."""
    earlier = (a for a in attempts if (a.generation, a.edited) == (attempt.generation, attempt.edited))
    first = next(earlier, attempt).round
    return first if attempt.edited and first < attempt.round else 0


def published_in(reader: JournalReader, attempt: Attempt) -> Verdict | None:
    """Return the verdict that an imported attempt was published with, or None."""
    scores = [s for s in reader.scores(attempt.task_id, attempt.generation) if s.round == attempt.round]
    return published_verdict((s.metric, s.score.value, s.detail) for s in scores)


def remark(task: TaskRow, image: SourceImage) -> str:
    """Return a remark that prevents a misunderstanding about a task; "" if none is needed."""
    if image.synthetic and task.task.direction == Direction.REMOVE:
        return "Removes a finding that no patient had: this source image is itself synthetic."
    if image.synthetic:
        return "The source image is itself synthetic."
    return ""


def _rank(seed: int, task: str) -> bytes:
    return hashlib.sha256(f"{seed}\x1fgallery\x1f{task}".encode()).digest()
