"""Small runs with everything that can happen to a task, made without a model."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import skimage.data

from plantain.journal import (
    BlobRef,
    CallResult,
    Journal,
    RecordedTask,
    RunHeader,
    StartedCall,
    StoredScore,
    StoredVerdict,
    TaskRow,
)
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import pixel_sha256
from plantain.pixels.encode import encode_jpeg, encode_mask, encode_source
from plantain.records import (
    OK,
    Attempt,
    CallKey,
    Criterion,
    CriterionResult,
    Direction,
    EditTask,
    FailureCode,
    Geometry,
    Licence,
    Observations,
    Outcome,
    OutcomeKind,
    Score,
    SourceImage,
    Step,
    TaskState,
    Usage,
    Verdict,
    task_id,
)
from plantain.rubrics import MED_BANANA, decide

SIDE = 64
REFUSED = Outcome(OutcomeKind.REFUSED, "the provider's safety filter")

STORIES = (
    # state, the result of each round: "+" qualified, "-" judged and not, "r" refused, "u" edited but never judged
    (TaskState.SUCCESS, "+"),
    (TaskState.SUCCESS, "--+"),
    (TaskState.FAILED, "-r-"),
    (TaskState.SUCCESS, "r+"),
    (TaskState.NOT_APPLICABLE, "rr"),
    (TaskState.STOPPED, "-u"),
    (TaskState.SUCCESS, "-+"),
    (TaskState.PENDING, ""),
)


def edited_image(number: int) -> bytes:
    """Return an edited image in normal form; a different piece of a real retina for every number."""
    return encode_jpeg(_piece(number))


@cache
def original(number: int) -> bytes:
    """Return a prepared source image without mark: another piece of the same retina."""
    return encode_source(_piece(number + 7))


def _piece(number: int) -> Pixels:
    y, x = (number * 37) % (1400 - SIDE), (number * 53) % (1400 - SIDE)
    return np.ascontiguousarray(_retina()[y : y + SIDE, x : x + SIDE])


@cache
def _retina() -> Pixels:
    return np.asarray(skimage.data.retina())


def source_image(number: int, licence: Licence = Licence.OPEN) -> SourceImage:
    """Return an image of one of a few patients, from two datasets."""
    digest = hashlib.sha256(f"source {number}".encode()).hexdigest()
    return SourceImage(
        id=f"eye {number}",
        dataset="ODIR-5K" if number % 3 else "folder of mine",
        modality="fundus",
        labels=("normal",),
        licence=licence,
        source_sha256=digest,
        prepared_sha256=hashlib.sha256(original(number)).hexdigest(),
        geometry=Geometry(1000, 900, "pad", 0, 51, 1024, 922),
        group=f"patient {number // 2}" if number % 3 else None,
        note=f"a photograph, eye {number}",
    )


def verdict(good: bool, number: int, judge: str = "offline/instruments") -> Verdict:
    """Return a verdict that passes everything, or fails realism."""
    seen = Observations(
        criteria={
            name: CriterionResult(
                good or name is not Criterion.REALISM,
                0.9,
                () if good else (FailureCode.HARD_EDGE,),
                "the rim — sharp" if not good else "",
            )
            for name in Criterion
        },
        facts={"has_disease": True, "other_disease": False},
        opinion=good,
        reason=f"looked at {number}",
    )
    return decide(seen, MED_BANANA, judge=judge, policy="all-pass", threshold=0.7)


def make_run(
    folder: Path,
    images: int = 6,
    *,
    licence: Licence = Licence.OPEN,
    sources: Sequence[SourceImage] | None = None,
) -> Path:
    """Write a run of `images` (or of these) times two findings; every story of STORIES in turn."""
    sources = sources or [source_image(number, licence) for number in range(images)]
    asyncio.run(_make(folder, sources))
    return folder


async def _make(folder: Path, sources: Sequence[SourceImage]) -> None:
    frozen = {"seed": 7, "loop": {"max_rounds": 5, "policy": "all-pass", "threshold": 0.7}, "models": {}}
    header = RunHeader("0123456789abcdef", "a small run", 13, dict(frozen), "0.1.0")
    async with await asyncio.to_thread(Journal.create, folder, header) as journal:
        ink = _Ink(journal)
        known = {hashlib.sha256(original(number)).hexdigest(): original(number) for number in range(20)}
        prepared = [journal.put_blob(known[image.prepared_sha256], "image/jpeg") for image in sources]
        await journal.add_images(zip(sources, prepared, strict=True))
        await journal.add_recorded(_tasks(sources, ink))
        await _some_calls(journal)
        await journal.add_tasks([_task(sources[0], "Myopia", Direction.ADD)])


class _Ink:
    """Images that are drawn once."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[int, BlobRef] = {}
        self.mask = journal.put_blob(encode_mask(np.eye(SIDE, dtype=bool)), "image/png")

    def blob(self, number: int) -> BlobRef:
        if number not in self._known:
            data = edited_image(number)
            blob = self._journal.put_blob(data, "image/jpeg")
            self._known[number] = replace(blob, pixel_sha256=pixel_sha256(data))
        return self._known[number]


