"""Describe a benchmark: organs, tasks, sizes, regions, and the similarity of its prompts and images.

The numbers and figures of MedEBench's Figure 3 (organs), Figure 4 (similarity of prompt and image, share of the
region) and Table 5 (tasks).
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.medebench import ORGANS
from plantain.bench.benchmark.samples import Sample
from plantain.metrics.metric import ImageTextEncoder, label
from plantain.metrics.similarity import CLIP_WEIGHTS, talign
from plantain.metrics.statistics.means import ClusteredMeans
from plantain.pages.drawing import INK, MUTED, RULE, SERIES, row_axis, svg
from plantain.records.messages import counted

DEVIATION = 0.2
"""Usual standard deviation of two models' differences between sources, for scores in [0, 1]."""

PAIRS_OF_SEVEN = 21
"""Pairs of the paper's seven models."""

MORE_THAN = 5
"""The paper's Table 5 lists the tasks with more samples than this."""

BINS = 20


@dataclass(frozen=True, slots=True)
class OrganRow:
    """The counts of one organ's samples.

    Attributes:
        clusters: number of independent sources.
        roi_share: mean share of the image that the regions cover, in [0, 1]; None without regions.
    """

    organ: str
    samples: int
    tasks: int
    clusters: int
    roi_share: float | None


@dataclass(frozen=True, slots=True)
class TaskRow:
    """The numbers of samples and of independent sources (clusters) of one task of one organ."""

    organ: str
    task: str
    samples: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Description:
    """The contents of a benchmark.

    Attributes:
        name, samples, clusters: its name, and the numbers of samples and of independent sources.
        organs: by number of samples; tasks: all, by organ and number of samples.
        directions: samples that add, remove or change.
        with_truth, with_roi, with_description: samples with an image after, a region, a description of the change.
        with_synthetic_truth: samples whose image after is synthetic.
        roi_shares: the region's share of the frame, by sample id.
        similarity: cosine of prompt and previous image, by sample id; empty without CLIP.
        similarity_name: "clip_talign", with the weights' name if they are not the published ones.
        no_similarity: the reason if it was not measured, else "".
        detectable: the smallest difference between two models' scores in [0, 1] that a benchmark of this size detects
            with 80 % power at the 5 % level if the differences vary between sources with standard deviation
            `DEVIATION`; None below five sources.
        detectable_of_seven: the same for a pair among seven models, corrected for all pairs.
    """

    name: str
    samples: int
    clusters: int
    organs: tuple[OrganRow, ...]
    tasks: tuple[TaskRow, ...]
    directions: dict[str, int]
    with_truth: int
    with_synthetic_truth: int
    with_roi: int
    with_description: int
    roi_shares: dict[str, float]
    similarity: dict[str, float]
    similarity_name: str
    no_similarity: str
    detectable: float | None
    detectable_of_seven: float | None


def describe_benchmark(
    benchmark: Benchmark,
    encoder: ImageTextEncoder | None = None,
    *,
    why_none: str = "no encoder was given",
    progress: Callable[[int, int], None] | None = None,
) -> Description:
    """Return the counts and measurements of a benchmark.

    Args:
        benchmark: every mask is read, and every previous image if there is an encoder.
        encoder: embeds images and texts; only CLIP's published weights report under its bare name.
        why_none: reason for a missing encoder.
        progress: called with the numbers of finished and of all samples.

    Raises:
        plantain.records.InputError: a file cannot be decoded.
    """
    shares: dict[str, float] = {}
    similarity: dict[str, float] = {}
    samples = benchmark.samples
    for index, sample in enumerate(samples):
        if sample.roi is not None:
            shares[sample.id] = float(benchmark.mask(sample).region.mean())
        if encoder is not None:
            score = talign(benchmark.previous(sample), sample.prompt, encoder)
            if score.value is not None:
                similarity[sample.id] = score.value
        if progress:
            progress(index + 1, len(samples))
    plan = ClusteredMeans([sample.cluster for sample in samples], [sample.organ for sample in samples])
    name = "clip_talign" if encoder is None else label("clip_talign", CLIP_WEIGHTS, encoder.name)
    return Description(
        name=benchmark.name,
        samples=len(samples),
        clusters=len({sample.cluster for sample in samples}),
        organs=_organs(samples, shares),
        tasks=_tasks(samples),
        directions=dict(sorted(Counter(sample.direction.value for sample in samples).items())),
        with_truth=sum(sample.changed is not None for sample in samples),
        with_synthetic_truth=sum(sample.synthetic_truth for sample in samples),
        with_roi=sum(sample.roi is not None for sample in samples),
        with_description=sum(bool(sample.detailed) for sample in samples),
        roi_shares=shares,
        similarity=similarity,
        similarity_name=name,
        no_similarity=why_none if encoder is None else "",
        detectable=plan.detectable(DEVIATION),
        detectable_of_seven=plan.detectable(DEVIATION, pairs=PAIRS_OF_SEVEN),
    )


def _organs(samples: Sequence[Sample], shares: dict[str, float]) -> tuple[OrganRow, ...]:
    rows = []
    for organ in dict.fromkeys(sample.organ for sample in samples):
        members = [sample for sample in samples if sample.organ == organ]
        clusters = {sample.cluster for sample in members}
        known = [shares[sample.id] for sample in members if sample.id in shares]
        share = float(np.mean(known)) if known else None
        tasks = len({sample.task for sample in members})
        rows.append(OrganRow(organ, len(members), tasks, len(clusters), share))
    return tuple(sorted(rows, key=lambda row: (-row.samples, row.organ)))


