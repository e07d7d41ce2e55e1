"""The benchmark's demo: findings rendered on real images, editors of known quality, scores and a leaderboard."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import OWN, BenchmarkWriter
from plantain.bench.benchmark.samples import SYNTHETIC_TRUTH, Sample
from plantain.bench.generate.editors import ACCURACY, PLANTED, PRESERVATION, planted_editor
from plantain.bench.generate.generate import generate
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.page import write_leaderboard
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.tables import OVERALL, Table, make_table
from plantain.bench.score.judging import JudgeName
from plantain.bench.score.score import PIXEL_METRICS, ScoreRequest, score_run
from plantain.findings import load_taxonomy
from plantain.offline.anatomy.maps import CannotShow
from plantain.offline.drawing.adding import Rendering
from plantain.offline.editor import render_instruction
from plantain.offline.language import Intent, compose
from plantain.offline.workers import close_workers
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import Direction, Finding, SourceImage, derive_seed
from plantain.runs.progress import SILENT, ProgressObserver
from plantain.runs.terms import load_terms
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
    """Return the demo's benchmark, two samples for each finding of `plan`; create it if the folder does not exist."""
    if not (path / OWN).is_file():
        unfinished = path.with_name(path.name + ".part")
        shutil.rmtree(unfinished, ignore_errors=True)  # of a killed process
        facts: dict[str, object] = {"made_from": "images that are installed with the dependencies"}
        with BenchmarkWriter(unfinished, NAME, facts) as writer:
            for edit in _rendered(plan):
                after = np.where(edit.rendering.mask[..., None], edit.rendering.pixels, edit.pixels)
                writer.add(edit.sample(Direction.ADD), edit.pixels, after, edit.rendering.mask)
                writer.add(edit.sample(Direction.REMOVE), after, edit.pixels, edit.rendering.mask)
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

    def sample(self, direction: Direction) -> Sample:
        """Return the sample that adds the finding, with a rendered truth, or removes it, with a real one."""
        adding = direction is Direction.ADD
        place = f"{self.intent.side}-" if self.intent.side else ""
        key = f"{self.image.id}-{place}{self.finding.name.replace(' ', '')}-{direction.value}"
        intent = self.intent if adding else Intent(self.finding.name, direction, self.intent.side)
        image = replace(self.image, id=key)
        if not adding:
            labels, note = (self.finding.name,), "carries a rendered finding"
            image = replace(image, labels=labels, synthetic=True, note=note)
        where = f" on the patient's {self.intent.side}" if self.intent.side else ""
        done = "added" if adding else "removed"
        return Sample(
            id=key,
            organ=self.organ,
            task=f"{direction.value.capitalize()} {self.finding.title}",
            prompt=compose(intent, self.finding),
            rephrased=compose(intent, self.finding, phrasing=5),
            detailed=f"{self.organ}: {self.finding.title}{where} was {done}; everything else stays as it was.",
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
    images = {sample.image.id: sample.prepared(SIDE) for sample in sample_images()}
    taxonomy = load_taxonomy()

    def render(row: Row) -> _Edit | None:
        image_id, name, side, extent = row
        image, data = images[image_id]
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


EDITOR = "offline/procedural"
JUDGE = JudgeName("offline/instruments", "D")
PLANTED_NOTE = (
    "Editors called planted/… degrade the true image in one known way; a valid benchmark recovers their order. "
    "The findings were rendered by plantain on real images from four sources."
)


@dataclass(frozen=True, slots=True)
class Recovery:
    """The result of comparing the editors' mean scores with their known order.

    Attributes:
        metric: name of the metric.
        order: labels of the editors, best first.
        found: True if the means are strictly in this order; None if an editor has no mean.
    """

    metric: str
    order: tuple[str, ...]
    found: bool | None

    @property
    def line(self) -> str:
        order = " > ".join(label.removeprefix("planted/") for label in self.order)
        ending = {True: "found", False: "not found", None: "could not be checked"}[self.found]
        return f"{self.metric}: planted order {order}: {ending}."


@dataclass(frozen=True, slots=True)
class Demo:
    """The result of the benchmark's demo.

    Attributes:
        run: folder of the run.
        report: HTML file of the leaderboard.
        table: the leaderboard's numbers.
        recoveries: for each known order of editors, whether the scores show it.
        stopped: why the demo ended early; None if it is complete.
    """

    run: Path
    report: Path
    table: Table
    recoveries: tuple[Recovery, ...]
    stopped: str | None


async def bench_demo(
    folder: Path,
    *,
    plan: Sequence[Row] = PLAN,
    generating: ProgressObserver = SILENT,
    scoring: ProgressObserver = SILENT,
) -> Demo:
    """Create or resume the demo (benchmark, outputs, scores, leaderboard); return its paths and results.

    Args:
        folder: folder for `benchmark/`, `run/` and `leaderboard/`.
        plan: findings to render.
        generating, scoring: observers of the progress.
    """
    benchmark, run = demo_benchmark(folder / "benchmark", plan), folder / "run"
    wanted = ArmRequest(editors=(EDITOR,), own={label: planted_editor(label, benchmark) for label in PLANTED})
    terms = load_terms(None, wanted.models)
    try:
        stopped = (await generate(benchmark, run, wanted, terms, seed=SEED, observer=generating)).stopped
        if stopped is None:
            request = ScoreRequest(PIXEL_METRICS, (JUDGE,))
            stopped = (await score_run(run, benchmark, request, observer=scoring)).stopped
    finally:
        close_workers()
    with BenchRun.open(run) as opened:
        table = make_table(read_scores(opened))
    found = recoveries(table)
    remarks = PLANTED_NOTE, *(one.line for one in found)
    report = write_leaderboard([run], folder / "leaderboard", remarks=remarks)
    return Demo(run, report, table, found, stopped)


def recoveries(table: Table) -> tuple[Recovery, ...]:
    """Compare the means of all samples with each known order of editors."""
    found = []
    for metric, order in (("EA", ACCURACY), ("CP (strict)", PRESERVATION)):
        cells = [table.cell(label, OVERALL, metric) for label in order]
        means = [cell.estimate.value for cell in cells if cell is not None]
        known = [mean for mean in means if mean is not None]
        ordered = all(first > second for first, second in pairwise(known))
        found.append(Recovery(metric, order, ordered if len(known) == len(order) else None))
    return tuple(found)
