"""What a benchmark consists of: organs, tasks, sizes, regions, and how far its prompts are from its images.

The numbers behind MedEBench's Figure 3 (organs), Figure 4 (similarity of prompt and image, share of the region) and
Table 5 (tasks).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.medebench import ORGANS
from plantain.bench.benchmark.samples import Sample
from plantain.metrics.networks.available import CLIP, find_networks
from plantain.metrics.networks.encoders import ImageTextEncoder, label
from plantain.metrics.similarity import CLIP_WEIGHTS, talign
from plantain.metrics.statistics.means import ClusteredMeans

DEVIATIONS = (0.1, 0.2, 0.3)
"""Between sources, of differences of scores in [0, 1]: alike models, usual ones, models that often fail differently."""

USUAL = 0.2

SEVEN = 21
"""Pairs of the paper's seven models."""

MORE_THAN = 5
"""The paper's Table 5 lists the tasks with more samples than this."""


@dataclass(frozen=True, slots=True)
class OrganRow:
    """One organ: samples, tasks, sources, and the mean share of its regions (None without any); the smallest
    difference between two models that it shows where sources' differences have a standard deviation of `USUAL`."""

    organ: str
    samples: int
    tasks: int
    clusters: int
    roi_share: float | None
    detectable: float | None


@dataclass(frozen=True, slots=True)
class DescribedTask:
    """One task of one organ."""

    organ: str
    task: str
    samples: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How a measured quantity lies over the samples that have it."""

    n: int
    mean: float
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """Mean, median and the middle nine tenths; None without values."""
        if not values:
            return None
        low, median, high = (float(value) for value in np.quantile(values, (0.05, 0.5, 0.95)))
        return cls(len(values), float(np.mean(values)), median, low, high)


@dataclass(frozen=True, slots=True)
class Description:
    """What a benchmark consists of.

    Attributes:
        name, samples, clusters: what it is called, how many samples, from how many independent sources.
        organs: by number of samples; tasks: all, by organ and number of samples.
        directions: how many samples add, remove or change.
        sizes: how many samples have which longest side.
        with_truth, with_roi, with_detailed: samples with an image after, a region, a description of the change.
        with_synthetic_truth: of those with an image after, how many have one that is not real.
        roi_shares: the region's share of the frame, by sample id.
        similarity: cosine of prompt and previous image, by sample id; empty without CLIP.
        similarity_name: "clip_talign", or with the weights' name where they are not the published ones.
        no_similarity: why it was not measured; "" where it was.
        detectable: the smallest difference between two models, of scores in [0, 1], that a benchmark of this size shows
            with 80 % power at the 5 % level, by the standard deviation of the differences between sources; None below
            five sources. detectable_of_seven: the same for a pair among seven models, corrected for all pairs.
    """

    name: str
    samples: int
    clusters: int
    organs: tuple[OrganRow, ...]
    tasks: tuple[DescribedTask, ...]
    directions: dict[str, int]
    sizes: dict[int, int]
    with_truth: int
    with_synthetic_truth: int
    with_roi: int
    with_detailed: int
    roi_shares: dict[str, float]
    similarity: dict[str, float]
    similarity_name: str
    no_similarity: str
    detectable: dict[float, float | None]
    detectable_of_seven: dict[float, float | None]

    def table5(self, more_than: int = MORE_THAN) -> tuple[DescribedTask, ...]:
        """The tasks with more samples than `more_than`: the paper's Table 5."""
        return tuple(row for row in self.tasks if row.samples > more_than)


def find_clip(weights: str = CLIP) -> tuple[ImageTextEncoder | None, str]:
    """CLIP from weights on this machine (a name that was downloaded before, or a folder), or None and why not."""
    networks = find_networks({"clip_talign"}, clip=weights)
    return networks.clip, "; ".join(why for _, why in networks.why_not)


