"""Measuring the outputs of one sample: which scores they lack, and those scores."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from threading import Lock

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.bench.score.suite import SampleCase, measured
from plantain.journal import JournalReader, JsonValue, StoredScore
from plantain.metrics import Metric
from plantain.pixels.decode import decode
from plantain.records import Score, unscored

Read = Callable[[Output], bytes]
"""Gives an output's PNG."""

Rows = Mapping[str, StoredScore]
"""The scores that one output has, by metric."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """An output and the metrics that it has no current score of."""

    output: Output
    metrics: tuple[Metric, ...]


def by_sample(run: BenchRun) -> Iterator[tuple[str, list[Output]]]:
    """The outputs that the journal has attempts of, sample by sample, so that each sample is read once."""
    streams = (run.outputs(label) for label in run.arms)
    place = {sample_id: i for i, sample_id in enumerate(run.samples)}
    together = heapq.merge(*streams, key=lambda output: place[output.sample_id])
    for sample_id, outputs in groupby(together, key=lambda output: output.sample_id):
        yield sample_id, [output for output in outputs if output.attempt is not None]


def rows_of(reader: JournalReader, output: Output) -> dict[str, StoredScore]:
    """The scores that an output has, by metric."""
    return {
        row.metric: row
        for row in reader.scores(output.task_id, output.generation)
        if row.round == output.k + 1
    }


def lacking(reader: JournalReader, outputs: Iterable[Output], metrics: Sequence[Metric]) -> list[Lacking]:
    """What each output lacks: no score, one by another version of the metric, or one of another image."""
    found = []
    for output in outputs:
        rows = rows_of(reader, output)
        missing = tuple(metric for metric in metrics if not _current(rows.get(metric.name), metric, output))
        if missing:
            found.append(Lacking(output, missing))
    return found


def _current(row: StoredScore | None, metric: Metric, output: Output) -> bool:
    return (
        row is not None
        and row.detail.get("version") == metric.version
        and row.detail.get("blob") == output.edited
    )


def measure(
    benchmark: Benchmark,
    sample_id: str,
    work: Sequence[Lacking],
    read: Read,
    networks: Lock,
) -> list[StoredScore]:
    """Scores the outputs of one sample. Any thread.

    Args:
        benchmark: where the sample's own images are.
        sample_id: whose outputs.
        work: what they lack.
        read: gives an output's PNG.
        networks: held while metrics run that keep a network.
    """
    case = SampleCase(benchmark, benchmark.sample(sample_id))
    rows = _measured(case, work, read, alone=False)
    if any(metric.alone for lack in work for metric in lack.metrics):
        with networks:
            rows += _measured(case, work, read, alone=True)
    return rows


def _measured(case: SampleCase, work: Sequence[Lacking], read: Read, *, alone: bool) -> list[StoredScore]:
    rows: list[StoredScore] = []
    for lack in work:
        metrics = [metric for metric in lack.metrics if metric.alone is alone]
        if not metrics:
            continue
        output = lack.output
        if output.edited is None:
            rows += [score_row(output, metric, unscored(output.reason), {}) for metric in metrics]
            continue
        pixels = decode(read(output))
        for metric in metrics:
            rows.append(score_row(output, metric, *measured(metric, case, pixels)))
    return rows


def score_row(output: Output, metric: Metric, score: Score, detail: Mapping[str, JsonValue]) -> StoredScore:
    """A score as it is stored, with the version that measured and the blob that was measured."""
    recorded: dict[str, JsonValue] = {"version": metric.version, "blob": output.edited, **detail}
    return StoredScore(output.task_id, output.generation, output.k + 1, metric.name, score, recorded)
