"""What plantain's bookkeeping costs: CPU per model call and per stored image, beside rewriting one JSON file.

Every number is measured in this process on this machine:

* CPU per call of the whole path (walk, loop, memo, journal with FULL sync) with models that answer at once, at a
  growing number of tasks; it must stay flat.
* The published way, the whole state as JSON again after each task, at 500 to 2,000 tasks, with its fitted growth.
* CPU per stored 1024x1024 image beyond encoding it.

Run: python benchmarks/bookkeeping.py [--quick]   (about five minutes; --quick stops at 10,000 tasks)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import skimage.data

from plantain.calls import Bounded, ModelClient, TaskCalls
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.journal import CallResult, Journal, RunHeader
from plantain.pipeline.rounds import Method, Rounds
from plantain.pipeline.walk import Walk
from plantain.pixels.encode import encode_jpeg, encode_mask, encode_source
from plantain.pixels.prepare import prepare
from plantain.records import (
    OK,
    Attempt,
    Criterion,
    CriterionResult,
    Direction,
    EditTask,
    Licence,
    Observations,
    SourceImage,
    task_id,
)
from plantain.roles import EditedImage, EditRequest, EncodedImage, JudgeRequest, Reply, WriteRequest
from plantain.rubrics import MED_BANANA
from plantain.runs.image_cache import ImageCache
from plantain.runs.worker_pool import WorkerPool


class Instant:
    """Fills all three roles and answers at once, always with the same image; every edit qualifies."""

    name = "instant/all"
    fingerprint = "1"

    def __init__(self, edited: EditedImage) -> None:
        self.edited = edited

    async def write(self, request: WriteRequest) -> Reply[str]:
        return Reply(f"Add soft drusen around the fovea of image {request.task.id}, and change nothing else.")

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        return Reply(self.edited)

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        results = {c: CriterionResult(True, 0.9, (), "measured and found good") for c in Criterion}
        return Reply(Observations(results, {"has_disease": True}, True, "all four criteria hold"))


def photograph() -> np.ndarray:
    return prepare(skimage.data.retina())[0]


def source_image(prepared: str) -> SourceImage:
    _, geometry = prepare(skimage.data.retina())
    return SourceImage(
        id="retina",
        dataset="scikit-image",
        modality="fundus",
        labels=("normal",),
        licence=Licence.OPEN,
        source_sha256=prepared,
        prepared_sha256=prepared,
        geometry=geometry,
        view="fundus",
    )


def method(edited: EditedImage) -> Method:
    model = Instant(edited)
    return Method(model, model, (model,), MED_BANANA, "all-pass", 0.7, 5, 1)


async def cpu_per_call(tasks: int, folder: Path) -> float:
    """CPU milliseconds per call of a run of `tasks` tasks, three calls each."""
    pixels = photograph()
    journal = Journal.create(folder / f"run-{tasks}", RunHeader("bench", "bench", 1, {}, "0"))
    edited = EditedImage(EncodedImage(encode_jpeg(pixels), "image/jpeg"), None, "local")
    try:
        data = encode_source(pixels)
        blob = journal.put_blob(data, "image/jpeg")
        await journal.add_images([(source_image(blob.sha256), blob)])
        await journal.add_tasks(_tasks(tasks))
        client = ModelClient(journal, Bounded(64))
        catalogue = Catalogue.create(folder / f"catalogue-{tasks}")
        walk = Walk(method(edited), journal, catalogue, load_taxonomy(), WorkerPool(client))
        begun = time.process_time()
        await walk.all(64, None)
        spent = time.process_time() - begun
        assert client.made == 3 * tasks, client.made
        return 1000 * spent / client.made
    finally:
        await journal.close()


def _tasks(count: int) -> Iterator[EditTask]:
    for i in range(count):
        yield EditTask(task_id(str(i), 0, "AMD", Direction.ADD), "retina", "fundus", "AMD", Direction.ADD)


def json_after_each_task(tasks: int, folder: Path) -> float:
    """CPU seconds of keeping the same records by writing them all again after each task."""
    state: dict[str, object] = {}
    begun = time.process_time()
    for i in range(tasks):
        state[f"image{i}-AMD"] = {
            "image": f"image{i}",
            "disease": "AMD",
            "status": "success",
            "rounds": [
                {
                    "round": 1,
                    "instruction": f"Add soft drusen around the fovea of image {i}, and change nothing else.",
                    "verdict": {c.value: True for c in Criterion} | {"reason": "all four criteria hold"},
                }
            ],
        }
        with (folder / "state.json").open("w", encoding="utf-8") as file:
            json.dump(state, file, indent=2)
    return time.process_time() - begun


async def cpu_per_image(images: int, folder: Path) -> tuple[float, float]:
    """CPU milliseconds per stored image in all, and of encoding it alone."""
    pixels = photograph()
    mask = encode_mask(pixels[..., 0] > 128)
    rng = np.random.default_rng(0)
    journal = Journal.create(folder / "images", RunHeader("bench", "bench", 1, {}, "0"))
    encoding = keeping = 0.0
    try:
        for i in range(images):
            pixels[:8, :8] = rng.integers(0, 255, (8, 8, 3))
            begun = time.process_time()
            data = encode_jpeg(pixels)
            encoding += time.process_time() - begun
            rounds = _rounds(journal, f"{i:020x}")
            attempt = Attempt(f"{i:020x}", 1, 1, "instruction", edit_outcome=OK)
            edited = EditedImage(EncodedImage(data, "image/jpeg"), EncodedImage(mask, "image/png"), "local")
            begun = time.process_time()
            rounds._keep_edit(attempt, edited, CallResult(call_id=0, outcome=OK, final=True))
            keeping += time.process_time() - begun
    finally:
        await journal.close()
    return 1000 * (encoding + keeping) / images, 1000 * encoding / images


def _rounds(journal: Journal, task: str) -> Rounds:
    edit_task = EditTask(task, "retina", "fundus", "AMD", Direction.ADD)
    client = ModelClient(journal, Bounded(1))
    finding = load_taxonomy().get("fundus", "AMD")
    empty = EncodedImage(b"", "image/jpeg")
    return Rounds(
        method(EditedImage(empty)),
        TaskCalls(client, task, 1, []),
        journal,
        edit_task,
        1,
        finding,
        source_image("0" * 64),
        ImageCache(journal.reader),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="stop at 10,000 tasks")
    parser.add_argument("--images", type=int, default=1000)
    args = parser.parse_args()
    sizes = (1_000, 10_000) if args.quick else (1_000, 10_000, 100_000)
    with tempfile.TemporaryDirectory(prefix="plantain-bench-") as name:
        folder = Path(name)
        asyncio.run(cpu_per_call(200, folder))  # imports and caches
        costs = {}
        for tasks in sizes:
            costs[tasks] = asyncio.run(cpu_per_call(tasks, folder))
            print(f"plantain, {tasks:>7,} tasks: {costs[tasks]:.3f} ms CPU per call", flush=True)
        flat = costs[sizes[-1]] / costs[sizes[0]]
        print(
            f"plantain, largest over smallest: {flat:.2f}x (target: at most 1.20x); target at most 2 ms per call"
        )
        rewriting = {}
        for tasks in (500, 1_000, 2_000):
            rewriting[tasks] = json_after_each_task(tasks, folder)
            per_call = 1000 * rewriting[tasks] / (3 * tasks)
            print(
                f"whole JSON after each task, {tasks:>5,} tasks: {per_call:.3f} ms CPU per call", flush=True
            )
        growth = math.log(rewriting[2_000] / rewriting[500]) / math.log(4)
        ours = 1 + math.log(flat) / math.log(sizes[-1] / sizes[0])
        print(f"whole JSON: total CPU grows as N^{growth:.2f}; plantain: as N^{ours:.2f}")
        whole, encoding = asyncio.run(cpu_per_image(args.images, folder))
        print(
            f"stored image: {whole:.2f} ms CPU, of it encoding {encoding:.2f} ms; beyond encoding "
            f"{whole - encoding:.2f} ms (target: at most 10 ms), {args.images} images"
        )
    return 0 if flat <= 1.2 and costs[sizes[-1]] <= 2.0 and whole - encoding <= 10.0 else 1


if __name__ == "__main__":
    sys.exit(main())