def _tasks(samples: Sequence[Sample]) -> tuple[TaskRow, ...]:
    counts = Counter((sample.organ, sample.task) for sample in samples)
    clusters = Counter(key for key, _ in {((s.organ, s.task), s.cluster) for s in samples})
    rank = {organ: i for i, organ in enumerate(ORGANS)}
    rows = [TaskRow(organ, task, n, clusters[organ, task]) for (organ, task), n in counts.items()]
    return tuple(
        sorted(rows, key=lambda row: (rank.get(row.organ, len(rank)), row.organ, -row.samples, row.task))
    )


FIGURES = ("figure-3.svg", "figure-4.svg")


def paper_figures(description: Description) -> list[dict[str, str]]:
    """Describe the paper's Figures 3, 4 and 5 for this benchmark: name, file, shown numbers, and missing parts and why.

    Figure 5 never has a file, as it needs a run's scores.
    """
    found = {row.organ for row in description.organs}
    absent = ", ".join(organ for organ in ORGANS if organ not in found)
    without = description.samples - description.with_roi
    gaps = []
    if description.no_similarity:
        gaps.append(f"similarity: {description.no_similarity}")
    if without:
        gaps.append(f"region: {counted(without, 'sample has', 'samples have')} none")
    organs = f"{counted(description.samples, 'sample')} of {counted(len(found), 'organ')}"
    measured = f"similarity of {len(description.similarity)}, region of {len(description.roi_shares)} samples"
    why = "a benchmark has no scores: bench table --to draws it from a scored run"
    rows = (
        ("Figure 3", FIGURES[0], organs, f"no samples of {absent}" if absent else ""),
        ("Figure 4", FIGURES[1], measured, "; ".join(gaps)),
        ("Figure 5", "", "", why),
    )
    return [dict(zip(("name", "file", "shown", "missing"), row, strict=True)) for row in rows]


def spread(values: Iterable[float]) -> dict[str, float] | None:
    """Return number, mean, median, and 5th and 95th percentile ("low", "high") of values; None without any."""
    known = list(values)
    if not known:
        return None
    low, median, high = (float(value) for value in np.quantile(known, (0.05, 0.5, 0.95)))
    return {"n": len(known), "mean": float(np.mean(known)), "median": median, "low": low, "high": high}


def as_json(description: Description) -> dict[str, object]:
    """Return the description as JSON values, with summary statistics instead of one number per sample."""
    document = asdict(description)
    document["roi_share"] = spread(document.pop("roi_shares").values())
    document["prompt_image_similarity"] = {
        "metric": document.pop("similarity_name"),
        "unscored": document.pop("no_similarity"),
        "spread": spread(document.pop("similarity").values()),
    }
    return document


def organs_figure(description: Description) -> str:
    """Draw MedEBench's Figure 3 as SVG: samples per organ as bars, each divided by task, the largest first."""
    rows = description.organs[::-1]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        most = max((row.samples for row in rows), default=1)
        for index, row in enumerate(rows):
            left = 0
            for task in (task for task in description.tasks if task.organ == row.organ):
                n = task.samples
                axes.barh(index, n, left=left, height=0.64, color=SERIES[0], edgecolor="#ffffff", lw=0.8)
                left += task.samples
            share = row.samples / description.samples
            axes.text(left + most * 0.012, index, f"{row.samples} ({share:.0%})", va="center", color=INK)
        row_axis(axes, [row.organ for row in rows])
        axes.set_xlim(0, most * 1.16)
        axes.grid(axis="x", color=RULE, lw=0.5)
        axes.set_axisbelow(True)
        axes.set_xlabel(
            f"samples, divided by task ({description.samples} in all, from {description.clusters} sources)"
        )

    return svg("organs", 6.4, 1.0 + 0.32 * max(2, len(rows)), draw)


def properties_figure(description: Description) -> str:
    """Draw MedEBench's Figure 4 as SVG: similarity of prompts and images, and the regions' share of the image."""
    similarity, shares = list(description.similarity.values()), list(description.roi_shares.values())
    why_none = description.no_similarity or "no similarity could be measured"

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        _histogram(left, similarity, "cosine of prompt and image before", why_none)
        _histogram(
            right, shares, "share of the image that the region takes", "no sample has a region", (0.0, 1.0)
        )
        left.set_ylabel("samples")

    return svg("properties", 7.2, 2.9, draw)


def _histogram(
    axes: Axes, values: Sequence[float], name: str, why_none: str, span: tuple[float, float] | None = None
) -> None:
    axes.set_xlabel(name)
    if not values:
        axes.set_axis_off()
        text = f"{name}:\n{textwrap.fill(why_none, 34)}"
        axes.text(0.5, 0.5, text, ha="center", va="center", color=MUTED, transform=axes.transAxes)
        return
    low, high = span or (min(values), max(values))
    if high - low < 1e-9:
        low, high = low - 0.01, high + 0.01
    counts, edges = np.histogram(values, bins=BINS, range=(low, high))
    width = np.diff(edges)
    axes.bar(edges[:-1], counts, width, align="edge", color=SERIES[0], edgecolor="#ffffff", lw=0.6)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    median = float(np.median(values))
    axes.axvline(median, color=INK, lw=1.2, ls=(0, (3, 2)))
    axes.set_title(f"median {median:.3f}, n = {len(values)}", fontsize=9, color=MUTED, loc="left")
