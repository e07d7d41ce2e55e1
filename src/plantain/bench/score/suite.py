"""The metrics of a benchmark: which can be measured here, what they are given of a sample, and measuring it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, cached_property
from threading import Lock

import cv2
import numpy as np

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.engines.contract import WorkEngine
from plantain.journal import JsonValue, StoredScore
from plantain.metrics import Metric, MetricSample
from plantain.metrics.metric import registered, unusable
from plantain.metrics.networks.available import find_networks
from plantain.metrics.networks.encoders import Networks, RememberingEncoder
from plantain.pixels.arrays import Image, Mask, Pixels
from plantain.pixels.decode import decode
from plantain.records import InputError, Score, unscored
from plantain.records.suggestions import suggest

PIXEL_METRICS = tuple(name for name, kind in registered().items() if not kind.uses)
"""Metrics that need no network or reader."""

SETS = ("fid", "kid")
"""Distances between all outputs of an arm and the ground truths."""

METRICS = (*registered(), *SETS)
"""All metrics by name."""

PAPER = {
    "masked ssim": "cp_reference",
    "context preservation": "cp_reference",
    "imagereward_p": "image_reward",
} | {
    "imagereward_d": "image_reward_d",
    **{(kind.column or name).lower(): name for name, kind in registered().items()},
}
"""Names in tables and in the paper, in small letters -> names of metrics."""

LACKING = {
    "roi": "the sample has no region of interest",
    "truth": "the sample has no ground truth",
    "prompt": "the sample has no prompt",
    "detailed": "the sample has no description of the change",
}
DARK = 10
"""Brightest grey level of a background: padding is 0, what surrounds a fundus or a head is a little brighter."""
LEAST = 0.02
"""A field of view smaller than this share of the frame is ignored: the whole frame is taken."""

Detail = Mapping[str, JsonValue]
Measured = tuple[Score, Detail]
Read = Callable[[Output], bytes]
"""Return an output's PNG."""


def chosen(names: Sequence[str] | None) -> set[str]:
    """Return the named metrics, by their identifiers or as tables call them, or all of them.

    Raises:
        InputError: no such metric, or its package cannot be loaded.
    """
    names = None if names is None else [PAPER.get(name.strip().lower(), name.lower()) for name in names]
    for name in names or ():
        if name in unusable():
            raise InputError(f"--metrics: {unusable()[name]}")
        if name not in METRICS:
            raise InputError(f"--metrics: no metric {name!r}; {suggest(name, METRICS)}")
    return set(METRICS if names is None else names)


def open_metrics(wanted: set[str], networks: Networks) -> tuple[list[Metric], list[tuple[str, str]]]:
    """Return the wanted metrics that can be measured here, and the reasons why the others cannot."""
    if networks.clip is not None:
        networks = replace(networks, clip=RememberingEncoder(networks.clip))
    made: list[Metric] = []
    missing = [*networks.why_not, *unusable().items()]
    for name in (one for one in registered() if one in wanted):
        metric = registered()[name].open(networks)
        if isinstance(metric, Metric):
            made.append(metric)
        elif metric:
            missing.append((name, metric))
    return made, missing


