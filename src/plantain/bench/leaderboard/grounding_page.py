"""Table 4 and Figures 6 and 13: where editors looked, per organ and per task, and what failed edits looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.arms import Arm
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.failure_types import (
    CutOffs,
    FailureShares,
    FailureType,
    failure_shares,
    sensitivity,
)
from plantain.bench.leaderboard.gallery import BYTES, SIDE, outline
from plantain.bench.leaderboard.latex import csv_text
from plantain.bench.leaderboard.measures import measure
from plantain.bench.leaderboard.table_rows import Scores, read_scores
from plantain.bench.leaderboard.tables import OVERALL, make_table
from plantain.bench.score.attending import MEASURES, map_path
from plantain.metrics.statistics.means import ClusteredMeans, Estimate
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.pages.thumbnails import data_uri
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import InputError, derive_seed
from plantain.version import __version__

CROSS = "cross-attention"
"""What was recorded before records said so."""

TEMPLATES = Path(__file__).parent / "templates"
PAGE = "attention.html"
NAMES = {
    "iou": ("IoU", "overlap of region and attention above 1.3 × Otsu’s threshold"),
    "chance": ("chance IoU", "overlap expected of as many pixels at random"),
    "mass": ("mass", "attention inside over the region’s share of the area; 1 is chance"),
    "pointing": ("pointing", "the strongest attention lies inside"),
    "auroc": ("AUROC", "a pixel inside has more attention than one outside; 0.5 is chance"),
}


@dataclass(frozen=True, slots=True)
class GroundingRow:
    """One arm, one group of samples.

    Attributes:
        arm: label; organ, task: of the samples, task "" for all of an organ, organ `OVERALL` for all.
        samples: that the arm covers there.
        estimates: by measure, of those that have a score.
    """

    arm: str
    organ: str
    task: str
    samples: int
    estimates: dict[str, Estimate]


@dataclass(frozen=True, slots=True)
class Typing:
    """What failed edits of an arm looked at: under the chosen cut-offs, and under those around them."""

    arm: str
    chosen: FailureShares
    around: list[FailureShares]

    def spread(self, kind: FailureType) -> tuple[float, float] | None:
        """The smallest and largest share of a type around the chosen cut-offs; None without any edit."""
        shares = [share for one in self.around if (share := one.share(kind)) is not None]
        return (min(shares), max(shares)) if shares else None


@dataclass(frozen=True, slots=True)
class Overlay:
    """One edit in pictures: before with the attention over it, and after; the region as an SVG path."""

    sample: str
    arm: str
    concept: str
    prompt: str
    size: tuple[int, int]
    attention: str
    edited: str | None
    region: str
    values: str


def attended(scores: Scores) -> list[Arm]:
    """The arms that attention was measured of."""
    stored = f"attention_{MEASURES[0]}"
    seen = {label for label, metric in (*scores.outputs, *scores.missing) if metric == stored}
    return [arm for arm in scores.arms if arm.label in seen]


def grounding_rows(scores: Scores) -> list[GroundingRow]:
    """Table 4: overall, then per organ, then per task."""
    rows = []
    for arm in attended(scores):
        covered = scores.covered(arm)
        for organ, task, chosen in _groups(scores):
            inside = chosen & covered
            if inside.any():
                rows.append(_row(scores, arm, organ, task, inside))
    return rows


def _groups(scores: Scores) -> Iterator[tuple[str, str, np.ndarray]]:
    organs = np.array([sample.organ for sample in scores.samples])
    tasks = np.array([sample.task for sample in scores.samples])
    yield OVERALL, "", np.ones(organs.size, bool)
    for organ in scores.organs:
        yield organ, "", organs == organ
        for task in sorted(set(tasks[organs == organ])):
            yield organ, str(task), (organs == organ) & (tasks == task)


def _row(scores: Scores, arm: Arm, organ: str, task: str, inside: np.ndarray) -> GroundingRow:
    chosen = np.flatnonzero(inside)
    clusters = [scores.samples[i].cluster for i in chosen]
    strata = [scores.samples[i].organ for i in chosen]
    plan = ClusteredMeans(clusters, strata)
    estimates = {}
    for name in MEASURES:
        known = measure(f"attention_{name}")
        values = scores.values(arm, known.stored)[chosen]
        estimates[name] = plan.mean(values, low=known.low, high=known.high)
    return GroundingRow(arm.label, organ, task, int(inside.sum()), estimates)


def typings(scores: Scores, judge: str | None, cuts: CutOffs) -> list[Typing]:
    """What failed edits looked at, by arm; empty where no judge has scored EA."""
    table = make_table(scores, judge)
    ea, cp = table.measure("EA"), table.measure("CP")
    if ea is None or cp is None:
        return []
    found = []
    for arm in attended(scores):
        covered = scores.covered(arm)
        accuracy, preservation, overlap = (
            scores.values(arm, stored)[covered] for stored in (ea.stored, cp.stored, "attention_iou")
        )
        chosen = failure_shares(accuracy, preservation, overlap, cuts)
        found.append(Typing(arm.label, chosen, sensitivity(accuracy, preservation, overlap, cuts)))
    return found


def write_grounding(
    run: Path,
    benchmark: Benchmark,
    to: Path | None = None,
    *,
    judge: str | None = None,
    cuts: CutOffs = CutOffs(),  # noqa: B008 (frozen)
    gallery: int = 8,
) -> Path:
    """Writes the page of a run's attention, with JSON and CSV beside it; returns the page's path.

    Raises:
        InputError: nothing was measured yet; no such judge; the folder cannot be written to.
    """
    target = html_target((to or run) / PAGE)
    with BenchRun.open(run) as opened:
        scores = read_scores(opened)
        if not attended(scores):
            raise InputError(f"{run}: no attention has been measured; run plantain bench attend")
        rows, types = grounding_rows(scores), typings(scores, judge, cuts)
        overlays = chosen_overlays(opened, scores, benchmark, gallery)
        kinds = recorded_kinds(opened, scores)
    records = [record for row in rows for record in _records(row)]
    failures = [_typing_record(one) for one in types]
    document = {"rows": records, "recorded": kinds, "failures": failures, "cut_offs": asdict(cuts)}
    write_page(target.with_suffix(".json"), json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    write_page(target.with_suffix(".csv"), csv_text(records))
    environment = page_environment(TEMPLATES, "")
    environment.filters["number"] = lambda value, digits=2: "–" if value is None else f"{value:.{digits}f}"
    page = environment.get_template("attention.html.j2").render(
        scores=scores,
        rows=rows,
        types=types,
        kinds=list(FailureType),
        cuts=cuts,
        measures=[(name, *NAMES[name]) for name in MEASURES],
        reasons=_reasons(scores),
        recorded=kinds,
        overlays=overlays,
        OVERALL=OVERALL,
        version=__version__,
    )
    write_page(target, page)
    return target


def _reasons(scores: Scores) -> list[tuple[str, str, int]]:
    """(arm, reason, how many) of outputs without a measure."""
    found = []
    for arm in attended(scores):
        for reason, count in scores.missing.get((arm.label, "attention_iou"), {}).items():
            found.append((arm.label, reason, count))
    return found


def recorded_kinds(opened: BenchRun, scores: Scores) -> dict[str, list[str]]:
    """What was recorded of each arm, in words: one kind, unless options changed between samples."""
    kinds: dict[str, list[str]] = {}
    for arm in attended(scores):
        found = set()
        for output in opened.outputs(arm.label):
            for row in opened.reader.scores(output.task_id, output.generation):
                if row.metric == f"attention_{MEASURES[0]}" and row.score.scored:
                    found.add(str(row.detail.get("what", CROSS)))
        kinds[arm.label] = sorted(found)
    return kinds


def _records(row: GroundingRow) -> Iterator[dict[str, object]]:
    for name, estimate in row.estimates.items():
        yield {
            "model": row.arm,
            "organ": row.organ,
            "task": row.task,
            "metric": f"attention_{name}",
            "mean": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "n": estimate.n,
            "coverage": estimate.n / row.samples,
        }


def _typing_record(one: Typing) -> dict[str, object]:
    return {
        "model": one.arm,
        "counts": {kind.value: count for kind, count in one.chosen.counts.items()},
        "unscored": one.chosen.unknown,
        "around": {kind.value: one.spread(kind) for kind in FailureType},
    }


def chosen_overlays(opened: BenchRun, scores: Scores, benchmark: Benchmark, most: int) -> list[Overlay]:
    """Pictures of edits, arm by arm, the samples in an order drawn from the run's seed."""
    order = sorted(
        (sample for sample in benchmark.samples if sample.roi is not None),
        key=lambda sample: derive_seed(scores.seed, "overlay", sample.id),
    )
    drawn = []
    for arm in attended(scores):
        outputs = {output.sample_id: output for output in opened.scored(arm.label) if output.k in arm.scored}
        for sample in [s for s in order if map_path(opened.run, arm, s.id, 0).is_file()][:most]:
            output = outputs.get(sample.id)
            previous = benchmark.previous(sample)
            attention = read_map(map_path(opened.run, arm, sample.id, 0))
            edited = None
            if output is not None and output.edited is not None:
                edited = data_uri(decode(opened.read(output)), SIDE, BYTES, synthetic=True)
            drawn.append(
                Overlay(
                    sample.id,
                    arm.label,
                    sample.key_concept or sample.finding,
                    sample.prompt,
                    sample.size,
                    data_uri(heat(previous, attention), SIDE, BYTES, synthetic=False),
                    edited,
                    outline(benchmark.roi(sample)),
                    _values_line(scores, arm, sample.id),
                )
            )
    return drawn


