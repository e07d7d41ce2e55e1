"""Runs of a million tasks: catalogue, journal and pictures as a real run leaves them, filled in minutes."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import orjson

from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.journal import (
    BlobRef,
    BlobStore,
    Journal,
    JournalReader,
    RecordedTask,
    RunHeader,
    StoredVerdict,
    TaskRow,
)
from plantain.journal.connect import JOURNAL_NAME, open_for_writing
from plantain.journal.rows import to_json
from plantain.pipeline.plan import SHARD, Shard, Share, enumerate_tasks, plan_digest
from plantain.pipeline.recipe import Recipe
from plantain.pixels.encode import encode_jpeg
from plantain.records import (
    OK,
    Attempt,
    Criterion,
    CriterionResult,
    EditTask,
    Observations,
    Outcome,
    OutcomeKind,
    TaskState,
    Usage,
    derive_seed,
)
from plantain.roles import EditedImage, EditRequest, EncodedImage, JudgeRequest, Reply, WriteRequest, failed
from simulated.releases import PATTERNS, drawn, numbered, source, verdict

FINDINGS = 6
WORDS = (
    "Add soft drusen, small and pale, temporal to the fovea of this image; keep vessels, disc and borders. "
)
REASON = "The change is where it was asked for, of the asked extent, and nothing else has moved. " * 4


@dataclass
class Simulated:
    """Fills all three roles: as slow, as faulty and as wordy as a hosted model, from a few pictures in turn.

    Three calls in a hundred break, four edits in a hundred bring no picture, three edits in ten are not accepted.
    """

    pictures: list[bytes]
    latency_s: float = 0.02
    name: str = "simulated/all"
    fingerprint: str = "1"

    async def _asked(self, seed: int) -> float:
        # Not of the seed alone: a call that breaks is made again.
        drawn = random.random()
        await asyncio.sleep(self.latency_s * random.uniform(0.5, 2.0))
        return drawn

    async def write(self, request: WriteRequest) -> Reply[str]:
        if await self._asked(request.seed) < 0.03:
            return failed(_BROKEN)
        return Reply(f"{WORDS * 3}({request.round}, {request.seed})", OK, usage(1800, 700), raw=RAW)

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        drawn = await self._asked(request.seed)
        if drawn < 0.03:
            return failed(_BROKEN)
        if request.seed % 25 == 0:
            return failed(Outcome(OutcomeKind.NO_IMAGE, "the answer holds no picture"), usage(1200, 90), RAW)
        picture = self.pictures[request.seed % len(self.pictures)]
        return Reply(EditedImage(EncodedImage(picture, "image/jpeg")), OK, usage(1200, 0, images=1), raw=RAW)

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        if await self._asked(request.seed) < 0.03:
            return failed(_BROKEN)
        return Reply(seen(request.seed % 10 >= 3), OK, usage(3100, 900), raw=RAW)


_BROKEN = Outcome(OutcomeKind.TRANSPORT, "the connection failed (ReadError)")
RAW = orjson.dumps({"candidates": [{"content": {"parts": [{"text": REASON}]}}], "usageMetadata": {}}).decode()


def usage(taken: int, given: int, images: int = 0) -> Usage:
    """What a call reports that it took."""
    return Usage(input_tokens=taken, output_tokens=given, images=images, served_model="simulated-1")


def seen(good: bool) -> Observations:
    """What a judge reports, at the usual length."""
    result = CriterionResult(good, 0.9, (), "Read off the pictures, in a sentence as long as most are.")
    return Observations(
        dict.fromkeys(Criterion, result), {"has_disease": good, "other_disease": False}, good, REASON
    )


def pictures(folder: Path, count: int) -> list[bytes]:
    """So many different pictures in normal form, 29 kB each: grey, with their number in the corner."""
    folder.mkdir(exist_ok=True)
    made = []
    for number in range(count):
        path = folder / f"{number}.jpg"
        if not path.exists():
            pixels = np.full((1024, 1024, 3), 96, np.uint8)
            pixels[:8, :128] = [[[(number >> bit & 1) * 255] * 3 for bit in range(16) for _ in range(8)]] * 8
            path.write_bytes(encode_jpeg(pixels))
        made.append(path.read_bytes())
    return made


def recipe_for(catalogue: Path) -> Recipe:
    """The build whose plan it is."""
    return Recipe.model_validate(
        {
            "name": "million",
            "data": {"catalogue": catalogue, "directions": ["add"], "check_text": False},
            "models": {"writer": "simulated/all", "editor": "simulated/all", "judge": "simulated/all"},
            "limits": {"concurrency": 64},
            "providers": {
                "simulated": {"kind": "openai-compatible", "base_url": "https://models.example/v1"}
            },
        }
    )


class Originals:
    """The catalogue's pictures: of 64 pixels, each with its own hash; written unsynced."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs, self._drawn = blobs, drawn(64)

    def put(self, number: int, *, write: bool = True) -> BlobRef:
        """The picture of that number, under its hash."""
        data, pixels = self._drawn[number % PATTERNS]
        data = numbered(data, number)
        sha256 = hashlib.sha256(data).hexdigest()
        if write:
            path = self._blobs.path(sha256)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return BlobRef(sha256, len(data), "image/jpeg", pixels)