def describe_benchmark(
    benchmark: Benchmark,
    encoder: ImageTextEncoder | None = None,
    *,
    why_none: str = "no encoder was given",
    progress: Callable[[int, int], None] | None = None,
) -> Description:
    """Counts and measures a benchmark.

    Args:
        benchmark: every mask is read, and every previous image where there is an encoder.
        encoder: of images and texts; only CLIP's published weights report under its bare name.
        why_none: why there is no encoder.
        progress: called with samples done and in all.

    Raises:
        plantain.records.InputError: a file cannot be decoded.
    """
    shares: dict[str, float] = {}
    similarity: dict[str, float] = {}
    for index, sample in enumerate(benchmark.samples):
        if sample.roi is not None:
            shares[sample.id] = float(benchmark.mask(sample).region.mean())
        if encoder is not None:
            score = talign(benchmark.previous(sample), sample.prompt, encoder)
            if score.value is not None:
                similarity[sample.id] = score.value
        if progress:
            progress(index + 1, len(benchmark.samples))
    samples = benchmark.samples
    plan = ClusteredMeans([sample.cluster for sample in samples], [sample.organ for sample in samples])
    return Description(
        name=benchmark.name,
        samples=len(samples),
        clusters=len({sample.cluster for sample in samples}),
        organs=_organs(samples, shares),
        tasks=_tasks(samples),
        directions=dict(sorted(Counter(sample.direction.value for sample in samples).items())),
        sizes=dict(sorted(Counter(max(sample.size) for sample in samples).items())),
        with_truth=sum(sample.changed is not None for sample in samples),
        with_synthetic_truth=sum(sample.synthetic_truth for sample in samples),
        with_roi=sum(sample.roi is not None for sample in samples),
        with_detailed=sum(bool(sample.detailed) for sample in samples),
        roi_shares=shares,
        similarity=similarity,
        similarity_name=_name(encoder),
        no_similarity=why_none if encoder is None else "",
        detectable={deviation: plan.detectable(deviation) for deviation in DEVIATIONS},
        detectable_of_seven={deviation: plan.detectable(deviation, pairs=SEVEN) for deviation in DEVIATIONS},
    )


def as_json(description: Description) -> dict[str, object]:
    """The description as plain JSON values, spreads in place of every sample's number."""
    return {
        "name": description.name,
        "samples": description.samples,
        "clusters": description.clusters,
        "organs": [_fields(row) for row in description.organs],
        "tasks": [_fields(row) for row in description.tasks],
        "directions": description.directions,
        "longest_sides": {str(side): n for side, n in description.sizes.items()},
        "with_truth": description.with_truth,
        "with_synthetic_truth": description.with_synthetic_truth,
        "with_roi": description.with_roi,
        "with_description": description.with_detailed,
        "detectable_difference": {
            "power": 0.8,
            "level": 0.05,
            "two_models": {str(deviation): found for deviation, found in description.detectable.items()},
            "among_seven": {
                str(deviation): found for deviation, found in description.detectable_of_seven.items()
            },
        },
        "roi_share": _fields(Spread.of(list(description.roi_shares.values()))),
        "prompt_image_similarity": {
            "metric": description.similarity_name,
            "unscored": description.no_similarity,
            "spread": _fields(Spread.of(list(description.similarity.values()))),
        },
    }


def _fields(row: OrganRow | DescribedTask | Spread | None) -> dict[str, object] | None:
    return None if row is None else {name: getattr(row, name) for name in type(row).__slots__}


def _organs(samples: Sequence[Sample], shares: dict[str, float]) -> tuple[OrganRow, ...]:
    rows = []
    for organ in dict.fromkeys(sample.organ for sample in samples):
        of = [sample for sample in samples if sample.organ == organ]
        known = [shares[sample.id] for sample in of if sample.id in shares]
        rows.append(
            OrganRow(
                organ,
                len(of),
                len({sample.task for sample in of}),
                len({sample.cluster for sample in of}),
                float(np.mean(known)) if known else None,
                ClusteredMeans([sample.cluster for sample in of]).detectable(USUAL),
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.samples, row.organ)))


def _tasks(samples: Sequence[Sample]) -> tuple[DescribedTask, ...]:
    order = list(ORGANS)
    clusters: dict[tuple[str, str], set[str]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for sample in samples:
        counts[sample.organ, sample.task] += 1
        clusters.setdefault((sample.organ, sample.task), set()).add(sample.cluster)
    rows = [DescribedTask(organ, task, n, len(clusters[organ, task])) for (organ, task), n in counts.items()]

    def place(row: DescribedTask) -> tuple[object, ...]:
        known = row.organ in ORGANS
        return (not known, order.index(row.organ) if known else 0, row.organ, -row.samples, row.task)

    return tuple(sorted(rows, key=place))


def _name(encoder: ImageTextEncoder | None) -> str:
    return "clip_talign" if encoder is None else label("clip_talign", CLIP_WEIGHTS, encoder.name)
