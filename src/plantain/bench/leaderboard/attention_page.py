"""Table 4 and Figures 6 and 13 of MedEBench: attention against the region, and failed edits by where attention was.

MedEBench (section 4) distinguishes two failures by the overlap of attention and region, among edits of low accuracy and
high context preservation, and gives no cut-offs; `CUTS` are ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.concepts import concept_of
from plantain.bench.generate.runfile import Arm, BenchRun
from plantain.bench.leaderboard.export import table_json
from plantain.bench.leaderboard.gallery import BYTES, SIDE
from plantain.bench.leaderboard.measures import ATTENTION
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.scores import Scores
from plantain.bench.leaderboard.tables import OVERALL, Table, TableCell, make_table
from plantain.bench.score.attention import MEASURES, map_path, read_map
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.pages.thumbnails import data_uri, outline
from plantain.pixels.arrays import Floats, Pixels
from plantain.pixels.decode import decode
from plantain.records import InputError, derive_seed
from plantain.records.messages import command_line
from plantain.version import __version__

OVERLAYS = 8
"""Maps that the page shows on their images."""

TEMPLATES = Path(__file__).parent / "templates"
PAGE = "attention.html"
STORED = tuple(f"attention_{name}" for name in MEASURES)


class FailureType(StrEnum):
    """The kind of success or failure of one edit."""

    EDITED = "edited"
    DAMAGED = "not accurate, surroundings damaged"
    LOOKED_THERE = "looked at the place, did not edit"
    LOOKED_ELSEWHERE = "looked elsewhere"


CUTS = {"ea": 0.4, "cp": 0.8, "iou": 0.2}
"""EA below the first is low, in [0, 1]; CP, in [-1, 1], and IoU, in [0, 1], from the others on are high."""


@dataclass(frozen=True, slots=True)
class FailureRow:
    """The number of an arm's edits of each failure type.

    Attributes:
        arm: label of the arm.
        counts: edits of each type, among those with scores of accuracy, preservation and overlap.
        unscored: edits without one of these scores.
    """

    arm: str
    counts: dict[FailureType, int]
    unscored: int

    @property
    def split(self) -> tuple[int, int]:
        """(failures with high IoU, failures with low IoU) among edits with low EA and high CP (MedEBench, 4)."""
        return self.counts[FailureType.LOOKED_THERE], self.counts[FailureType.LOOKED_ELSEWHERE]

    @property
    def split_line(self) -> str:
        """One line with the arm's label and its failures with high and with low IoU."""
        high, low = self.split
        return f"{self.arm}: {high + low} failures (low EA, high CP): {high} of high IoU, {low} of low IoU"


def failure_row(arm: str, ea: Floats, cp: Floats, iou: Floats) -> FailureRow:
    """Count the failure types of an arm's edits.

    Args:
        arm: label of the arm.
        ea, cp, iou: editing accuracy, context preservation, and overlap of attention with the region; float64 (edits,)
            each, NaN where unscored.

    Example:
        >>> import numpy as np
        >>> row = failure_row("m", np.array([0.1]), np.array([0.95]), np.array([0.02]))
        >>> [kind.value for kind, count in row.counts.items() if count]
        ['looked elsewhere']
    """
    known = np.isfinite(ea) & np.isfinite(cp) & np.isfinite(iou)
    low = known & (ea < CUTS["ea"])
    whole = low & (cp >= CUTS["cp"])
    there = whole & (iou >= CUTS["iou"])
    counts = (known & ~low).sum(), (low & ~whole).sum(), there.sum(), (whole & ~there).sum()
    by_type = {kind: int(count) for kind, count in zip(FailureType, counts, strict=True)}
    return FailureRow(arm, by_type, int((~known).sum()))


def failure_rows(table: Table) -> list[FailureRow]:
    """Count the failure types of every arm with measured attention; [] if EA or CP was not scored."""
    scores = table.scores
    ea, cp = table.measure("EA"), table.measure("CP") or table.measure("CP (strict)")
    if ea is None or cp is None:
        return []
    rows = []
    for arm in recorded_arms(scores):
        covered = scores.covered(arm)
        accuracy, preservation, overlap = (
            scores.values(arm, stored)[covered] for stored in (ea.stored, cp.stored, STORED[0])
        )
        rows.append(failure_row(arm.label, accuracy, preservation, overlap))
    return rows


def recorded_arms(scores: Scores) -> list[Arm]:
    """Return the arms whose attention was measured."""
    seen = {label for label, metric in (*scores.outputs, *scores.missing) if metric == STORED[0]}
    return [arm for arm in scores.arms if arm.label in seen]


