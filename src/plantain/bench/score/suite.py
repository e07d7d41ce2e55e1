"""The metrics of a benchmark: what each needs of a sample, what it is called in the journal, and how it is measured."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.regions import Grey
from plantain.bench.benchmark.samples import Sample
from plantain.bench.score.field import field_of_view
from plantain.journal import JsonValue
from plantain.metrics.contract import OutputMetric, registered
from plantain.pixels.arrays import Mask, Pixels
from plantain.records import InputError, Score, unscored

Detail = Mapping[str, JsonValue]
NO_ROI, NO_TRUTH = "the sample has no region of interest", "the sample has no ground truth"
LACKING = {"roi": NO_ROI, "truth": NO_TRUTH}


class Case:
    """One sample's pixels, each read once when a metric first asks for it."""

    def __init__(self, benchmark: Benchmark, sample: Sample) -> None:
        self.sample = sample
        self._benchmark = benchmark

    @cached_property
    def before(self) -> Pixels:
        """The image before, uint8 (H, W, 3)."""
        return self._benchmark.previous(self.sample)

    @cached_property
    def truth(self) -> Pixels | None:
        """The real image after, at the size of the one before; None where there is none."""
        return None if self.sample.changed is None else self._benchmark.changed(self.sample)

    @cached_property
    def roi(self) -> Mask | None:
        """The region of interest, bool (H, W)."""
        return None if self.sample.roi is None else self._benchmark.roi(self.sample)

    @cached_property
    def roi_grey(self) -> Grey | None:
        """The region as grey levels, as the published code takes it."""
        return None if self.sample.roi is None else self._benchmark.roi_grey(self.sample)

    @cached_property
    def field(self) -> Mask:
        """What of the image before is image, bool (H, W)."""
        return field_of_view(self.before)


@dataclass(frozen=True, slots=True)
class SuiteMetric:
    """One metric.

    Attributes:
        name: in the journal; a learned metric has its plain name only with the published weights.
        version: changes whenever a number could; what was scored by another version is scored again.
        measure: scores an output (uint8 (H, W, 3), of the sample's size), with what a reader should know of the number.
        alone: one measurement at a time: it keeps a network in memory that uses all cores by itself.
    """

    name: str
    version: str
    measure: Callable[[Case, Pixels], tuple[Score, Detail]]
    alone: bool = False


def _in_suite(metric: OutputMetric) -> SuiteMetric:
    """A registered metric as the suite runs it: unscored where the sample lacks what it needs."""

    def measure(case: Case, output: Pixels) -> tuple[Score, Detail]:
        for need, reason in LACKING.items():
            if need in metric.needs and getattr(case, need) is None:
                return unscored(reason), {}
        found = metric.measure(case, output)
        return found if isinstance(found, tuple) else (found, {})

    return SuiteMetric(metric.name, metric.version, measure)


PIXEL_METRICS = tuple(_in_suite(metric) for metric in registered().values())
"""Metrics that need no network: ours, and those of installed packages."""

TEXT = "text_kept"
"""Whether text was left alone and none was drawn, where the extra `ocr` is there; named as a build's check is."""

LEARNED = (
    "lpips",
    "clip_isim",
    "clip_talign",
    "clip_talign_d",
    "clip_dalign",
    "clip_dalign_d",
    "image_reward",
    "image_reward_d",
)
"""Metrics of a trained network, where its weights are on disk; "_d" takes the change description for the prompt."""

SETS = ("fid", "kid")
"""Distances between all outputs of an arm and the ground truths."""


METRICS = (*(metric.name for metric in PIXEL_METRICS), TEXT, *LEARNED, *SETS)
"""All that can be asked for by name."""


def chosen(names: Sequence[str] | None) -> set[str]:
    """The metrics asked for by name, all of them without names.

    Raises:
        InputError: no metric of that name; the nearest is named.
    """
    for name in names or ():
        if name not in METRICS:
            nearest = difflib.get_close_matches(name, METRICS, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"metrics: {', '.join(METRICS)}"
            raise InputError(f"--metrics: no metric {name!r}; {hint}")
    return set(names) if names is not None else set(METRICS)
