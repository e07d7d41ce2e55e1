"""Recomputing a submission's scores from its outputs, by whoever holds the benchmark, and comparing them.

What can be recomputed is what needs pictures alone; a judge's scores are compared with the replies that came along.
A submitter who replaces outputs and scores together, all of them, has made another submission: no bundle can show that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.plan import content_of, sample_facts
from plantain.bench.score.suite import SampleCase, chosen, measured, open_metrics
from plantain.bench.submission.bundle import OUTPUTS, SCORES, Bundle, BundleWriter, OutputRow, ScoreRow
from plantain.bench.submission.checking import check_bundle
from plantain.bench.submission.judged import judged_problems
from plantain.bench.submission.packing import environment
from plantain.metrics import Metric
from plantain.metrics.networks.encoders import Networks
from plantain.pixels.decode import decode_untrusted
from plantain.records import InputError, unscored

CLOSE, CLOSE_NETWORK = 1e-6, 1e-3
"""How far a recomputed score may lie from the one in the bundle, as a share of it, without and with a network."""


@dataclass(frozen=True, slots=True)
class Rescored:
    """What recomputing came to.

    Attributes:
        problems: what does not follow, a line each, those of `check_bundle` first.
        compared: recomputed scores that the bundle has too, by metric.
        not_compared: metrics of the bundle that could not be recomputed here, with the reason.
        scores: all that was computed.
        judged: judges' scores that were compared with their replies.
    """

    problems: tuple[str, ...]
    compared: dict[str, int]
    not_compared: dict[str, str]
    scores: tuple[ScoreRow, ...]
    judged: int

    @property
    def means(self) -> dict[str, dict[str, float]]:
        """Plain means of what was computed, by arm and metric."""
        values: dict[str, dict[str, list[float]]] = {}
        for row in self.scores:
            if row.value is not None:
                values.setdefault(row.arm, {}).setdefault(row.metric, []).append(row.value)
        return {
            arm: {name: sum(several) / len(several) for name, several in own.items()}
            for arm, own in values.items()
        }


def rescore(
    root: Path,
    bench: Benchmark,
    networks: Networks,
    *,
    hidden_of: str = "",
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> Rescored:
    """Recomputes what can be, and compares.

    Args:
        root: folder of the submission.
        bench: the benchmark that it is of, or a private part of it.
        networks: of this machine, for the metrics that need them.
        hidden_of: content hash of the public part where `bench` is a private one; the bundle has no scores against its
            truths, so nothing of those is compared.
        watch: told how many outputs were scored, and of how many.

    Raises:
        InputError: the bundle cannot be read, or is of another benchmark.
    """
    checked = check_bundle(root, None if hidden_of else bench)
    if checked.bundle is None:
        raise InputError(checked.problems[0])
    bundle = checked.bundle
    if bundle.header.digest != (hidden_of or bench.digest):
        raise InputError(
            f"{root}: is of {bundle.header.benchmark} {bundle.header.edition} ({bundle.header.digest[:12]}), not of "
            f"{bench.name} {bench.edition} ({(hidden_of or bench.digest)[:12]})"
        )
    stored = {row.metric for row in bundle.scores if "@" not in row.metric}
    wanted = {name.partition(":")[0] for name in stored} & chosen(None)
    wanted |= {name.partition(":")[0].rpartition("_")[0] for name in stored} & chosen(None)
    metrics, lacking = open_metrics(chosen(None) if hidden_of else wanted, networks)
    made = tuple(_computed(bundle, bench, metrics, watch))
    compared: Counter[str] = Counter()
    problems = list(checked.problems)
    if not hidden_of:
        problems += _differences(bundle, made, metrics, compared)
        problems += [line for line in judged_problems(bundle, bench) if line not in problems]
    why = dict(lacking)
    names = {metric.name for metric in metrics}
    not_compared = {
        name: why.get(name.partition(":")[0], "not measured by this plantain on this machine")
        for name in sorted(stored - names)
    }
    judged = sum("@" in row.metric and row.value is not None for row in bundle.scores)
    return Rescored(tuple(problems), dict(sorted(compared.items())), not_compared, made, judged)


def write_rescored(bench: Benchmark, found: Rescored, bundle: Bundle, out: Path) -> None:
    """Writes the recomputed scores as a bundle of its own, without pictures: what a holder publishes."""
    arms = {
        label: replace(arm, samples=tuple(s.id for s in bench.samples if arm.covers(s.id)))
        for label, arm in bundle.header.arms.items()
    }
    header = replace(
        bundle.header,
        benchmark=bench.name,
        edition=bench.edition,
        digest=bench.digest,
        arms=arms,
        samples={s.id: sample_facts(bench, s, content_of(bench, s)) for s in bench.samples},
        judges=(),
        cards=(),
        environment=environment(),
        rescored=bundle.header.name,
    )
    held = {sample.id for sample in bench.samples}
    writer = BundleWriter(out)
    rows = [row for row in bundle.outputs if row.sample in held]
    writer.rows(
        OUTPUTS,
        (r.model_copy(update={"file": "", "reason": r.reason or "held by the submitter"}) for r in rows),
    )
    writer.rows(SCORES, found.scores)
    writer.close(header)


def _computed(
    bundle: Bundle, bench: Benchmark, metrics: Sequence[Metric], watch: Callable[[int, int], None]
) -> Iterator[ScoreRow]:
    """Every metric of every output on a sample that the benchmark has, sample by sample."""
    there = {sample.id: sample for sample in bench.samples}
    rows = sorted((row for row in bundle.outputs if row.sample in there), key=lambda row: row.sample)
    case: SampleCase | None = None
    for done, row in enumerate(rows):
        watch(done, len(rows))
        if case is None or case.sample.id != row.sample:
            case = SampleCase(bench, there[row.sample])
        yield from _of_output(bundle, case, row, metrics)
    watch(len(rows), len(rows))


def _of_output(
    bundle: Bundle, case: SampleCase, row: OutputRow, metrics: Sequence[Metric]
) -> Iterator[ScoreRow]:
    pixels = None
    if row.file:
        with suppress(InputError):  # named by the check already
            pixels = decode_untrusted(bundle.read(row), row.file)
    for metric in metrics:
        detail: dict[str, object] = {"version": metric.version, "blob": row.blob or None}
        if pixels is None:
            score = unscored(row.reason or "the picture cannot be read")
        elif (pixels.shape[1], pixels.shape[0]) != case.sample.size:
            score = unscored("another size than the sample")
        else:
            try:
                score, more = measured(metric, case, pixels)
                detail |= more
            except ValueError as error:
                score = unscored(str(error))
        result = {"value": score.value, "reason": score.reason, "detail": detail}
        yield ScoreRow.model_validate(
            {"arm": row.arm, "sample": row.sample, "k": row.k, "metric": metric.name, **result}
        )


def _differences(
    bundle: Bundle, made: Sequence[ScoreRow], metrics: Sequence[Metric], compared: Counter[str]
) -> Iterator[str]:
    """Scores of the bundle that its outputs do not have."""
    close = {metric.name: CLOSE_NETWORK if metric.uses else CLOSE for metric in metrics}
    computed = {(row.arm, row.sample, row.k, row.metric): row for row in made}
    for row in bundle.scores:
        ours = computed.get((row.arm, row.sample, row.k, row.metric))
        if ours is None:
            continue
        where = f"{row.arm}, sample {row.sample}, output {row.k}: {row.metric}"
        if row.detail.get("version") != ours.detail.get("version"):
            yield (
                f"{where}: by version {str(row.detail.get('version'))[:40]} of the metric, here "
                f"{ours.detail.get('version')}: score again"
            )
            continue
        compared[row.metric] += 1
        if not _same(row.value, ours.value, close[row.metric]):
            yield f"{where}: {_in_words(row.value)}, recomputed {_in_words(ours.value)}"


def _same(one: float | None, other: float | None, close: float) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=close, abs_tol=close)


def _in_words(value: float | None) -> str:
    return "no value" if value is None else f"{value:.6g}"