def grounding_rows(table: Table) -> list[list[TableCell]]:
    """Return the rows of Table 4, one cell per measure, by arm: overall, then each organ followed by its tasks."""
    scores, rows = table.scores, []
    groups = [(OVERALL, "")]
    for organ in scores.organs:
        groups.append((organ, ""))
        groups += [(organ, task) for task in sorted({s.task for s in scores.samples if s.organ == organ})]
    for arm in recorded_arms(scores):
        for organ, task in groups:
            keys = [(arm.label, organ, task, name) for name in STORED]
            found = [table.tasks.get(key) if task else table.cells.get((*key[:2], key[3])) for key in keys]
            rows.append([cell for cell in found if cell is not None and cell.samples])
    return [row for row in rows if row]


def write_attention_page(
    run: Path, benchmark: Benchmark, to: Path | None = None, *, judge: str | None = None
) -> Path:
    """Write a run's attention scores as an HTML page and JSON; return the page's path.

    Args:
        run: the run's folder.
        benchmark: its benchmark, for the images shown.
        to: the folder to write to; default: the run's.
        judge: label of the judge whose accuracy scores classify failures; None: as for `make_table`.

    Raises:
        InputError: attention was not measured yet, the judge is unknown, or the folder cannot be written to.
    """
    target = html_target((to or run) / PAGE)
    with BenchRun.open(run) as opened:
        scores = read_scores(opened)
        if not recorded_arms(scores):
            raise InputError(
                f"{run}: no attention has been measured; {command_line('bench', 'attention', run)}"
            )
        table = make_table(scores, judge)
        rows, failures = grounding_rows(table), failure_rows(table)
        overlays = list(_overlays(opened, scores, benchmark, OVERLAYS))
    document = {
        "rows": [{"task": ""} | row for row in table_json([cell for row in rows for cell in row], table)],
        "failures": [
            {
                "model": one.arm,
                "counts": {kind.value: count for kind, count in one.counts.items()},
                "unscored": one.unscored,
                "paper": dict(zip(("high_iou", "low_iou"), one.split, strict=True)),
            }
            for one in failures
        ],
        "cut_offs": CUTS,
    }
    write_page(target.with_suffix(".json"), json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    environment = page_environment(TEMPLATES, "")
    page = environment.get_template("attention.html.j2").render(
        scores=scores,
        rows=rows,
        failures=failures,
        kinds=list(FailureType),
        cuts=CUTS,
        measures=list(ATTENTION.values()),
        missing=missing_maps(scores),
        overlays=overlays,
        version=__version__,
    )
    write_page(target, page, [(sample.image.dataset, sample.image.licence) for sample in benchmark.samples])
    return target


def missing_maps(scores: Scores) -> list[tuple[str, str, int]]:
    """Return (label of the arm, reason, number of outputs without a map for it)."""
    return [
        (arm.label, reason, count)
        for arm in recorded_arms(scores)
        for reason, count in scores.missing.get((arm.label, STORED[0]), {}).items()
    ]


def _overlays(
    opened: BenchRun, scores: Scores, benchmark: Benchmark, most: int
) -> Iterator[dict[str, object]]:
    """Yield edits as the template shows them: attention over the image before, output, region as an SVG path.

    They come arm by arm, at most `most` each; the samples are in an order drawn from the run's seed.
    """
    order = sorted(
        (sample for sample in benchmark.samples if sample.roi is not None),
        key=lambda sample: derive_seed(scores.seed, "overlay", sample.id),
    )
    for arm in recorded_arms(scores):
        outputs = {output.sample_id: output for output in opened.outputs(arm.label) if output.k == 0}
        for sample in [s for s in order if map_path(opened.run, arm, s.id, 0).is_file()][:most]:
            output = outputs.get(sample.id)
            edited = None
            if output is not None and output.edited is not None:
                edited = data_uri(decode(opened.read(output)), SIDE, BYTES, synthetic=True)
            attention = heat(benchmark.previous(sample), read_map(map_path(opened.run, arm, sample.id, 0)))
            yield {
                "sample": sample.id,
                "arm": arm.label,
                "concept": concept_of(sample)[0],
                "prompt": sample.prompt,
                "size": sample.size,
                "attention": data_uri(attention, SIDE, BYTES, synthetic=sample.image.synthetic),
                "edited": edited,
                "region": outline(benchmark.roi(sample)),
            }


def heat(pixels: Pixels, attention: npt.NDArray[np.floating]) -> Pixels:
    """Draw an attention map over an image: grey, blended with orange in proportion to attention; uint8 (H, W, 3).

    Args:
        pixels: uint8 (H, W, 3).
        attention: (h, w) in [0, 1], of any size.
    """
    height, width = pixels.shape[:2]
    weight = np.asarray(cv2.resize(attention, (width, height), interpolation=cv2.INTER_LINEAR))[..., None]
    grey = pixels.astype(np.float32).mean(axis=2, keepdims=True).repeat(3, axis=2)
    shown = grey * (1 - 0.75 * weight) + np.array([255.0, 140.0, 20.0]) * 0.75 * weight
    return np.asarray(np.clip(shown, 0, 255), np.uint8)