def make_catalogue(folder: Path, tasks: int) -> None:
    """A catalogue whose images make that many tasks."""
    with Catalogue.create(folder) as catalogue:
        originals = Originals(catalogue.blobs)
        numbers = iter(range(-(-tasks // FINDINGS)))
        while batch := list(islice(numbers, 20_000)):
            images = [source(number, originals.put(number).sha256) for number in batch]
            with catalogue.transaction():
                catalogue.insert(images, {})


async def fill(
    run: Path, catalogue: Path, done: int | None, *, write: bool, shard: Shard | None = None
) -> None:
    """A run of the whole plan or of one shard of it, of which so many tasks are done: by the journal's own bulk writer.

    Args:
        run: made here.
        catalogue: whose plan it is.
        done: closed tasks, the first in the order in which a run takes them; None for all.
        write: lay the pictures down too, for an export or a merge.
        shard: the part of the plan whose run it is.
    """
    recipe, taxonomy = recipe_for(catalogue), load_taxonomy()
    with Catalogue.open(catalogue) as store:
        planned = sorted(enumerate_tasks(recipe, store, taxonomy), key=lambda task: task.id)
        images, first = -(-len(planned) // FINDINGS), len(planned) * (2 * shard.number if shard else 1)
        plan, of = plan_digest(recipe, store, taxonomy), len(planned)
        planned = planned if shard is None else [task for task in planned if shard.has(task.id)]
        done = len(planned) if done is None else done
        header = RunHeader(f"million-{done}", recipe.name, recipe.seed, recipe.frozen_part(), "0")
        async with await asyncio.to_thread(Journal.create, run, header) as journal:
            originals = Originals(store.blobs)
            blobs = Originals(BlobStore(run / "blobs"))
            if done:
                numbers = range(images)
                made = ((originals.put(number, write=False), number) for number in numbers)
                await journal.add_images((source(number, kept.sha256), kept) for kept, number in made)
                for number in numbers:
                    _link(store.blobs, journal.reader.blobs, originals.put(number, write=False).sha256)
            await journal.add_recorded(_recorded(planned[:done], blobs, first, write=write))
            await journal.add_tasks(planned[done:])
            if shard is not None:
                await journal.set_meta(SHARD, Share(shard, len(planned), of, plan).to_json())
                await journal.set_meta("plan_digest", plan)
    if done:
        _add_calls(run / JOURNAL_NAME)


def _link(there: BlobStore, here: BlobStore, sha256: str) -> None:
    path = here.path(sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.hardlink_to(there.path(sha256))


def _recorded(
    planned: Iterable[EditTask], blobs: Originals, first: int, *, write: bool
) -> Iterator[RecordedTask]:
    good, bad = verdict(good=True), verdict(good=False)
    number = first
    for task in planned:
        drawn = derive_seed(7, task.id) % 10
        rounds = 1 if drawn < 7 else 2
        kept, attempts, verdicts = [], [], []
        for round in range(1, rounds + 1):
            number += 1
            kept.append(blobs.put(number, write=write))
            sha = kept[-1].sha256
            words = f"{WORDS * 3}({round}, {number})"
            attempts.append(Attempt(task.id, 0, round, words, OK, sha, sha, judge_outcome=OK))
            fine = round == rounds and drawn != 9
            verdicts.append(StoredVerdict(task.id, 0, round, good if fine else bad))
        state = TaskState.SUCCESS if drawn != 9 else TaskState.FAILED
        row = TaskRow(task, 0, state, rounds, "" if drawn != 9 else "realism (hard edge)")
        yield RecordedTask(row, tuple(attempts), tuple(verdicts), (), tuple(kept))


_CALL = """
INSERT INTO call(task, generation, round, step, draw, tries, model, request_hash, state, outcome, final, served_model,
  usage, reserved_usd, cost_usd, latency_s, started_at, answer, raw)
SELECT task, generation, round, :step, 0, 1, 'simulated/all', lower(hex(randomblob(32))), 'settled', 'ok', 1,
  'simulated-1', '{"input_tokens":1800,"output_tokens":700}', 0.02, 0.01, 12.5, '2026-11-22T20:00:00+00:00',
  CASE :step WHEN 'write' THEN instruction WHEN 'edit' THEN '{"edited":"' || edited || '","raw":"' || raw || '"}'
  ELSE :seen END, :raw FROM attempt WHERE task >= :low AND task < :high
"""
_SENT = """
INSERT INTO sent(picture, image, destination, call, at)
SELECT i.prepared, i.id, 1, c.id, c.started_at FROM call c
  JOIN task t ON t.id = c.task JOIN image i ON i.id = t.image_id
"""


def _add_calls(journal: Path) -> None:
    """Three calls for each attempt, and what each sent: recorded tasks bring none with them."""
    said = to_json(seen(True))
    with closing(open_for_writing(journal)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for part in range(16):  # a task's calls lie near each other, as they do where a run made them
            low, high = f"{part:x}", f"{part + 1:x}" if part < 15 else "g"
            connection.execute("BEGIN")
            for step in ("write", "edit", "judge"):
                connection.execute(_CALL, {"step": step, "low": low, "high": high, "seen": said, "raw": RAW})
            connection.execute("COMMIT")
        connection.execute("BEGIN")
        connection.execute(
            "INSERT INTO destination VALUES (1, 'simulated/all', 'simulated', 'hosted', 'licence: open')"
        )
        connection.execute(_SENT)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def counts_of(run: Path) -> dict[str, int]:
    """Rows of each large table, and bytes of the journal."""
    with JournalReader.open(run) as reader:
        tables = ("task", "call", "attempt", "verdict", "criterion", "blob", "sent")
        rows = {
            name: int(reader.connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0])
            for name in tables
        }
    return {**rows, "journal MB": (run / JOURNAL_NAME).stat().st_size >> 20}
