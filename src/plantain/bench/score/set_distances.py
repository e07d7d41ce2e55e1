"""FID and KID: the outputs of an arm as a set against the ground truths, with the distance expected by chance.

Features are computed arm by arm and not kept; a digest of the images says whether a distance must be computed again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.bench.score.suite import SETS
from plantain.metrics.distributions import FID_WEIGHTS, fid_of_features, kid_of_features
from plantain.metrics.networks.encoders import ImageEncoder, label
from plantain.pixels.arrays import Floats, Pixels
from plantain.pixels.decode import decode
from plantain.runs.open_run import OpenRun

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
    """Compute the distances that are lacking, arm by arm; return how many.

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
            rows = [
                _distance(arm, name, pairs, encoder.name, run.reader.header.seed, clusters) for name in names
            ]
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


def _distance(
    arm: str, name: str, sets: tuple[Floats, Floats], encoder: str, seed: int, clusters: Sequence[str]
) -> Distance:
    measure = fid_of_features if name == "fid" else kid_of_features
    found = measure(*sets, encoder, seed, pairs=clusters)
    return Distance(
        arm,
        found.name,
        found.score.value,
        found.floor,
        found.floor_high,
        found.score.reason,
        found.p,
        found.pairs,
    )