def read_map(path: Path) -> npt.NDArray[np.float32]:
    """A stored map, in [0, 1]. Raises InputError when the file is damaged."""
    stored = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_UNCHANGED)
    if stored is None:
        raise InputError(f"{path}: is damaged; delete it and run plantain bench attend again")
    return np.asarray(stored, np.float32) / 65535.0


def _values_line(scores: Scores, arm: Arm, sample_id: str) -> str:
    place = next(i for i, sample in enumerate(scores.samples) if sample.id == sample_id)
    parts = []
    for name in ("iou", "chance", "auroc"):
        value = scores.values(arm, f"attention_{name}")[place]
        parts.append(f"{NAMES[name][0]} {value:z.2f}" if np.isfinite(value) else f"{NAMES[name][0]} –")
    return ", ".join(parts)


def heat(pixels: Pixels, attention: npt.NDArray[np.floating]) -> Pixels:
    """The picture in grey with its attention over it: the stronger, the more orange.

    Args:
        pixels: uint8 (H, W, 3).
        attention: (h, w) in [0, 1], of any size.
    """
    height, width = pixels.shape[:2]
    weight = np.asarray(cv2.resize(attention, (width, height), interpolation=cv2.INTER_LINEAR))[..., None]
    grey = pixels.astype(np.float32).mean(axis=2, keepdims=True).repeat(3, axis=2)
    shown = grey * (1 - 0.75 * weight) + np.array([255.0, 140.0, 20.0]) * 0.75 * weight
    return np.asarray(np.clip(shown, 0, 255), np.uint8)


def table_lines(rows: Sequence[GroundingRow], kinds: Mapping[str, Sequence[str]]) -> list[str]:
    """Table 4 for a terminal: overall and per organ, then what was recorded of each arm."""
    cells = [["model", "organ", "n", *(NAMES[name][0] for name in MEASURES)]]
    for row in rows:
        if not row.task:
            values = (row.estimates[name].value for name in MEASURES)
            numbers = ("–" if value is None else f"{value:z.3f}" for value in values)
            cells.append([row.arm, row.organ, str(row.estimates["iou"].n), *numbers])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in cells
    ]
    return lines + [f"{arm}: {'; '.join(found)}" for arm, found in kinds.items() if found]
