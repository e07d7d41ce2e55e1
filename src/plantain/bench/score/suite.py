"""The metrics of a benchmark: which can be measured here, and measuring a sample's outputs or an arm's set of outputs.

FID and KID compare the outputs of an arm, as a set, with the ground truths, and with the distance expected by chance.
Their features are not kept; a digest of the images decides whether a distance must be computed again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from threading import Lock

import cv2
import numpy as np
import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.engines.contract import WorkEngine
from plantain.journal import JsonValue, StoredScore
from plantain.metrics import Metric, MetricSample
from plantain.metrics.distributions import FID_WEIGHTS, SetDistance, fid_of_features, kid_of_features
from plantain.metrics.metric import registered, unusable
from plantain.metrics.networks.available import find_networks
from plantain.metrics.networks.encoders import ImageEncoder, Networks, RememberingEncoder, label
from plantain.pixels.arrays import Floats, Image, Mask, Pixels
from plantain.pixels.decode import decode
from plantain.records import InputError, Score, unscored
from plantain.records.suggestions import suggest
from plantain.runs.open_run import OpenRun

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

REQUIREMENTS = {
    "roi": "the sample has no region of interest",
    "truth": "the sample has no ground truth",
    "prompt": "the sample has no prompt",
    "detailed": "the sample has no description of the change",
}
DARK = 10
"""Brightest grey level of a background: padding is 0, the surround of a fundus or a head is a little brighter."""
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
    """Return the part that is brighter than a dark background, with its holes closed, bool (H, W).

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
    """A sample as metrics see it (`MetricSample`); each image is read on its first use.

    A pickled case has the images that were read; the others are None.
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
    """Return a metric's score of an output; unscored if the sample has no such input or the image does not suit it."""
    for need in metric.needs:
        given = getattr(case, need)
        if given is None or (isinstance(given, str) and not given):
            return unscored(REQUIREMENTS[need]), {}
    try:
        found = metric.measure(case, output)
    except ValueError as error:
        return unscored(str(error)), {}
    return found if isinstance(found, tuple) else (found, {})


@dataclass(frozen=True, slots=True)
class MissingScores:
    """An output and the metrics that it has no current score of."""

    output: Output
    metrics: tuple[Metric, ...]

    def row(self, metric: Metric, found: Measured) -> StoredScore:
        """Return a score as it is stored: with the version that measured and the image that was measured."""
        score, detail = found
        detail = {"version": metric.version, "blob": self.output.edited, **detail}
        return self.output.score(metric.name, score, detail)


def missing_scores(
    run: BenchRun, outputs: Iterable[Output], metrics: Sequence[Metric]
) -> Iterator[MissingScores]:
    """Yield the missing scores of each output: none, by another version of the metric, or of another image."""
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
            yield MissingScores(output, tuple(missing))


def measure(case: SampleCase, work: Sequence[MissingScores], read: Read, networks: Lock) -> list[StoredScore]:
    """Return the missing scores of the outputs of one sample. Any thread.

    Args:
        case: the sample.
        work: the missing scores.
        read: returns an output's PNG.
        networks: held while metrics run that use a network.
    """
    rows: list[StoredScore] = []
    for alone in (False, True):
        with networks if alone else nullcontext():
            for one in work:
                metrics = [metric for metric in one.metrics if metric.alone is alone]
                if one.output.edited is None:
                    missing = unscored(one.output.reason)
                    rows += [one.row(metric, (missing, {})) for metric in metrics]
                elif metrics:
                    pixels = decode(read(one.output))
                    rows += [one.row(metric, measured(metric, case, pixels)) for metric in metrics]
    return rows


async def measure_on(
    engine: WorkEngine, case: SampleCase, work: Sequence[MissingScores], read: Read
) -> tuple[list[StoredScore], list[MissingScores]]:
    """Measure the outputs of one sample on a worker of an engine.

    Returns:
        The scores, and those still missing: the worker was lost, or does not have the metric in that version.
    """
    made, rest = [one for one in work if one.output.edited], [one for one in work if not one.output.edited]
    requests = await asyncio.to_thread(_read, case, made, read)
    ran = await engine.run("metrics", measure_here, (case, requests))
    if ran.value is None:
        return [], list(work)
    rows: list[StoredScore] = []
    for one, values in zip(made, ran.value, strict=True):
        found = dict(zip(one.metrics, values, strict=True))
        rows += [one.row(metric, value) for metric, value in found.items() if value is not None]
        if missing := tuple(metric for metric, value in found.items() if value is None):
            rest.append(MissingScores(one.output, missing))
    return rows, rest


MetricRequest = tuple[bytes, list[tuple[str, str]]]
"""An output's file, and the name and version of each metric to be measured."""


def _read(case: SampleCase, work: Sequence[MissingScores], read: Read) -> list[MetricRequest]:
    """Read the files that a worker needs: the outputs, and the images of the sample that a metric uses."""
    needs = {need for one in work for metric in one.metrics for need in metric.needs}
    for name in {"before", *needs, *(["roi_grey"] if "roi" in needs else [])}:
        getattr(case, name)
    return [(read(one.output), [(metric.name, metric.version) for metric in one.metrics]) for one in work]


