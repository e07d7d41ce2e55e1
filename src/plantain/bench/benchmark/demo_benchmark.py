"""The demo's benchmark: findings rendered on real images, asked for both ways, with regions exact to the pixel."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import OWN, BenchmarkWriter
from plantain.bench.benchmark.samples import SYNTHETIC_TRUTH, Sample
from plantain.findings import load_taxonomy
from plantain.offline.anatomy.maps import CannotShow
from plantain.offline.drawing.adding import Rendering
from plantain.offline.editor import render_instruction
from plantain.offline.language import Intent, compose
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import Direction, Finding, SourceImage, derive_seed
from plantain.sources.samples import sample_images

SEED = 11
SIDE = 384
NAME = "Demo: rendered findings on real images"

PLAN = (
    # image, finding, side, extent: only findings whose change has a border
    ("rg1-chest-pa", "Consolidation", "right", "moderate"),
    ("rg1-chest-pa", "Consolidation", "left", "moderate"),
    ("rg1-chest-pa", "Pleural Effusion", "left", "moderate"),
    ("rg1-chest-pa", "Pneumothorax", "right", "large"),
    ("rg1-chest-pa", "Lung Opacity", "left", "large"),
    ("rg1-chest-pa", "Pneumonia", "right", "moderate"),
    ("mni152-t1-axial-z5", "glioma", "left", "moderate"),
    ("mni152-t1-axial-z20", "glioma", "right", "large"),
    ("mni152-t1-axial-z40", "meningioma", "left", "large"),
    ("mni152-t1-coronal-y-10", "glioma", "right", "moderate"),
    ("mni152-t1-coronal-y-10", "meningioma", "left", "moderate"),
    ("dipy-t1-coronal", "glioma", None, "large"),
    ("retina-left", "AMD", None, "large"),
    ("retina-left", "Diabetes", None, "large"),
    ("retina-left", "Glaucoma", None, "large"),
    ("retina-left", "Myopia", None, "large"),
)

SYNTHETIC = f"{SYNTHETIC_TRUTH}: the image after was rendered by plantain"
REAL = "real ground truth: the image after is an original; the finding before was rendered by plantain"


Row = tuple[str, str, str | None, str]


def demo_benchmark(path: Path, plan: Sequence[Row] = PLAN) -> Benchmark:
    """The demo's benchmark, made where it is not there yet: every rendered finding is two samples, add and remove."""
    if not (path / OWN).is_file():
        unfinished = path.with_name(path.name + ".part")
        shutil.rmtree(unfinished, ignore_errors=True)  # what a kill left behind
        with BenchmarkWriter(
            unfinished, NAME, {"made_from": "images that arrive with the dependencies"}
        ) as writer:
            for edit in _rendered(plan):
                for sample, before, after in edit.samples():
                    writer.add(sample, before, after, edit.rendering.mask)
        unfinished.rename(path)
    return Benchmark.load(path)


@dataclass(frozen=True, slots=True, eq=False)
class _Edit:
    """One finding rendered on one image."""

    image: SourceImage
    pixels: Pixels
    finding: Finding
    intent: Intent
    rendering: Rendering
    organ: str

    def samples(self) -> Iterator[tuple[Sample, Pixels, Pixels]]:
        """The way there, whose truth is rendered, and the way back, whose truth is the original."""
        after = np.where(self.rendering.mask[..., None], self.rendering.pixels, self.pixels)
        yield self._sample(Direction.ADD), self.pixels, after
        yield self._sample(Direction.REMOVE), after, self.pixels

    def _sample(self, direction: Direction) -> Sample:
        adding = direction is Direction.ADD
        place = f"{self.intent.side}-" if self.intent.side else ""
        key = f"{self.image.id}-{place}{self.finding.name.replace(' ', '')}-{direction.value}"
        intent = self.intent if adding else Intent(self.finding.name, direction, self.intent.side)
        image = replace(self.image, id=key)
        if not adding:
            image = replace(
                image, labels=(self.finding.name,), synthetic=True, note="carries a rendered finding"
            )
        where = f" on the patient's {self.intent.side}" if self.intent.side else ""
        return Sample(
            id=key,
            organ=self.organ,
            task=f"{direction.value.capitalize()} {self.finding.title}",
            prompt=compose(intent, self.finding),
            rephrased=compose(intent, self.finding, phrasing=5),
            detailed=f"{self.organ}: {self.finding.title}{where} was {'added' if adding else 'removed'}; "
            "everything else stays as it was.",
            key_concept=self.finding.title,
            direction=direction,
            finding=self.finding.name,
            cluster=f"{self.image.dataset}/{self.image.group}",
            image=image,
            previous=Path(),
            size=(SIDE, SIDE),
            aligned=True,
            notes=(SYNTHETIC if adding else REAL,),
        )


def _rendered(plan: Sequence[Row]) -> Iterator[_Edit]:
    real = {sample.image.id: sample.prepared(SIDE) for sample in sample_images()}
    taxonomy = load_taxonomy()

    def render(row: Row) -> _Edit | None:
        image_id, name, side, extent = row
        image, data = real[image_id]
        pixels, finding = decode(data), taxonomy.get(image.modality, name)
        intent = Intent(name, Direction.ADD, side=side, extent=extent, conspicuity="marked")
        seed = derive_seed(SEED, "bench demo", *row)
        try:
            rendering = render_instruction(pixels, compose(intent, finding), image, seed)
        except CannotShow:
            return None
        return _Edit(image, pixels, finding, intent, rendering, taxonomy.titles[image.modality])

    with ThreadPoolExecutor(2) as pool:
        yield from (edit for edit in pool.map(render, plan) if edit is not None)
