"""FID and KID: the outputs of an arm as a set against the ground truths, beside what chance shows.

Features are computed arm by arm and thrown away; what is kept is the distance with its floor, and a digest of the
images behind it, so that it is computed again only when one of them changed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.arms import Arm
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.journal import Journal, JsonValue
from plantain.metrics.distributions import FID_WEIGHTS, SetDistance, fid_of_features, kid_of_features
from plantain.metrics.networks.encoders import ImageEncoder, label
from plantain.pixels.arrays import Floats
from plantain.pixels.decode import decode

SETS = "bench.sets"
"""Key of a run's meta: distances between sets of images, a JSON list of `Distance`."""
MADE = "bench.sets.made"
"""Key of the run's meta: (arm, encoder) -> digest of the images that its distances rest on."""
VERSION = "2"
"""Of what is measured; 1 had the floor of sets without pairs."""


@dataclass(frozen=True, slots=True)
class Distance:
    """A distance between the outputs of an arm and the true images, beside what chance shows.

    Attributes:
        arm: label.
        metric: "fid" or "kid", with the encoder's name unless it has the published weights.
        value: None with a `reason`.
        floor: mean of the same distance where outputs and truths change sides at random, source by source.
        floor_high: the one of those that a difference at 5 % lies beyond; None with few sources.
        p: of the value, among those; None where `floor_high` is.
        pairs: independent sources; 0 in runs that were scored when the floor was still that of random halves.
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
        """What the floor says of the value, in a few words; "" without a value."""
        if self.value is None:
            return ""
        if not self.pairs:
            return "floor unknown: score again"
        if self.p is None or self.floor_high is None:
            return f"floor unknown: {self.pairs} independent pairs"
        return f"{'above' if self.p <= 0.05 else 'not above'} the floor, {self.floor_high:.2f}"


async def measure_sets(
    benchmark: Benchmark,
    run: BenchRun,
    journal: Journal,
    encoder: ImageEncoder,
    names: Sequence[str],
    stopping: Callable[[], bool],
) -> int:
    """Computes the distances that are lacking, arm by arm until `stopping`; returns how many.

    Both sets are those of the samples on which the arm has an image and the benchmark a truth, so that an arm that
    leaves out the difficult ones is not compared with them.
    """
    kept: list[dict[str, JsonValue]] = orjson.loads(run.reader.meta(SETS) or "[]")
    made: dict[str, str] = orjson.loads(run.reader.meta(MADE) or "{}")
    truths: dict[str, Floats] = {}
    computed = 0
    for arm in run.arms.values():
        if stopping():
            break
        outputs = _paired(benchmark, run, arm)
        key, digest = f"{arm.label} {encoder.name}", _digest(benchmark, outputs, encoder, names)
        if made.get(key) == digest:
            continue
        rows = await asyncio.to_thread(_distances, benchmark, run, outputs, encoder, names, truths)
        metrics = {row["metric"] for row in rows}
        kept = [row for row in kept if row["arm"] != arm.label or row["metric"] not in metrics]
        kept += [{"arm": arm.label, **row} for row in rows]
        made[key] = digest
        await journal.set_meta(SETS, orjson.dumps(kept).decode())
        await journal.set_meta(MADE, orjson.dumps(made).decode())
        computed += len(rows)
    return computed


def _paired(benchmark: Benchmark, run: BenchRun, arm: Arm) -> list[Output]:
    """The outputs of the arm's rule that have an image and a truth; one per sample, the first of the rule."""
    return [
        output
        for output in run.outputs(arm.label)
        if output.k == arm.scored[0]
        and output.edited is not None
        and benchmark.sample(output.sample_id).changed is not None
    ]


def _digest(
    benchmark: Benchmark, outputs: Sequence[Output], encoder: ImageEncoder, names: Sequence[str]
) -> str:
    line = [VERSION, encoder.name, sorted(names)]
    images = [(o.sample_id, benchmark.content_of(benchmark.sample(o.sample_id)), o.edited) for o in outputs]
    return hashlib.sha256(orjson.dumps([line, images])).hexdigest()


def _distances(
    benchmark: Benchmark,
    run: BenchRun,
    outputs: Sequence[Output],
    encoder: ImageEncoder,
    names: Sequence[str],
    truths: dict[str, Floats],
) -> list[dict[str, JsonValue]]:
    rows: list[dict[str, JsonValue]] = []
    if len(outputs) < 2:
        return [_unmeasured(name, encoder, "fewer than two outputs with a ground truth") for name in names]
    reference, found, pairs = [], [], []
    for output in outputs:
        if output.sample_id not in truths:
            sample = benchmark.sample(output.sample_id)
            truths[output.sample_id] = _features(encoder, benchmark.changed(sample))
        reference.append(truths[output.sample_id])
        found.append(_features(encoder, decode(run.read(output))))
        pairs.append(benchmark.sample(output.sample_id).cluster)
    a, b = np.stack(reference), np.stack(found)
    seed = run.reader.header.seed
    if "fid" in names:
        rows.append(_row(fid_of_features(a, b, encoder.name, seed, pairs=pairs)))
    if "kid" in names:
        rows.append(_row(kid_of_features(a, b, encoder.name, seed, pairs=pairs)))
    return rows


def _features(encoder: ImageEncoder, image: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> Floats:
    return np.asarray(encoder.images([image])[0], np.float64)


def _row(distance: SetDistance) -> dict[str, JsonValue]:
    return {
        "metric": distance.name,
        "value": distance.score.value,
        "floor": distance.floor,
        "floor_high": distance.floor_high,
        "p": distance.p,
        "pairs": distance.pairs,
        "reason": distance.score.reason,
    }


def _unmeasured(name: str, encoder: ImageEncoder, reason: str) -> dict[str, JsonValue]:
    return {
        "metric": label(name, FID_WEIGHTS, encoder.name),
        "value": None,
        "reason": reason,
    }
