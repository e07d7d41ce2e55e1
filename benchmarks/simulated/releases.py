"""Runs for benchmarks of releases: their story is made up, their bytes are real, and each image has its own hash."""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import skimage.data

from plantain.journal import BlobRef, BlobStore, Journal, RecordedTask, RunHeader, StoredVerdict, TaskRow
from plantain.pixels.decode import pixel_sha256
from plantain.pixels.encode import encode_jpeg
from plantain.records import (
    OK,
    Attempt,
    Criterion,
    CriterionResult,
    Direction,
    EditTask,
    Geometry,
    Licence,
    Observations,
    SourceImage,
    TaskState,
    Verdict,
    task_id,
)
from plantain.rubrics import MED_BANANA, decide

PATTERNS = 40
ROUNDS = 4
"""Attempts of a task: three failures and a success."""

INSTRUCTION = "Add drusen at the macula. " * 12


def drawn(side: int) -> list[tuple[bytes, str]]:
    """Different images and their pixel hashes."""
    retina = skimage.data.retina()[:1400, :1400]
    made = []
    for number in range(PATTERNS):
        turn = cv2.getRotationMatrix2D((700, 700), number * 9, 1.0)
        pixels = np.ascontiguousarray(
            cv2.warpAffine(retina, turn, (1400, 1400))[180 : 180 + side, 180 : 180 + side]
        )
        data = encode_jpeg(pixels)
        made.append((data, pixel_sha256(data)))
    return made


def numbered(data: bytes, number: int) -> bytes:
    """The same image with another hash: a comment segment behind the JFIF header."""
    text = b"%012d" % number
    return data[:20] + b"\xff\xfe" + (len(text) + 2).to_bytes(2, "big") + text + data[20:]


def make_run(folder: Path, attempts: int, side: int, rounds: int = ROUNDS) -> None:
    """A run of that many attempts with images of `side` pixels, made in a process of its own.

    Unsynced, since nothing of it must outlive the benchmark; and in another process, because the peak memory that
    Linux reports for a child is never less than its parent's.
    """
    child = multiprocessing.get_context("spawn").Process(target=_make, args=(folder, attempts, side, rounds))
    child.start()
    child.join()
    if child.exitcode:
        raise SystemExit(f"no run could be made in {folder}")


def _make(folder: Path, attempts: int, side: int, rounds: int) -> None:
    asyncio.run(_fill(folder, attempts, side, rounds))


async def _fill(folder: Path, attempts: int, side: int, rounds: int) -> None:
    header = RunHeader("benchmark", "benchmark", 7, {}, "0.1.0")
    store = BlobStore(folder / "blobs")
    images = drawn(side)

    def blob(number: int) -> BlobRef:
        data, pixels = images[number % PATTERNS]
        data = numbered(data, number)
        sha256 = hashlib.sha256(data).hexdigest()
        path = store.path(sha256)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return BlobRef(sha256, len(data), "image/jpeg", pixels)

    async with await asyncio.to_thread(Journal.create, folder, header) as journal:
        prepared = [blob(attempts + number) for number in range(attempts // rounds)]
        sources = [source(number, kept.sha256) for number, kept in enumerate(prepared)]
        await journal.add_images(zip(sources, prepared, strict=True))
        await journal.add_recorded(recorded(sources, rounds, blob))


def source(number: int, prepared_sha256: str) -> SourceImage:
    digest = hashlib.sha256(b"%d" % number).hexdigest()
    shape = Geometry(1024, 1024, "pad", 0, 0, 1024, 1024)
    return SourceImage(
        f"image{number}",
        "bench",
        "fundus",
        ("normal",),
        Licence.OPEN,
        digest,
        prepared_sha256,
        shape,
        group=f"p{number // 2}",
    )


def recorded(
    sources: list[SourceImage], rounds: int, blob: Callable[[int], BlobRef]
) -> Iterator[RecordedTask]:
    """A task for each source: every round fails but the last."""
    for number, image in enumerate(sources):
        name = task_id(image.source_sha256, 0, "AMD", Direction.ADD)
        task = EditTask(name, image.id, "fundus", "AMD", Direction.ADD)
        blobs = [blob(number * rounds + round) for round in range(rounds)]
        attempts = [
            Attempt(name, 0, round, INSTRUCTION, OK, kept.sha256, kept.sha256, judge_outcome=OK)
            for round, kept in enumerate(blobs, start=1)
        ]
        verdicts = [
            StoredVerdict(name, 0, round, verdict(good=round == rounds)) for round in range(1, rounds + 1)
        ]
        row = TaskRow(task, 0, TaskState.SUCCESS, rounds, "")
        yield RecordedTask(row, tuple(attempts), tuple(verdicts), (), tuple(blobs))


def verdict(good: bool) -> Verdict:
    """A judge's verdict of the usual length."""
    result = CriterionResult(good, 0.5, (), "an instrument's reading, a sentence long")
    seen = Observations(
        dict.fromkeys(Criterion, result),
        {"has_disease": good, "other_disease": False},
        good,
        "as long as a reason usually is, which is short",
    )
    return decide(seen, MED_BANANA, judge="bench", policy="all-pass", threshold=0.7)


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds that a command takes, and its peak memory in MB."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def plantain(*words: str) -> tuple[float, float]:
    """The same of one of our own commands."""
    return timed([sys.executable, "-m", "plantain", *words])