def _task(image: SourceImage, finding: str, direction: Direction) -> EditTask:
    name = task_id(image.source_sha256, 0, finding, direction)
    return EditTask(name, image.id, image.modality, finding, direction)


def _tasks(sources: Sequence[SourceImage], ink: _Ink) -> Iterator[RecordedTask]:
    number = 0
    for image in sources:
        for finding, direction in (("AMD", Direction.ADD), ("Diabetic Macular Edema", Direction.REMOVE)):
            state, story = STORIES[number % len(STORIES)]
            task = _task(image, finding, direction)
            yield _recorded(task, state, story, ink, number, retried=number % 5 == 1)
            number += 1


def _recorded(
    task: EditTask, state: TaskState, story: str, ink: _Ink, number: int, *, retried: bool
) -> RecordedTask:
    attempts: list[Attempt] = []
    verdicts: list[StoredVerdict] = []
    scores: list[StoredScore] = []
    blobs: list[BlobRef] = [ink.mask]
    for generation, rounds in enumerate(("-r", story) if retried else (story,)):
        for round, sign in enumerate(rounds, 1):
            attempt = Attempt(
                task.id,
                generation,
                round,
                f"{task.direction} {task.finding}, “try” {round}",
                superseded=False,
            )
            attempt = replace(attempt, superseded=retried and generation == 0)
            if sign == "r":
                attempts.append(replace(attempt, edit_outcome=REFUSED))
                continue
            blob = ink.blob(number * 16 + generation * 8 + round)
            blobs.append(blob)
            attempts.append(
                replace(
                    attempt,
                    edit_outcome=OK,
                    edited=blob.sha256,
                    raw=blob.sha256,
                    mask=ink.mask.sha256 if round % 2 else None,
                    support="local",
                    judge_outcome=None if sign == "u" else OK,
                )
            )
            if sign != "u":
                judged = verdict(sign == "+", number)
                verdicts.append(StoredVerdict(task.id, generation, round, replace(judged, judge="panel")))
                verdicts.append(StoredVerdict(task.id, generation, round, judged, draw=1, decisive=False))
                scores.append(StoredScore(task.id, generation, round, "ssim", Score(0.5 + round / 100)))
                scores.append(
                    StoredScore(task.id, generation, round, "cp", Score(None, "no mask"), {"why": [1]})
                )
    last = len(story)
    row = TaskRow(task, int(retried), state, last if state is not TaskState.PENDING else 0, "")
    if state not in (TaskState.SUCCESS, TaskState.PENDING):
        row = replace(row, reason="realism (hard edge)")
    return RecordedTask(row, tuple(attempts), tuple(verdicts), tuple(scores), tuple(blobs))


async def _some_calls(journal: Journal) -> None:
    """Calls of one task, for the models that a release names."""
    task = next(journal.reader.tasks(state=TaskState.SUCCESS))
    for step, model in (
        (Step.WRITE, "offline/templates"),
        (Step.EDIT, "offline/procedural"),
        (Step.JUDGE, "g/x"),
    ):
        call = StartedCall(CallKey(task.id, 0, 1, step), 1, model, "f" * 64)
        number = await journal.start_call(call)
        usage = Usage(served_model=f"{model}@2")
        await journal.settle_call(
            CallResult(number, OK, True, usage=usage, latency_s=0.1, answer="x", raw="y")
        )


def tree(root: Path) -> dict[str, str]:
    """Return every file of a folder with its SHA-256."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    """Return every row of a table of a release."""
    files = sorted(out.glob(f"data/{table}/*.parquet"))
    return [row for path in files for row in pq.read_table(path).to_pylist()]


def every_byte(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file as it is and unpacked: text of a .gz, names and members of a tar, cells of a table."""
    for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
        if not path.is_file():
            continue
        name = str(path.relative_to(root.parent))
        yield name, path.read_bytes()
        if path.suffix == ".gz":
            yield name, gzip.decompress(path.read_bytes())
        elif path.suffix == ".tar":
            with tarfile.open(path) as tar:
                for member in tar:
                    file = tar.extractfile(member)
                    assert file is not None
                    yield f"{name}: {member.name}", file.read()
        elif path.suffix == ".parquet":
            table = pq.read_table(path)
            yield name, repr(table.to_pylist()).encode() + repr(table.schema).encode()
            for row in table.to_pylist():
                for cell in row.values():
                    data = cell.get("bytes") if isinstance(cell, dict) else cell
                    if isinstance(data, bytes):
                        yield name, data