def field_of_view(pixels: Pixels) -> Mask:
    """Return what is brighter than a dark background, with its holes closed, bool (H, W).

    Dark parts that touch the frame are background; enclosed ones, such as ventricles and lungs, are not. An image
    without a dark surround is field all over.
    """
    brightest = cv2.medianBlur(np.ascontiguousarray(pixels.max(axis=2)), 5)
    lit = (brightest > DARK).astype(np.uint8)
    contours, _ = cv2.findContours(lit, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    field = np.zeros(lit.shape, np.uint8)
    large = [contour for contour in contours if cv2.contourArea(contour) >= LEAST / 10 * lit.size]
    cv2.drawContours(field, large, -1, 1, cv2.FILLED)
    found = field.astype(bool)
    return found if float(found.mean()) >= LEAST else np.ones(lit.shape, bool)


class SampleCase:
    """A sample as metrics see it (`MetricSample`); each image is read when first asked for.

    A pickled case has the images that were read; of the others it says that there are none.
    """

    def __init__(self, benchmark: Benchmark, sample: Sample) -> None:
        self.prompt = sample.prompt
        self.detailed = sample.detailed
        self._sample = sample
        self._benchmark = benchmark

    def __getstate__(self) -> dict[str, object]:
        kept = {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
        return {"truth": None, "roi": None, "roi_grey": None, **kept}

    @cached_property
    def before(self) -> Pixels:
        return self._benchmark.previous(self._sample)

    @cached_property
    def truth(self) -> Pixels | None:
        return None if self._sample.changed is None else self._benchmark.changed(self._sample)

    @cached_property
    def roi(self) -> Mask | None:
        return None if self._sample.roi is None else self._benchmark.roi(self._sample)

    @cached_property
    def roi_grey(self) -> Image | None:
        return None if self._sample.roi is None else self._benchmark.roi_grey(self._sample)

    @cached_property
    def field(self) -> Mask:
        return field_of_view(self.before)


def measured(metric: Metric, case: MetricSample, output: Pixels) -> Measured:
    """Return a metric's score of an output; unscored if the sample lacks something or the image does not suit it."""
    for need in metric.needs:
        given = getattr(case, need)
        if given is None or (isinstance(given, str) and not given):
            return unscored(LACKING[need]), {}
    try:
        found = metric.measure(case, output)
    except ValueError as error:
        return unscored(str(error)), {}
    return found if isinstance(found, tuple) else (found, {})


@dataclass(frozen=True, slots=True)
class Lacking:
    """An output and the metrics that it has no current score of."""

    output: Output
    metrics: tuple[Metric, ...]

    def row(self, metric: Metric, found: Measured) -> StoredScore:
        """Return a score as it is stored: with the version that measured and the image that was measured."""
        score, detail = found
        detail = {"version": metric.version, "blob": self.output.edited, **detail}
        return self.output.score(metric.name, score, detail)


def lacking(run: BenchRun, outputs: Iterable[Output], metrics: Sequence[Metric]) -> Iterator[Lacking]:
    """Yield what each output lacks: no score, one by another version of the metric, or one of another image."""
    for output in outputs:
        rows = run.scores(output)
        missing = []
        for metric in metrics:
            row = rows.get(metric.name)
            if row is None or (row.detail.get("version"), row.detail.get("blob")) != (
                metric.version,
                output.edited,
            ):
                missing.append(metric)
        if missing:
            yield Lacking(output, tuple(missing))


def measure(case: SampleCase, work: Sequence[Lacking], read: Read, networks: Lock) -> list[StoredScore]:
    """Return the scores that the outputs of one sample lack. Any thread.

    Args:
        case: the sample.
        work: what its outputs lack.
        read: returns an output's PNG.
        networks: held while metrics run that use a network.
    """
    rows: list[StoredScore] = []
    for alone in (False, True):
        with networks if alone else nullcontext():
            for lack in work:
                metrics = [metric for metric in lack.metrics if metric.alone is alone]
                if lack.output.edited is None:
                    missing = unscored(lack.output.reason)
                    rows += [lack.row(metric, (missing, {})) for metric in metrics]
                elif metrics:
                    pixels = decode(read(lack.output))
                    rows += [lack.row(metric, measured(metric, case, pixels)) for metric in metrics]
    return rows


async def measure_on(
    engine: WorkEngine, case: SampleCase, work: Sequence[Lacking], read: Read
) -> tuple[list[StoredScore], list[Lacking]]:
    """Measure the outputs of one sample on a worker of an engine.

    Returns:
        The scores, and what was not measured: the worker was lost, or has not the metric in that version.
    """
    there = [lack for lack in work if lack.output.edited is not None]
    rows, rest = [], [lack for lack in work if lack.output.edited is None]
    wishes = await asyncio.to_thread(_read, case, there, read)
    ran = await engine.run("metrics", measure_here, (case, wishes))
    if ran.value is None:
        return [], list(work)
    for lack, found in zip(there, ran.value, strict=True):
        pairs = list(zip(lack.metrics, found, strict=True))
        rows += [lack.row(metric, one) for metric, one in pairs if one is not None]
        missing = tuple(metric for metric, one in pairs if one is None)
        if missing:
            rest.append(Lacking(lack.output, missing))
    return rows, rest


Wish = tuple[bytes, list[tuple[str, str]]]
"""An output's file, and the name and version of each metric to be measured."""


def _read(case: SampleCase, work: Sequence[Lacking], read: Read) -> list[Wish]:
    """Read what a worker needs: the outputs' files, and those of the sample's images that a metric needs."""
    needs = {need for lack in work for metric in lack.metrics for need in metric.needs}
    for name in {"before", *needs, *(["roi_grey"] if "roi" in needs else [])}:
        getattr(case, name)
    return [(read(lack.output), [(one.name, one.version) for one in lack.metrics]) for lack in work]


def measure_here(case: SampleCase, wishes: Sequence[Wish]) -> list[list[Measured | None]]:
    """Measure on a worker; None where it has not the metric in that version."""
    found = []
    for data, names in wishes:
        pixels = decode(data)
        row: list[Measured | None] = []
        for name, version in names:
            metric = _metric(name)
            if metric is not None and metric.version == version:
                row.append(measured(metric, case, pixels))
            else:
                row.append(None)
        found.append(row)
    return found


@cache
def _metric(name: str) -> Metric | None:
    made, _ = open_metrics({name}, find_networks({name}))
    return made[0] if made else None
