"""Small benchmarks for tests: crops of a real photograph, a truth with a bright disc, and editors that run here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import cv2
import numpy as np
import skimage.data

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import BenchmarkWriter, encode_png
from plantain.bench.benchmark.samples import Sample, plain_image
from plantain.pixels.decode import decode
from plantain.records import Licence, Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed

WIDTH, HEIGHT = 120, 96


def small_bench(
    out: Path,
    samples: int = 4,
    *,
    tasks: int = 1,
    licence: Licence = Licence.OPEN,
    truth: bool = True,
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Benchmark:
    """Samples "1", "2", ...; sample n is of task n % tasks, two samples of a task share a cluster now and then."""
    retina = skimage.data.retina()
    width, height = size
    with BenchmarkWriter(out, "Small") as writer:
        for i in range(samples):
            top, left = 150 + 13 * i % 800, 250 + 11 * i % 600
            crop = retina[top : top + 400, left : left + 500]
            previous = cv2.resize(crop, size, interpolation=cv2.INTER_AREA)
            y, x = np.mgrid[:height, :width]
            distance = np.hypot(y - height / 2 + i % 5, x - width / 2)
            lit = previous + 70.0 * np.clip((14 - distance) / 4, 0, 1)[..., None]
            sample = Sample(
                id=str(i + 1),
                organ="Eyes",
                task=f"Task {i % tasks}",
                prompt=f"Add a bright disc, number {i + 1}.",
                cluster=f"source-{i // 2 if i < 4 else i}",
                image=replace(plain_image(str(i + 1), size, "small"), licence=licence),
                previous=Path("set by the writer"),
                size=size,
                rephrased="Draw a disc of light." if i % 2 == 0 else "",
                detailed="Colour photograph: a disc brightened.",
            )
            changed = np.clip(lit, 0, 255).astype(np.uint8)
            writer.add(sample, previous, changed if truth else None, distance < 16)
    return Benchmark.load(out)


@dataclass(eq=False)
class Brightener:
    """Adds `amount` grey levels and a little noise of the seed; counts what it is asked."""

    name: str = "offline/brightener"
    fingerprint: str = "1"
    adjustable: frozenset[str] = frozenset({"amount", "sharpness"})
    refuses: frozenset[str] = frozenset()
    size: tuple[int, int] | None = None
    requests: list[EditRequest] = field(default_factory=list)

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        self.requests.append(request)
        if request.image.id in self.refuses:
            return failed(Outcome(OutcomeKind.REFUSED, "not this one"))
        pixels = decode(request.original.data).astype(np.int32)
        noise = np.random.default_rng(request.seed).integers(-3, 4, pixels.shape)
        lit = np.clip(pixels + int(request.parameters.get("amount", 20)) + noise, 0, 255).astype(np.uint8)
        if self.size is not None:
            lit = cv2.resize(lit, self.size)
        return Reply(EditedImage(EncodedImage(encode_png(lit), "image/png")), usage=Usage(images=1))