def measure_here(case: SampleCase, requests: Sequence[MetricRequest]) -> list[list[Measured | None]]:
    """Measure on a worker; None where it does not have the metric in that version."""
    return [[_measured_by(metric, case, decode(data)) for metric in metrics] for data, metrics in requests]


def _measured_by(wanted: tuple[str, str], case: SampleCase, pixels: Pixels) -> Measured | None:
    metric = _metric(wanted[0])
    return measured(metric, case, pixels) if metric is not None and metric.version == wanted[1] else None


@cache
def _metric(name: str) -> Metric | None:
    made, _ = open_metrics({name}, find_networks({name}))
    return made[0] if made else None


DISTANCES = "bench.sets"
"""Key of a run's meta: a JSON list of `Distance`."""
MADE = "bench.sets.made"
"""Key of a run's meta: (arm, encoder) -> digest of the images that its distances rest on."""
VERSION = "2"


@dataclass(frozen=True, slots=True)
class Distance:
    """A distance between the outputs of an arm and the true images.

    Attributes:
        arm: label.
        metric: "fid" or "kid", with the encoder's name unless it has the published weights.
        value: None with a `reason`.
        floor: mean distance when outputs and truths change sides at random, source by source.
        floor_high: the 95th percentile of those; None with few sources.
        p: of the value, among those; None where `floor_high` is.
        pairs: independent sources.
    """

    arm: str
    metric: str
    value: float | None
    floor: float | None = None
    floor_high: float | None = None
    reason: str = ""
    p: float | None = None
    pairs: int = 0

    @property
    def line(self) -> str:
        """Compare the value with its floor, in words; "" without a value."""
        if self.value is None:
            return ""
        if self.p is None or self.floor_high is None:
            return f"floor unknown: {self.pairs} independent pairs"
        return f"{'above' if self.p <= 0.05 else 'not above'} the floor, {self.floor_high:.2f}"


async def measure_sets(
    benchmark: Benchmark, opened: OpenRun, encoder: ImageEncoder | None, wanted: set[str]
) -> int:
    """Compute the missing distances, arm by arm; return how many.

    Both sets are of the samples on which the arm has an image and the benchmark a truth, so that leaving out difficult
    samples gains nothing.
    """
    names = [name for name in SETS if name in wanted]
    if encoder is None or not names:
        return 0
    journal = opened.journal
    run = BenchRun(journal.reader)
    kept = [Distance(**row) for row in orjson.loads(run.reader.meta(DISTANCES) or "[]")]
    made: dict[str, str] = orjson.loads(run.reader.meta(MADE) or "{}")
    truths: dict[str, Floats] = {}
    computed = 0
    for arm in run.arms:
        if opened.stopping:
            break
        outputs = _paired(benchmark, run, arm)
        images = [
            (o.sample_id, benchmark.content_of(benchmark.sample(o.sample_id)), o.edited) for o in outputs
        ]
        rests_on = orjson.dumps([[VERSION, encoder.name, sorted(names)], images])
        key, digest = f"{arm} {encoder.name}", hashlib.sha256(rests_on).hexdigest()
        if made.get(key) == digest:
            continue
        if len(outputs) < 2:
            why = "fewer than two outputs with a ground truth"
            rows = [Distance(arm, label(name, FID_WEIGHTS, encoder.name), None, reason=why) for name in names]
        else:
            pairs = await asyncio.to_thread(_features, benchmark, run, outputs, encoder, truths)
            clusters = [benchmark.sample(output.sample_id).cluster for output in outputs]
            measures = [fid_of_features if name == "fid" else kid_of_features for name in names]
            seed = run.reader.header.seed
            rows = [_distance(arm, one(*pairs, encoder.name, seed, pairs=clusters)) for one in measures]
        metrics = {row.metric for row in rows}
        kept = [row for row in kept if row.arm != arm or row.metric not in metrics] + rows
        made[key] = digest
        await journal.set_meta(DISTANCES, orjson.dumps([asdict(row) for row in kept]).decode())
        await journal.set_meta(MADE, orjson.dumps(made).decode())
        computed += len(rows)
    return computed


def _paired(benchmark: Benchmark, run: BenchRun, arm: str) -> list[Output]:
    """Return the outputs with an image and a truth; one per sample, the first that the arm's rule names."""
    first = run.arms[arm].scored[0]
    return [
        output
        for output in run.outputs(arm)
        if output.k == first
        and output.edited is not None
        and benchmark.sample(output.sample_id).changed is not None
    ]


def _features(
    benchmark: Benchmark,
    run: BenchRun,
    outputs: Sequence[Output],
    encoder: ImageEncoder,
    truths: dict[str, Floats],
) -> tuple[Floats, Floats]:
    """Return the features of truths and outputs; those of truths are kept for the next arm."""

    def features(image: Pixels) -> Floats:
        return np.asarray(encoder.images([image])[0], np.float64)

    for output in outputs:
        if output.sample_id not in truths:
            truths[output.sample_id] = features(benchmark.changed(benchmark.sample(output.sample_id)))
    return (
        np.stack([truths[output.sample_id] for output in outputs]),
        np.stack([features(decode(run.read(output))) for output in outputs]),
    )


def _distance(arm: str, found: SetDistance) -> Distance:
    score, floor = found.score, found.floor
    return Distance(arm, found.name, score.value, floor, found.floor_high, score.reason, found.p, found.pairs)
