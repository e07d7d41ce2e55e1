"""Distances such as FID between an arm's outputs, as a set, and the ground truths, next to those expected by chance.

Features are computed arm by arm and not kept; a digest of the images decides whether a distance is computed again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.journal import JournalReader
from plantain.metrics.distributions import FID_WEIGHTS, frechet_of_features
from plantain.metrics.metric import ImageEncoder, Networks, label
from plantain.metrics.radiomics import FEATURES, FEWEST_IMAGES, RadiomicsEncoder
from plantain.pixels.arrays import Floats, Pixels
from plantain.pixels.decode import decode
from plantain.runs.open_run import OpenRun

SETS = ("fid", "frechet_radiomics", "frechet_encoder")
"""Distances between all outputs of an arm and the ground truths."""

PUBLISHED = FID_WEIGHTS | {RadiomicsEncoder.name}
"""Encoders whose distances have no name of an encoder."""

DISTANCES = "bench.sets"
"""Key of a run's meta: a JSON list of `Distance`."""
VERSION = "3"


@dataclass(frozen=True, slots=True)
class Distance:
    """A distance between the outputs of an arm and the true images.

    Attributes:
        arm: label of the arm.
        metric: one of `SETS`, with the encoder's name unless it has the published weights.
        value: None with a `reason`.
        floor: mean distance expected by chance: outputs and truths are swapped at random, source by source.
        floor_high: 95th percentile of these chance distances; None with few sources.
        p: p value of `value` against chance; None if `floor_high` is.
        pairs: number of independent sources.
        images: number of images in each set.
        features: the encoder or the features, with their preprocessing.
        digest: hash of the images that it depends on.
    """

    arm: str
    metric: str
    value: float | None
    floor: float | None = None
    floor_high: float | None = None
    reason: str = ""
    p: float | None = None
    pairs: int = 0
    images: int = 0
    features: str = ""
    digest: str = ""

    @property
    def line(self) -> str:
        """Compare the distance with the values expected by chance, in one line; "" without a value."""
        if self.value is None:
            return ""
        if self.p is None or self.floor_high is None:
            line = f"floor unknown: {self.pairs} independent pairs"
        else:
            line = f"{'above' if self.p <= 0.05 else 'not above'} the floor, {self.floor_high:.3g}"
        return f"{line}; n = {self.images}"


def stored_distances(reader: JournalReader) -> list[Distance]:
    """Read the distances between sets of images that a run has stored."""
    return [Distance(**row) for row in orjson.loads(reader.meta(DISTANCES) or "[]")]


async def measure_sets(benchmark: Benchmark, opened: OpenRun, networks: Networks, wanted: set[str]) -> int:
    """Compute and store the missing distances, arm by arm; return the number computed.

    Both sets contain only samples for which arm and benchmark have an image, so that an arm cannot gain by omitting
    difficult samples.

    Args:
        benchmark: the run's benchmark.
        opened: the run.
        networks: encoders of the images; distances of a missing one are skipped.
        wanted: names of the distances, out of `SETS`.
    """
    run = BenchRun(opened.journal.reader)
    computed = 0
    encoders: tuple[ImageEncoder | None, ...] = (networks.features, RadiomicsEncoder(), networks.encoder)
    for encoder, name in zip(encoders, SETS, strict=True):
        truths: dict[str, Floats] = {}
        if encoder is None or name not in wanted:
            continue
        for arm in run.arms:
            if opened.stopping:
                break
            computed += await _measure_arm(benchmark, opened, arm, encoder, name, truths)
    return computed


async def _measure_arm(
    benchmark: Benchmark,
    opened: OpenRun,
    arm: str,
    encoder: ImageEncoder,
    name: str,
    truths: dict[str, Floats],
) -> bool:
    """Store the distance of an arm over one encoder; return False if the stored one is of the same images."""
    run = BenchRun(opened.journal.reader)
    outputs = [
        output
        for output in run.scored(arm)
        if output.edited is not None and benchmark.sample(output.sample_id).changed is not None
    ]
    images = [(o.sample_id, benchmark.content_of(benchmark.sample(o.sample_id)), o.edited) for o in outputs]
    metric = label(name, PUBLISHED, encoder.name)
    rests_on = orjson.dumps([[VERSION, encoder.name, name], images])
    digest, stored = hashlib.sha256(rests_on).hexdigest(), stored_distances(run.reader)
    if any((one.arm, one.metric, one.digest) == (arm, metric, digest) for one in stored):
        return False
    clusters = [benchmark.sample(output.sample_id).cluster for output in outputs]
    reason = "fewer than two outputs with a ground truth" if len(outputs) < 2 else ""
    if isinstance(encoder, RadiomicsEncoder) and len(outputs) < FEWEST_IMAGES:
        reason = f"{len(outputs)} images in each set; {len(FEATURES)} features need {FEWEST_IMAGES}"
    row = Distance(arm, metric, None, reason=reason, images=len(outputs), features=encoder.name)
    row = replace(row, pairs=len(set(clusters)), digest=digest)
    if not reason:
        sets = await asyncio.to_thread(_features, benchmark, run, outputs, encoder, truths)
        seed, in_spreads = run.reader.header.seed, name == "frechet_radiomics"
        found = frechet_of_features(*sets, seed, pairs=clusters, in_spreads=in_spreads)
        row = replace(row, value=found.score.value, reason=found.score.reason)
        row = replace(row, floor=found.floor, floor_high=found.floor_high, p=found.p)
    kept = [one for one in stored if (one.arm, one.metric) != (arm, metric)]
    await opened.journal.set_meta(DISTANCES, orjson.dumps([asdict(one) for one in [*kept, row]]).decode())
    return True


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
