"""Small benchmarks for tests: crops of a photograph, a truth with a bright disc, editors and runs in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import cv2
import numpy as np
import skimage.data

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import BenchmarkWriter, encode_png
from plantain.bench.benchmark.samples import Sample, plain_image
from plantain.bench.generate.editors import planted_editor
from plantain.bench.generate.generate import generate
from plantain.bench.generate.requests import ArmRequest
from plantain.journal import JournalReader
from plantain.pixels.decode import decode
from plantain.records import Licence, Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, Editor, EditRequest, EncodedImage, Reply, failed
from plantain.runs.progress import RunSummary
from plantain.runs.terms import Terms

WIDTH, HEIGHT = 120, 96
SHY = "planted/shy"


def small_bench(
    out: Path,
    samples: int = 4,
    *,
    tasks: int = 1,
    licence: Licence = Licence.OPEN,
    truth: bool = True,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    organs: Sequence[str] = ("Eyes",),
    pairs: int = 4,
    prompt: str = "Add a bright disc, number {}.",
    concepts: Sequence[str] = (),
) -> Benchmark:
    """Samples "1", "2", ...; sample n is of task n % tasks; two of the first `pairs` share a cluster each."""
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
                organ=organs[i * len(organs) // samples],
                task=f"Task {i % tasks}",
                prompt=prompt.format(i + 1),
                cluster=f"source-{i // 2 if i < pairs else i}",
                key_concept=concepts[i] if concepts else "",
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
    """Adds `amount` grey levels and a little noise of the seed; records its requests."""

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


def made(benchmark: Benchmark, run: Path, wanted: ArmRequest | None = None, **options: object) -> RunSummary:
    """Generate in this process."""
    wanted = wanted or ArmRequest()
    return asyncio.run(generate(benchmark, run, wanted, Terms(wanted.models), **options))  # type: ignore[arg-type]


def by(editor: Brightener, **fields: object) -> ArmRequest:
    return ArmRequest(own={editor.name: editor}, **fields)  # type: ignore[arg-type]


def planted(benchmark: Benchmark, *labels: str) -> ArmRequest:
    """Editors of known quality, and one that refuses the second sample."""
    own: dict[str, Editor] = {label: planted_editor(label, benchmark) for label in labels}
    return ArmRequest(own={**own, SHY: Brightener(SHY, refuses=frozenset({"2"}))})


def scores(run: Path) -> dict[tuple[str, str, str], tuple[float | None, str]]:
    """(arm, sample, metric) -> (value, reason), of first outputs."""
    with JournalReader.open(run) as reader:
        rows = reader.connection.execute(
            "SELECT t.finding, t.image_id, s.metric, s.value, s.reason FROM score s JOIN task t ON t.id = s.task "
            "WHERE s.round = 1"
        ).fetchall()
    return {(arm, sample, metric): (value, reason) for arm, sample, metric, value, reason in rows}


class Means:
    """An encoder in closed form: the mean colour of an image; of a text, its vowels."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = 0

    def images(self, images: Sequence[np.ndarray]) -> np.ndarray:
        self.asked += len(images)
        return np.stack([image.reshape(-1, 3).mean(axis=0) for image in images])

    def texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([[text.count("a"), text.count("e"), text.count("i")] for text in texts], float)

    def truncated(self, text: str) -> bool:
        return len(text) > 30


class Distance:
    name = "mean-difference"

    def distance(self, before: np.ndarray, after: np.ndarray) -> float:
        assert before.min() >= -1
        return float(np.abs(before - after).mean())


class Length:
    name = "length-of-text"

    def reward(self, image: np.ndarray, text: str) -> float:
        return float(len(text))
