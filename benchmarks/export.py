"""MB/s of `plantain export` and `plantain verify` against `cp` plus `sha256sum` of the same bytes in the same run.

The run is synthetic in its story and real in its bytes: 1024x1024 JPEG files in normal form (pieces of a real
retina), each with its own hash. Usage:

    python benchmarks/export.py --images 1000 20000 --layout parquet med-banana
    python benchmarks/export.py --attempts 100000      # peak memory with many small attempts
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import skimage.data

from plantain.journal import BlobRef, BlobStore, Journal, RecordedTask, RunHeader, StoredVerdict, TaskRow
from plantain.pixels.encode import encode_jpeg
from plantain.pixels.fingerprint import pixel_sha256
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
    task_id,
)
from plantain.rubrics import MED_BANANA, decide

PATTERNS = 40
ROUNDS = 4
"""Attempts of a task: three failures and a success."""

EXPORT_TARGET, VERIFY_TARGET = 0.5, 0.9


def drawn(side: int) -> list[tuple[bytes, str]]:
    """Different pictures and their pixel hashes."""
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
    """The same picture with another hash: a comment segment behind the JFIF header."""
    text = b"%012d" % number
    return data[:20] + b"\xff\xfe" + (len(text) + 2).to_bytes(2, "big") + text + data[20:]


def make_run(folder: Path, images: int, side: int, distinct: bool = True) -> None:
    """A run of that many attempts; unsynced, since nothing of it must outlive the benchmark."""
    asyncio.run(_make(folder, images, side, distinct))


async def _make(folder: Path, images: int, side: int, distinct: bool) -> None:
    header = RunHeader("benchmark", "benchmark", 7, {}, "0.1.0")
    store = BlobStore(folder / "blobs")
    pictures = drawn(side)

    def blob(number: int) -> BlobRef:
        data, pixels = pictures[number % PATTERNS]
        data = numbered(data, number) if distinct else data
        sha256 = hashlib.sha256(data).hexdigest()
        path = store.path(sha256)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return BlobRef(sha256, len(data), "image/jpeg", pixels)

    async with await asyncio.to_thread(Journal.create, folder, header) as journal:
        sources = [source(number) for number in range(images // ROUNDS)]
        await journal.add_images(
            (image, BlobRef(image.prepared_sha256, 0, "image/jpeg")) for image in sources
        )
        await journal.add_recorded(recorded(sources, blob))


def source(number: int) -> SourceImage:
    digest = hashlib.sha256(b"%d" % number).hexdigest()
    shape = Geometry(1024, 1024, "pad", 0, 0, 1024, 1024)
    return SourceImage(
        f"image{number}",
        "bench",
        "fundus",
        ("normal",),
        Licence.OPEN,
        digest,
        digest,
        shape,
        group=f"p{number // 2}",
    )


def recorded(sources: list[SourceImage], blob) -> Iterator[RecordedTask]:  # type: ignore[no-untyped-def]
    number = 0
    for image in sources:
        name = task_id(image.source_sha256, 0, "AMD", Direction.ADD)
        task = EditTask(name, image.id, "fundus", "AMD", Direction.ADD)
        attempts, verdicts, blobs = [], [], []
        for round in range(1, ROUNDS + 1):
            reference = blob(number)
            number += 1
            good = round == ROUNDS
            results = {
                c: CriterionResult(good, 0.5, (), "an instrument's reading, a sentence long")
                for c in Criterion
            }
            seen = Observations(
                results, good, False, good, "as long as a reason usually is, which is not very long"
            )
            told = decide(seen, MED_BANANA, judge="bench", policy="all-pass", threshold=0.7)
            blobs.append(reference)
            attempts.append(
                Attempt(
                    name,
                    0,
                    round,
                    "Add drusen at the macula. " * 12,
                    OK,
                    reference.sha256,
                    reference.sha256,
                    judge_outcome=OK,
                )
            )
            verdicts.append(StoredVerdict(name, 0, round, told))
        yield RecordedTask(
            TaskRow(task, 0, TaskState.SUCCESS, ROUNDS, ""),
            tuple(attempts),
            tuple(verdicts),
            (),
            tuple(blobs),
        )


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds, and peak memory in MB."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return time.perf_counter() - begun, usage.ru_maxrss / 1024


def plantain(*words: str) -> tuple[float, float]:
    return timed([sys.executable, "-m", "plantain", *words])


def measure(scratch: Path, images: int, layout: str) -> dict[str, object]:
    """One line of the table."""
    run, out, copy = scratch / f"run{images}", scratch / "out", scratch / "copy"
    if not run.exists():
        make_run(run, images, 1024)
        os.sync()
    for folder in (out, copy):
        shutil.rmtree(folder, ignore_errors=True)
    export_s, export_mb = plantain("export", str(run), "--to", str(out), "--layout", layout, "--json")
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
    os.sync()
    copy_s, _ = timed(["cp", "-r", str(out), str(copy)])
    begun = time.perf_counter()
    os.sync()
    sync_s = time.perf_counter() - begun
    sum_s, _ = timed(["sh", "-c", f"find {copy} -type f -print0 | xargs -0 sha256sum"])
    verify_s, verify_mb = plantain("verify", str(out), "--json")
    floor = copy_s + sum_s
    return {
        "images": images,
        "layout": layout,
        "MB": round(size),
        "export MB/s": round(size / export_s),
        "verify MB/s": round(size / verify_s),
        "cp+sha256sum MB/s": round(size / floor),
        "cp+sync+sha256sum MB/s": round(size / (floor + sync_s)),
        "export / floor": round(floor / export_s, 2),
        "export / durable floor": round((floor + sync_s) / export_s, 2),
        "verify / floor": round(floor / verify_s, 2),
        "export peak MB": round(export_mb),
        "verify peak MB": round(verify_mb),
    }


def memory(scratch: Path, attempts: int) -> dict[str, object]:
    """Peak memory of an export of very many small attempts, in every layout."""
    run, out = scratch / "many", scratch / "out"
    make_run(run, attempts, 64, distinct=False)
    layouts = "med-banana,parquet,preference,trajectory,webdataset"
    seconds, peak = plantain("export", str(run), "--to", str(out), "--layout", layouts, "--json")
    return {"attempts": attempts, "seconds": round(seconds), "export peak MB": round(peak)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, nargs="*", default=[1000])
    parser.add_argument("--layout", nargs="*", default=["parquet", "med-banana"])
    parser.add_argument("--attempts", type=int, default=0)
    parser.add_argument("--scratch", type=Path, default=None)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.scratch) as name:
        scratch = Path(name)
        if args.attempts:
            print(json.dumps(memory(scratch, args.attempts)), flush=True)
            return
        for images in args.images:
            for layout in args.layout:
                print(json.dumps(measure(scratch, images, layout)), flush=True)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"(this script itself: {own:.0f} MB)", file=sys.stderr)


if __name__ == "__main__":
    main()
