"""A full table from stored outputs: scoring, then the table, each a process of its own, with time and peak memory.

The benchmark has real crops of one photograph at 512 x 512; its outputs (four baselines, four planted editors) are
stored first and that is not timed; beyond 25 samples the same pictures come back under other names. Then every output
is decoded and measured by the five metrics that need no network, and the table is made with its intervals and paired
differences. Judges are left out: their time is a provider's. Also printed: the scoring of a run in which nothing is
lacking, and the memory at two sizes, which must hardly differ.

    python benchmarks/bench_table.py [SAMPLES]      default 40; 1000 is the paper's size and takes minutes
"""

from __future__ import annotations

import asyncio
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import orjson
import skimage.data

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.medebench import ORGANS
from plantain.bench.benchmark.native_format import BenchmarkWriter, encode_png
from plantain.bench.benchmark.samples import Sample, plain_image
from plantain.bench.generate.arms import bench_task_id
from plantain.bench.generate.generate import generate
from plantain.bench.generate.plan import sample_facts
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.generate.runfile import BenchRun, Output, write_bench
from plantain.bench.leaderboard.scores import read_scores
from plantain.bench.leaderboard.tables import make_table
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.bench.score.suite import PIXEL_METRICS
from plantain.journal import BlobRef, Journal, RecordedTask
from plantain.metrics.networks.encoders import Networks
from plantain.pixels.decode import decode
from plantain.records import Licence
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply
from plantain.runs.settings.terms import Limits, Terms

SIDE = 512
DISTINCT = 25
"""Samples of which the outputs are really made; more are these again, and cost scoring nothing less."""
MOST_MEMORY_MB = 1500.0
MOST_GROWTH = 1.25
"""Peak memory of scoring at the full size over that at a quarter of it."""


class Brightener:
    """Adds a soft disc of one strength, and noise."""

    fingerprint = "1"

    def __init__(self, by: float, noise: float) -> None:
        self.name = f"planted/by-{by:g}-noise-{noise:g}"
        self._by, self._noise = by, noise

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        return await asyncio.to_thread(self._edit, request)

    def _edit(self, request: EditRequest) -> Reply[EditedImage]:
        pixels = changed(decode(request.original.data), self._by)
        if self._noise:
            rng = np.random.default_rng(int(request.image.id))
            pixels = np.clip(pixels + rng.normal(0, self._noise, pixels.shape), 0, 255).astype(np.uint8)
        return Reply(EditedImage(EncodedImage(encode_png(pixels), "image/png")))


def changed(pixels: np.ndarray, by: float) -> np.ndarray:
    rows, columns = np.mgrid[:SIDE, :SIDE]
    soft = np.clip((70 - np.hypot(rows - 200, columns - 280)) / 20, 0, 1)
    return np.clip(pixels + (by * soft)[..., None], 0, 255).astype(np.uint8)


def make(folder: Path, samples: int) -> None:
    """A benchmark and a run of this size; beyond `DISTINCT` samples the pictures come back under other ids."""
    make_distinct(folder, min(samples, DISTINCT))
    if samples > DISTINCT:
        asyncio.run(repeat(folder, samples))


async def repeat(folder: Path, samples: int) -> None:
    """Makes `samples` of the distinct ones, in the benchmark's file and in the journal, over the same files."""
    metadata = folder / "bench" / "benchmark.json"
    said = orjson.loads(metadata.read_bytes())
    rows = said["samples"]
    said["samples"] = [
        {**rows[i % DISTINCT], "id": str(i), "cluster": f"c{i}", "image": None} for i in range(samples)
    ]
    metadata.write_bytes(orjson.dumps(said))
    bench = Benchmark.load(folder / "bench")
    small = folder / "small"
    (folder / "run").rename(small)
    shutil.copytree(small / "blobs", folder / "run" / "blobs")
    facts = {s.id: sample_facts(bench, s) for s in bench.samples}
    with BenchRun.open(small) as made:
        async with Journal.create(folder / "run", made.reader.header) as journal:
            header = replace(made.header, digest=bench.digest)
            await write_bench(journal, header, made.arms.values(), facts)
            for label in made.arms:
                outputs = {output.sample_id: output for output in made.outputs(label)}
                await journal.add_recorded(
                    recorded(made, outputs[str(int(sample.id) % DISTINCT)], sample, label)
                    for sample in bench.samples
                )


