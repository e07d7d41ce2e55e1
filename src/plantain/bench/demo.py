"""The benchmark's demo: real images, editors of known worth, a judge that measures, and a leaderboard in a minute."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plantain.bench.benchmark.demo_benchmark import PLAN, SEED, Row, demo_benchmark
from plantain.bench.generate.generate import generate
from plantain.bench.generate.known_editors import ACCURACY, PLANTED, PRESERVATION, KnownEditor
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.page import write_leaderboard
from plantain.bench.leaderboard.scores import Scores, read_scores
from plantain.bench.leaderboard.tables import Table, make_table
from plantain.bench.score.judging import JudgeName
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.bench.score.suite import PIXEL_METRICS
from plantain.metrics.statistics.resampling import DRAWS, drawn_sums, resampled_weights
from plantain.offline.workers import close_workers
from plantain.pixels.arrays import Floats
from plantain.runs.progress import SILENT, ProgressObserver
from plantain.runs.settings.terms import load_terms

EDITOR = "offline/procedural"
JUDGE = JudgeName("offline/instruments", "D")
PLANTED_NOTE = (
    "Editors called planted/… know the true image and spoil it in one stated way: a benchmark that is any good finds "
    "their order again. The findings were rendered by plantain on real images from four sources."
)


@dataclass(frozen=True, slots=True)
class Recovery:
    """A planted order, the metric that should show it, and its share of the drawings of edits."""

    metric: str
    order: tuple[str, ...]
    probability: float | None
    draws: int = DRAWS

    @property
    def line(self) -> str:
        order = " > ".join(label.removeprefix("planted/") for label in self.order)
        if self.probability is None:
            return f"{self.metric}: the planted order {order} could not be looked for."
        share = f"{100 * self.probability:.1f} %"
        return f"{self.metric}: planted order {order} found in {share} of {self.draws} drawings of edits."


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo made."""

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
    """Make or resume the demo: benchmark, outputs, scores, leaderboard.

    Args:
        folder: gets `benchmark/`, `run/` and `leaderboard/`.
        plan: what to render; fewer rows for a quick look.
        generating, scoring: receive progress.
    """
    benchmark, run = demo_benchmark(folder / "benchmark", plan), folder / "run"
    wanted = ArmRequest(editors=(EDITOR,), own={label: KnownEditor(label, benchmark) for label in PLANTED})
    terms = load_terms(None, wanted.models)
    try:
        stopped = (await generate(benchmark, run, wanted, terms, seed=SEED, observer=generating)).stopped
        if stopped is None:
            wish = ScoreRequest(PIXEL_METRICS, (JUDGE,))
            stopped = (await score_run(run, benchmark, wish, observer=scoring)).stopped
    finally:
        close_workers()
    with BenchRun.open(run) as opened:
        scores = read_scores(opened)
    found = recoveries(scores)
    remarks = PLANTED_NOTE, *(one.line for one in found)
    report = write_leaderboard([run], folder / "leaderboard", remarks=remarks)
    return Demo(run, report, make_table(scores), found, stopped)


def recoveries(scores: Scores) -> tuple[Recovery, ...]:
    """Return how often each planted order comes back when the edits of the demo are drawn again.

    An edit, there and back, is drawn as one, within its organ: this is about other findings on the same images, not
    about other patients, as there are only four sources.
    """
    edits = [sample.id.rpartition("-")[0] for sample in scores.samples]
    organs = [sample.organ for sample in scores.samples]
    found = []
    for name, stored, order in (
        ("EA", f"ea@{JUDGE.label}", ACCURACY),
        ("CP (strict)", "masked_ssim", PRESERVATION),
    ):
        values = {arm.label: scores.values(arm, stored) for arm in scores.arms}
        found.append(Recovery(name, order, recovered(values, order, edits, organs, scores.seed)))
    return tuple(found)


def recovered(
    values: Mapping[str, Floats],
    order: Sequence[str],
    clusters: Sequence[Hashable],
    strata: Sequence[Hashable],
    seed: int,
) -> float | None:
    """Return the share of drawings in which the means stand in the given order, each strictly above the next.

    Args:
        values: one per sample for each arm, higher is better; samples that an arm lacks are left out for all.
        order: arms, best first.
        clusters, strata: of each sample; clusters are drawn with replacement within each stratum.
        seed: of the drawings.

    Returns:
        A share in [0, 1]; None if an arm is missing or no sample is common to all.
    """
    if any(label not in values for label in order):
        return None
    table = np.stack([values[label] for label in order])
    common = [int(i) for i in np.flatnonzero(np.isfinite(table).all(axis=0))]
    if not common:
        return None
    kept = [clusters[i] for i in common]
    names = {cluster: n for n, cluster in enumerate(dict.fromkeys(kept))}
    levels = {stratum: n for n, stratum in enumerate(dict.fromkeys(strata[i] for i in common))}
    code = np.array([names[cluster] for cluster in kept])
    groups = np.zeros(len(names), np.intp)
    groups[code] = [levels[strata[i]] for i in common]
    sums = np.zeros((len(names), len(order)))
    np.add.at(sums, code, table[:, common].T)
    totals = drawn_sums(resampled_weights(groups, seed, DRAWS), sums)
    return float((np.diff(totals, axis=1) < 0).all(axis=1).mean())
