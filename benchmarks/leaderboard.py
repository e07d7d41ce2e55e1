"""A full leaderboard from stored scores: 1,000 samples x 8 models and 4 baselines, 13 organs, 10 metrics.

The scores lie in a journal as `bench score` leaves them (`bench_table.py` times the scoring itself). A process of its
own reads them all, makes the table with intervals, bounds and 28 paired differences for each metric and organ, and
writes the page with its figures, CSV, JSON and LaTeX; no gallery. Seconds of processor and peak memory.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from plantain.bench.benchmark.organs import ORGANS
from plantain.bench.generate.arms import Arm, ArmKind
from plantain.bench.generate.baselines import BASELINES
from plantain.bench.generate.runfile import BenchHeader, SampleFacts, write_bench
from plantain.journal import BlobRef, Journal, RecordedTask, RunHeader, StoredScore, TaskRow
from plantain.records import (
    OK,
    Attempt,
    Direction,
    EditTask,
    Geometry,
    Licence,
    Score,
    SourceImage,
    TaskKind,
    TaskState,
    unscored,
)

SAMPLES, MODELS, TASKS = 1000, 8, 70
METRICS = (
    "ea@gemini/m/D", "cp@gemini/m/D", "vq@gemini/m/D", "masked_ssim", "masked_ssim_fov", "cp_reference", "ssim", "psnr",
    "lpips", "clip_isim",
)  # fmt: skip
MOST_SECONDS, MOST_MEGABYTES = 30.0, 600.0


async def make(run: Path) -> None:
    """The run, with the means of the eight models 0.03 apart."""
    arms = [Arm(f"vendor/model-{i}", f"vendor/model-{i}") for i in range(MODELS)]
    arms += [Arm(label, f"baseline/{label}", ArmKind.BASELINE) for label in BASELINES]
    samples = {str(i): facts(i) for i in range(SAMPLES)}
    async with Journal.create(run, RunHeader("full", "full", 7, {}, "0.1.0")) as journal:
        blob = journal.put_blob(b"one picture stands for all", "image/png")
        await write_bench(journal, BenchHeader("gone", "Full size", "0"), {a.label: a for a in arms}, samples)
        await journal.add_images((image(i, blob), blob) for i in range(SAMPLES))
        await journal.add_recorded(recorded(arms, blob))


def facts(i: int) -> SampleFacts:
    organ = list(ORGANS)[i * i % len(ORGANS)]
    task = f"Task {i % TASKS}"
    words = ("prompt", "", "", "", "change", "photograph", "open")
    return SampleFacts(
        str(i), organ, task, f"source-{i * 9 // 10}", *words, (512, 512), True, True, 0.1, str(i)
    )


def image(i: int, blob: BlobRef) -> SourceImage:
    geometry = Geometry(512, 512, "pad", 0, 0, 512, 512)
    return SourceImage(str(i), "full", "photograph", (), Licence.OPEN, blob.sha256, blob.sha256, geometry)


def recorded(arms: list[Arm], blob: BlobRef) -> Iterator[RecordedTask]:
    rng = np.random.default_rng(1)
    for i in range(SAMPLES):
        hard = rng.normal(0, 0.1)
        for j, arm in enumerate(arms):
            task = EditTask(
                f"{i:06d}{j:04d}", str(i), facts(i).organ, arm.label, Direction.CHANGE, TaskKind.BENCH
            )
            attempt = Attempt(task.id, 0, 1, "prompt", OK, blob.sha256, blob.sha256)
            values = np.clip(0.5 + 0.03 * j + hard + rng.normal(0, 0.1, len(METRICS)), 0, 1)
            scores = tuple(
                StoredScore(
                    task.id, 0, 1, name, unscored("refused") if rng.random() < 0.01 else Score(float(value))
                )
                for name, value in zip(METRICS, values, strict=True)
            )
            row = TaskRow(task, 0, TaskState.SUCCESS, 1, "")
            yield RecordedTask(row, (attempt,), scores=scores, blobs=(blob,))


def measured(run: Path, to: Path) -> None:
    """What the timed process does."""
    begun = time.process_time()
    from plantain.bench.generate.runfile import BenchRun
    from plantain.bench.leaderboard.pages import write_leaderboard
    from plantain.bench.leaderboard.table_rows import read_scores
    from plantain.bench.leaderboard.tables import make_table

    imported = time.process_time()
    with BenchRun.open(run) as opened:
        scores = read_scores(opened)
    read = time.process_time()
    table = make_table(scores)
    made = time.process_time()
    page = write_leaderboard(run, to)
    written = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"import {imported - begun:.1f} s, read {read - imported:.1f} s, table {made - read:.1f} s, ", end=""
    )
    print(f"everything again with page and figures {written - made:.1f} s; peak {peak:.0f} MB")
    print(f"{len(table.cells) + len(table.tasks)} cells, page {page.stat().st_size / 1e6:.1f} MB")
    seconds = written - begun
    met = seconds <= MOST_SECONDS and peak <= MOST_MEGABYTES
    word = "met" if met else "MISSED"
    print(f"{seconds:.1f} s of processor: target {MOST_SECONDS:.0f} s and {MOST_MEGABYTES:.0f} MB {word}")
    sys.exit(0 if met else 1)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        asyncio.run(make(run))
        print(f"{SAMPLES} samples, {MODELS} models, {len(BASELINES)} baselines, {len(METRICS)} metrics")
        return subprocess.run([sys.executable, __file__, str(run), folder], check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) > 2:
        measured(Path(sys.argv[1]), Path(sys.argv[2]))
    sys.exit(main())
