"""The benchmark's demo: real images, editors of known worth, a judge that measures, and a leaderboard in a minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plantain.bench.benchmark.demo_benchmark import PLAN, SEED, Row, demo_benchmark
from plantain.bench.generate.arm_requests import ArmRequest
from plantain.bench.generate.generate import generate
from plantain.bench.generate.known_editors import ACCURACY, PLANTED, PRESERVATION, KnownEditor
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.page import write_leaderboard
from plantain.bench.leaderboard.scores import Scores, read_scores
from plantain.bench.leaderboard.tables import Table, make_table
from plantain.bench.recovery import recovered
from plantain.bench.score.judging import JudgeName
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.bench.score.suite import PIXEL_METRICS
from plantain.metrics.statistics.resampling import DRAWS
from plantain.offline.workers import close_workers
from plantain.runs.observer import SILENT, ProgressObserver
from plantain.runs.settings.terms import load_terms

EDITOR = "offline/procedural"
JUDGE = JudgeName("offline/instruments", "D")
PLANTED_NOTE = (
    "Editors called planted/… know the true image and spoil it in one stated way: a benchmark that is any good finds "
    "their order again. The findings were rendered by plantain on real images from four sources."
)


@dataclass(frozen=True, slots=True)
class Recovery:
    """A planted order, the metric that should show it, and how often it does when samples are drawn again."""

    metric: str
    order: tuple[str, ...]
    probability: float | None
    draws: int

    @property
    def line(self) -> str:
        """The recovery as a line."""
        order = " > ".join(label.removeprefix("planted/") for label in self.order)
        if self.probability is None:
            return f"{self.metric}: the planted order {order} could not be looked for."
        return (
            f"{self.metric}: planted order {order} found in {100 * self.probability:.1f} % of {self.draws} drawings "
            "of edits."
        )


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
    """Makes or resumes the demo: benchmark, outputs, scores, leaderboard. Nothing that is there is made again.

    Args:
        folder: gets `benchmark/`, `run/` and `leaderboard/`.
        plan: what is rendered; fewer rows for a quick look.
        generating, scoring: told how the two long stages go on.
    """
    benchmark = demo_benchmark(folder / "benchmark", plan)
    run = folder / "run"
    wanted = ArmRequest(editors=(EDITOR,), own={p.label: KnownEditor(p, benchmark) for p in PLANTED})
    try:
        made = await generate(
            benchmark,
            run,
            wanted,
            load_terms(None, wanted.models),
            seed=SEED,
            observer=generating,
        )
        stopped = made.stopped
        if stopped is None:
            scored = await score_run(
                run,
                benchmark,
                ScoreRequest(PIXEL_METRICS, (JUDGE,)),
                observer=scoring,
            )
            stopped = scored.stopped
    finally:
        close_workers()
    with BenchRun.open(run) as opened:
        scores = read_scores(opened)
    found = recoveries(scores)
    report = write_leaderboard(
        [run], folder / "leaderboard", remarks=(PLANTED_NOTE, *(one.line for one in found))
    )
    return Demo(run, report, make_table(scores), found, stopped)


def recoveries(scores: Scores) -> tuple[Recovery, ...]:
    """How often each planted order comes back when the edits of the demo are drawn again.

    An edit, there and back, is drawn as one, within its organ. This says how the numbers would move with other
    findings on the same images, not with other patients: there are four sources only.
    """
    found = []
    for name, stored, order in (
        ("EA", f"ea@{JUDGE.label}", ACCURACY),
        ("CP", "masked_ssim", PRESERVATION),
    ):
        values = {arm.label: scores.values(arm, stored) for arm in scores.arms}
        edits = [sample.id.rpartition("-")[0] for sample in scores.samples]
        organs = [sample.organ for sample in scores.samples]
        found.append(Recovery(name, order, recovered(values, order, edits, organs, scores.seed), DRAWS))
    return tuple(found)
