"""Measuring a sample's outputs on an engine's worker, which is sent the pictures and keeps what networks it loads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.score.field import field_of_view
from plantain.bench.score.pixel_metrics import Lacking, Read, score_row
from plantain.bench.score.suite import Detail, SampleCase, measured, open_metrics
from plantain.engines.contract import WorkEngine
from plantain.journal import StoredScore
from plantain.metrics import Metric
from plantain.metrics.networks.available import find_networks
from plantain.pixels.arrays import Image, Mask, Pixels
from plantain.pixels.decode import decode
from plantain.records import Score

ROLE = "metrics"

Named = tuple[str, str]
"""A metric's name and version."""

Wish = tuple[bytes, tuple[Named, ...]]
"""An output's file, and what is to be measured of it."""

Found = tuple[Score, Detail] | None
"""A metric's score; None where this worker has not that metric, or another version of it."""


@dataclass(frozen=True)
class SentSample:
    """A sample as a worker is sent it; see `MetricSample`."""

    before: Pixels
    truth: Pixels | None
    roi: Mask | None
    roi_grey: Image | None
    prompt: str
    detailed: str

    @classmethod
    def of(cls, case: SampleCase, needs: frozenset[str]) -> SentSample:
        """Of a sample, with those of its pictures that somebody needs."""
        return cls(
            case.before,
            case.truth if "truth" in needs else None,
            case.roi if "roi" in needs else None,
            case.roi_grey if "roi" in needs else None,
            case.prompt,
            case.detailed,
        )

    @cached_property
    def field(self) -> Mask:
        """What of the image before is image, bool (H, W)."""
        return field_of_view(self.before)


def measure_here(sample: SentSample, wishes: Sequence[Wish]) -> list[list[Found]]:
    """What this worker measures of each output, in the order asked for."""
    return [
        [_found(named, sample, pixels) for named in names]
        for pixels, names in ((decode(data), names) for data, names in wishes)
    ]


def _found(named: Named, sample: SentSample, pixels: Pixels) -> Found:
    metric = _metric(named[0])
    if metric is None or metric.version != named[1]:
        return None
    return measured(metric, sample, pixels)


@cache
def _metric(name: str) -> Metric | None:
    made, _ = open_metrics({name}, find_networks({name}))
    return made[0] if made else None


async def measure_on(
    engine: WorkEngine, benchmark: Benchmark, sample_id: str, work: Sequence[Lacking], read: Read
) -> tuple[list[StoredScore], list[Lacking]]:
    """Scores the outputs of one sample on a worker.

    Returns:
        The scores, and what no worker measured: the worker was lost, or it has not the metric in that version.
    """
    there = [lack for lack in work if lack.output.edited is not None]
    sent = await asyncio.to_thread(_sent, SampleCase(benchmark, benchmark.sample(sample_id)), there, read)
    ran = await engine.run(ROLE, measure_here, sent)
    if ran.value is None:
        return [], list(work)
    rows, rest = [], [lack for lack in work if lack.output.edited is None]
    for lack, found in zip(there, ran.value, strict=True):
        rows += [
            score_row(lack.output, metric, *one)
            for metric, one in zip(lack.metrics, found, strict=True)
            if one is not None
        ]
        missing = tuple(metric for metric, one in zip(lack.metrics, found, strict=True) if one is None)
        if missing:
            rest.append(Lacking(lack.output, missing))
    return rows, rest


def _sent(case: SampleCase, work: Sequence[Lacking], read: Read) -> tuple[SentSample, list[Wish]]:
    needs = frozenset(need for lack in work for metric in lack.metrics for need in metric.needs)
    return SentSample.of(case, needs), [
        (read(lack.output), tuple((metric.name, metric.version) for metric in lack.metrics)) for lack in work
    ]