def recorded(made: BenchRun, output: Output, sample: Sample, label: str) -> RecordedTask:
    """The task "this sample by this arm" with the output of another sample."""
    assert output.attempt is not None
    row, task_id = made.reader.task(output.task_id), bench_task_id(sample, label)
    hashes = {output.attempt.edited, output.attempt.raw} - {None}
    blobs = [BlobRef(str(sha), made.reader.blob_path(str(sha)).stat().st_size, "image/png") for sha in hashes]
    task = replace(row.task, id=task_id, image_id=sample.id)
    return RecordedTask(
        replace(row, task=task), (replace(output.attempt, task_id=task_id),), blobs=tuple(blobs)
    )


def make_distinct(folder: Path, samples: int) -> None:
    """The benchmark and its outputs, each of its own."""
    retina = skimage.data.retina()
    rng = np.random.default_rng(3)
    region = np.hypot(*(np.indices((SIDE, SIDE)) - np.array([200, 280])[:, None, None])) < 80
    with BenchmarkWriter(folder / "bench", "Crops") as writer:
        for i in range(samples):
            top, left = rng.integers(250, 1411 - SIDE - 250), rng.integers(250, 1411 - SIDE - 250)
            before = np.ascontiguousarray(retina[top : top + SIDE, left : left + SIDE])
            image = replace(plain_image(str(i), (SIDE, SIDE), "Crops"), licence=Licence.OPEN)
            organ = list(ORGANS)[i % len(ORGANS)]
            sample = Sample(
                str(i), organ, "Brighten", "Brighten the disc.", f"c{i}", image, Path(), (SIDE, SIDE)
            )
            writer.add(sample, before, changed(before, 50), region)
    editors = (Brightener(50, 0), Brightener(30, 0), Brightener(50, 6), Brightener(0, 12))
    wanted = ArmRequest(own={editor.name: editor for editor in editors})
    terms = Terms(wanted.models, Limits(concurrency=8))
    asyncio.run(generate(Benchmark.load(folder / "bench"), folder / "run", wanted, terms))


def score(folder: Path) -> str:
    bench = Benchmark.load(folder / "bench")
    done = asyncio.run(score_run(folder / "run", bench, ScoreRequest(networks=Networks())))
    return f"{done.measured} scores"


def table(folder: Path) -> str:
    with BenchRun.open(folder / "run") as run:
        made = make_table(read_scores(run))
    return f"{len(made.cells)} cells"


STAGES: dict[str, Callable[[Path], str]] = {"score": score, "again": score, "table": table}


def staged(stage: str, folder: Path) -> tuple[float, float, float, str]:
    """Wall and processor seconds, peak memory in MB, and what the stage says, of a process of its own."""
    command = [sys.executable, __file__, "--stage", stage, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\t")
    return float(done[0]), float(done[1]), float(done[2]), done[3].strip()


def main(samples: int) -> int:
    arms = 8
    memory: dict[int, float] = {}
    for size in (max(8, samples // 4), samples):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make(folder, size)
            outputs = size * arms
            print(f"{size} samples x {arms} arms, {SIDE} x {SIDE}: {outputs} stored outputs")
            for stage in STAGES:
                wall, processor, peak, said = staged(stage, folder)
                each = (
                    f", {1e3 * processor / outputs:.1f} ms of processor an output" if stage == "score" else ""
                )
                print(
                    f"  {stage:<6} {wall:8.1f} s  {processor:8.1f} s of processor  {peak:6.0f} MB  {said}{each}",
                    flush=True,
                )
                if stage == "score":
                    memory[size] = peak
                    assert said == f"{outputs * len(PIXEL_METRICS)} scores"
                if stage == "again":
                    assert said == "0 scores"
    small, large = memory.values()
    flat = large <= max(MOST_GROWTH * small, small + 100)
    print(
        f"memory of scoring: {small:.0f} MB at a quarter, {large:.0f} MB in full: {'flat' if flat else 'GROWS'}"
    )
    return 0 if flat and large <= MOST_MEMORY_MB else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--stage"]:
        cv2.setNumThreads(1)
        begun, worked = time.perf_counter(), time.process_time()
        words = STAGES[sys.argv[2]](Path(sys.argv[3]))
        taken, processor = time.perf_counter() - begun, time.process_time() - worked
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{taken}\t{processor}\t{peak}\t{words}")
        sys.exit(0)
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 40))
