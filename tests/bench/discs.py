"""A small benchmark of real pictures with a known change, planted editors over it, and what its run holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import skimage.data

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import BenchmarkWriter, encode_png
from plantain.bench.benchmark.samples import Sample, plain_image
from plantain.bench.generate.generate import generate
from plantain.bench.generate.requests import ArmRequest
from plantain.journal import JournalReader
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import decode
from plantain.records import Licence, Outcome, OutcomeKind
from plantain.roles import EditedImage, Editor, EditRequest, EncodedImage, Reply, failed
from plantain.runs.settings.terms import Terms

SIDE = 160


def disc(i: int) -> tuple[np.ndarray, Mask]:
    """Strength in [0, 1] of the wanted change of sample i, float32 (H, W), and its region."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    far = np.hypot(rows - 60 - 4 * i, columns - 90 + 5 * i)
    return np.clip((24 - far) / 8, 0, 1).astype(np.float32), far < 28


def brighter(pixels: Pixels, strength: np.ndarray, by: float) -> Pixels:
    return np.clip(pixels + (by * strength)[..., None], 0, 255).astype(np.uint8)


def make_bench(out: Path, samples: int = 3, *, without_truth: bool = False) -> Benchmark:
    """Crops of a fundus photograph; the truth is brighter in a soft disc, and the region holds that disc."""
    retina = skimage.data.retina()
    with BenchmarkWriter(out, "Discs") as writer:
        for i in range(samples):
            top, left = 300 + 90 * i, 350 + 130 * i
            before = np.ascontiguousarray(retina[top : top + SIDE, left : left + SIDE])
            strength, region = disc(i)
            image = replace(
                plain_image(str(i), (SIDE, SIDE), "Discs"), licence=Licence.OPEN, modality="photo"
            )
            sample = Sample(
                str(i),
                "Eyes" if i % 2 == 0 else "Skin",
                "Brighten a spot",
                f"Make the spot {i} brighter.",
                f"cluster {i}",
                image,
                Path(),
                (SIDE, SIDE),
                detailed="" if i == 2 else f"A soft bright disc appears ({i}).",
            )
            truth = None if without_truth else brighter(before, strength, 60.0)
            writer.add(sample, before, truth, region)
    return Benchmark.load(out)


class KnownEditor:
    """Edits by a function of (pixels, number of the sample); refuses where that gives None."""

    fingerprint = "1"

    def __init__(self, name: str, edit: Callable[[Pixels, int], Pixels | None]) -> None:
        self.name = name
        self._edit = edit
        self.calls = 0

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        self.calls += 1
        edited = self._edit(decode(request.original.data), int(request.image.id))
        if edited is None:
            return failed(Outcome(OutcomeKind.REFUSED, "the provider declined"))
        return Reply(EditedImage(EncodedImage(encode_png(edited), "image/png")))


def exact(pixels: Pixels, i: int) -> Pixels:
    return brighter(pixels, disc(i)[0], 60.0)


def weak(pixels: Pixels, i: int) -> Pixels:
    return brighter(pixels, disc(i)[0], 25.0)


def repaint(pixels: Pixels, i: int) -> Pixels:
    """The right change in a picture that was painted anew all over."""
    return cv2.GaussianBlur(exact(pixels, i), (0, 0), 3)


def shy(pixels: Pixels, i: int) -> Pixels | None:
    """Refuses the second sample."""
    return None if i == 1 else exact(pixels, i)


PLANTED: dict[str, Callable[[Pixels, int], Pixels | None]] = {
    "planted/exact": exact,
    "planted/weak": weak,
    "planted/repaint": repaint,
    "planted/shy": shy,
}


def planted() -> Mapping[str, Editor]:
    return {name: KnownEditor(name, edit) for name, edit in PLANTED.items()}


def make_run(
    benchmark: Benchmark, run: Path, names: tuple[str, ...] = tuple(PLANTED), seeds: int = 1
) -> None:
    own = {name: KnownEditor(name, PLANTED[name]) for name in names}
    wanted = ArmRequest(own=own, seeds=seeds)
    summary = asyncio.run(generate(benchmark, run, wanted, Terms(wanted.models)))
    assert summary.stopped is None


def scores(run: Path) -> dict[tuple[str, str, str], tuple[float | None, str]]:
    """(arm, sample, metric) -> (value, reason), of first outputs."""
    with JournalReader.open(run) as reader:
        rows = reader.connection.execute(
            "SELECT t.finding, t.image_id, s.metric, s.value, s.reason FROM score s JOIN task t ON t.id = s.task "
            "WHERE s.round = 1"
        ).fetchall()
    return {(arm, sample, metric): (value, reason) for arm, sample, metric, value, reason in rows}
