"""The metrics of a benchmark: which can be asked for and measured here, and what each is handed of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.score.field import field_of_view
from plantain.journal import JsonValue
from plantain.metrics import Metric, MetricSample
from plantain.metrics.networks.encoders import Networks, RememberingEncoder
from plantain.metrics.registry import registered, unusable
from plantain.pixels.arrays import Image, Mask, Pixels
from plantain.records import InputError, Score, unscored
from plantain.records.suggestions import suggest

Detail = Mapping[str, JsonValue]
LACKING = {
    "roi": "the sample has no region of interest",
    "truth": "the sample has no ground truth",
    "prompt": "the sample has no prompt",
    "detailed": "the sample has no description of the change",
}


class SampleCase:
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
    def roi_grey(self) -> Image | None:
        """The region as grey levels, as the published code takes it."""
        return None if self.sample.roi is None else self._benchmark.roi_grey(self.sample)

    @property
    def prompt(self) -> str:
        """The instruction."""
        return self.sample.prompt

    @property
    def detailed(self) -> str:
        """The description of the change; "" where there is none."""
        return self.sample.detailed

    @cached_property
    def field(self) -> Mask:
        """What of the image before is image, bool (H, W)."""
        return field_of_view(self.before)


PIXEL_METRICS = tuple(name for name, kind in registered().items() if not kind.uses)
"""Metrics that need nothing of this machine: ours, and those of installed packages."""

SETS = ("fid", "kid")
"""Distances between all outputs of an arm and the ground truths."""


METRICS = (*registered(), *SETS)
"""All that can be asked for by name."""


def chosen(names: Sequence[str] | None) -> set[str]:
    """The metrics asked for by name, all of them without names.

    Raises:
        InputError: no metric of that name; the nearest is named. Or its package cannot be loaded.
    """
    for name in names or ():
        if name in unusable():
            raise InputError(f"--metrics: {unusable()[name]}")
        if name not in METRICS:
            raise InputError(f"--metrics: no metric {name!r}; {suggest(name, METRICS)}")
    return set(names) if names is not None else set(METRICS)


def open_metrics(wanted: set[str], networks: Networks) -> tuple[list[Metric], list[tuple[str, str]]]:
    """The wanted metrics that this machine can measure; and the others with the reason, line by line."""
    if networks.clip is not None:
        networks = replace(networks, clip=RememberingEncoder(networks.clip))
    made: list[Metric] = []
    lacking = [*networks.why_not, *unusable().items()]
    for name, kind in registered().items():
        if name in wanted:
            metric = kind.open(networks)
            if isinstance(metric, Metric):
                made.append(metric)
            elif metric:
                lacking.append((name, metric))
    return made, lacking


def measured(metric: Metric, case: MetricSample, output: Pixels) -> tuple[Score, Detail]:
    """A metric's score of an output, uint8 (H, W, 3); unscored where the sample lacks something, or the metric cannot
    take such an image, e.g. one smaller than its window.
    """
    for need in metric.needs:
        given = getattr(case, need)
        if given is None or (isinstance(given, str) and not given):
            return unscored(LACKING[need]), {}
    try:
        found = metric.measure(case, output)
    except ValueError as error:
        return unscored(str(error)), {}
    return found if isinstance(found, tuple) else (found, {})
