"""A device that draws in a stated time, as a process of open editors, and a benchmark of images for it.

As a program, `python -m simulated.open_editor FD DEVICE`, it is the process of a device whose pipeline sleeps, as one
that waits for a GPU does: reading, geometry, encoding and all that travels are plantain's own.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import cv2
import numpy as np

SECONDS = "SIMULATED_SECONDS_AN_IMAGE"
MANY = 4
"""Drawings that are ready before anything is timed."""


def image(number: int, width: int, height: int) -> np.ndarray:
    """uint8 (H, W, 3): coarse structure and fine noise, so that a PNG of it is as large as one of a photograph."""
    rng = np.random.default_rng(number)
    coarse = cv2.resize(rng.integers(0, 256, (32, 32, 3), np.uint8), (width, height))
    return np.clip(coarse + rng.normal(0, 2, coarse.shape), 0, 255).astype(np.uint8)


def make_benchmark(folder: Path, images: int, side: int) -> list[Path]:
    """Write a benchmark of square images of one side; return the files that an editor receives."""
    from plantain.bench.benchmark.native_format import BenchmarkWriter
    from plantain.bench.benchmark.samples import Sample, plain_image

    with BenchmarkWriter(folder, "simulated") as writer:
        for number in range(images):
            drawn, name = image(number, side, side), str(number)
            record = plain_image(name, (side, side), "simulated")
            sample = Sample(name, "any", "brighter", "make it brighter", name, record, Path(), (side, side))
            writer.add(sample, drawn, drawn)
    return [folder / "previous" / f"{number}.png" for number in range(images)]


def edits_per_second(run: Path, first: int) -> float:
    """Of a bench run, by its journal: the first so many edits, with which weights are loaded, are not timed."""
    with closing(sqlite3.connect(run / "journal.sqlite")) as journal:
        rows = journal.execute(
            "SELECT started_at, latency_s FROM call WHERE model LIKE 'diffusers/%' AND state = 'settled'"
        ).fetchall()
    return rate_of([datetime.fromisoformat(started).timestamp() + took for started, took in rows], first)


def rate_of(ends: Sequence[float], first: int) -> float:
    """Ends a second after the first so many."""
    ends = sorted(ends)
    return (len(ends) - first) / (ends[-1] - ends[first - 1])


def main(fd: int, device: str) -> None:
    """Serves edits as a device's process does, with a pipeline that sleeps."""
    from multiprocessing.connection import Connection

    import torch

    from plantain.models.diffusers.engine import Engine
    from plantain.models.diffusers.methods import METHODS
    from plantain.models.diffusers.pipelines import stable_diffusion
    from plantain.models.diffusers.pipelines.runner import Runner
    from plantain.models.diffusers.worker import serve

    seconds = float(os.environ[SECONDS])

    class Sleeping(Runner):
        def __init__(self, loading: Any, device: str) -> None:
            self.method, self.precision, self.device = METHODS["instruct-pix2pix"], torch.float16, device
            self.tf32, self.ready = loading.tf32, dict[tuple[int, int], np.ndarray]()

        def draw(self, job: Any, original: Any, region: object) -> tuple:
            size = original.size
            if size not in self.ready:
                ready = [image(number, *size) for number in range(MANY)]
                self.ready[size] = np.stack(ready).astype(np.float32) / 255
            time.sleep(seconds)
            return self.ready[size][job.seed % MANY], False

    stable_diffusion.RUNNERS["instruct-pix2pix"] = Sleeping
    serve(Connection(fd), Engine(device).run)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
