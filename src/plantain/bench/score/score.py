"""Score a bench run's stored outputs: metrics on all cores, then judges. Nothing is generated again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import cv2

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.bench.score.judging import Judgement, JudgeName, SeatedJudge, asks_for_scores, seat
from plantain.bench.score.set_distances import measure_sets
from plantain.bench.score.suite import (
    SampleCase,
    chosen,
    measure,
    measure_on,
    missing_scores,
    open_metrics,
)
from plantain.engines.contract import remote_engine
from plantain.journal import StoredScore
from plantain.metrics import Metric
from plantain.metrics.metric import Networks
from plantain.metrics.networks import find_networks
from plantain.records import InputError
from plantain.roles import Judge
from plantain.runs.open_run import OpenRun
from plantain.runs.progress import SILENT, ProgressObserver, RunSummary
from plantain.runs.setup import RunSetup
from plantain.runs.terms import Terms


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """The scores to add.

    Attributes:
        metrics: names; None for all that can be measured here.
        judges: who judges, and how.
        networks: for learned metrics; None to look for them on this machine.
        retry: repeat draws that failed.
    """

    metrics: Sequence[str] | None = None
    judges: Sequence[JudgeName] = ()
    networks: Networks | None = None
    retry: bool = False


async def score_run(
    run: Path,
    benchmark: Benchmark,
    request: ScoreRequest,
    *,
    terms: Terms | None = None,
    judges: Sequence[Judge] | None = None,
    observer: ProgressObserver = SILENT,
    accept_model_change: bool = False,
) -> RunSummary:
    """Add the missing scores of the run's outputs.

    Args:
        run: its folder.
        benchmark: the one it was generated from.
        request: the scores to add.
        terms: limits, providers and consent for judges.
        judges: objects to use for the request's judges, in order.
        observer: receives progress.
        accept_model_change: continue, and record it, when a provider serves another model than before.

    Raises:
        InputError: another benchmark, an unknown judge, or an image that may not be sent to a hosted judge.
    """
    wanted = chosen(request.metrics)
    models = tuple(dict.fromkeys(name.model for name in request.judges))
    terms = replace(terms, models=models) if terms is not None else Terms(models)
    setup = RunSetup(terms)
    _check_run(run, benchmark)
    images = (sample.image for sample in benchmark.samples)
    setup.check(images=images, named=models if judges is None else (), by="--judge")
    seats = _seats(request.judges, judges, setup)
    networks = request.networks if request.networks is not None else find_networks(wanted)
    metrics, missing = open_metrics(wanted, networks)
    notes = [f"{name} not measured: {reason}" for name, reason in missing]
    for line in notes:
        observer.note(line)
    async with setup.open(
        run,
        observer=observer,
        accept_model_change=accept_model_change,
        also_close=[judge for _, judge in seats],
    ) as opened:
        opened.summary.notes += notes
        recorded = BenchRun(opened.journal.reader)
        seated = await seat(opened.journal, seats)  # before metrics: a judge may refuse the rubric
        opened.summary.measured = await _measure_all(benchmark, recorded, opened, metrics)
        opened.summary.sets = await measure_sets(benchmark, opened, networks, wanted)
        judgement = Judgement(benchmark, opened, seated, retry=request.retry)
        opened.summary.judged = await _judge_all(opened, judgement)
    return opened.summary


def _seats(
    names: Sequence[JudgeName], judges: Sequence[Judge] | None, setup: RunSetup
) -> list[tuple[JudgeName, Judge]]:
    if judges is not None:
        return list(zip(names, map(setup.guarded, judges), strict=True))
    seats = []
    for name in names:
        theirs = setup.terms.provider(name.model).get("prompts")
        if name.prompts is None and theirs is not None and asks_for_scores(theirs, name.rubric):
            name = replace(name, prompts=theirs)  # from [providers]: another wording all the same
        seats.append((name, setup.judge(name.model, prompts=name.prompts, named_by="--judge")))
    return seats


def _check_run(run: Path, benchmark: Benchmark) -> None:
    """Raise InputError if a sample is not the one that the run's outputs were made from."""
    with BenchRun.open(run) as recorded:
        for facts in recorded.samples.values():
            found = benchmark.sample(facts.id)
            if benchmark.content_of(found) != facts.content:
                raise InputError(
                    f"{benchmark.root}: sample {facts.id} is not the one that {run} was generated from: its files or "
                    "texts have changed; score with the benchmark as it was, or generate into a new run folder"
                )


async def _measure_all(
    benchmark: Benchmark, run: BenchRun, opened: OpenRun, metrics: Sequence[Metric]
) -> int:
    """Add the missing metrics, a sample per thread, or per worker of the run's engine; return how many."""
    opened.observer.stage_started("metrics", len(run.samples))
    loop, one_network, stored = asyncio.get_running_loop(), Lock(), 0
    workers, engine = _cores(), remote_engine()
    at_once = workers + 1 if engine is None else 2 * max(1, opened.terms.room)
    with ThreadPoolExecutor(workers) as executor, _one_thread_each():

        async def carry(item: tuple[str, list[Output]]) -> None:
            nonlocal stored
            rows: list[StoredScore] = []
            work = list(missing_scores(run, item[1], metrics))
            case = SampleCase(benchmark, benchmark.sample(item[0]))
            if work and engine is not None:
                rows, work = await measure_on(engine, case, work, run.read)
            if work:
                rows += await loop.run_in_executor(executor, measure, case, work, run.read, one_network)
            count = await opened.journal.add_scores(rows) if rows else 0
            stored += count
            opened.observer.advanced(count)

        await opened.walk(run.by_sample(), carry, at_once=at_once)
    return stored


async def _judge_all(opened: OpenRun, judgement: Judgement) -> int:
    """Add the missing scores by judges; return how many."""
    if not judgement.judges or opened.stopping:
        return 0
    opened.observer.stage_started("judges", sum(1 for _ in judgement.outstanding()))
    stored = 0

    async def carry(item: tuple[Output, SeatedJudge]) -> None:
        nonlocal stored
        count = await opened.journal.add_scores(await judgement.judge(*item))
        stored += count
        opened.observer.advanced(count)

    await opened.walk(judgement.outstanding(), carry)
    return stored


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """OpenCV keeps to one thread while samples are measured side by side."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)
