"""Scoring a bench run from what it has stored: metrics on all cores, then judges. Nothing is generated again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import cv2

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.plan import content_of
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.bench.score.judges import Judgement
from plantain.bench.score.judging import JudgeName, SeatedJudge, asks_for_scores, seat
from plantain.bench.score.pixel_metrics import Lacking, by_sample, lacking, measure
from plantain.bench.score.remote import measure_on
from plantain.bench.score.set_distances import measure_sets
from plantain.bench.score.suite import SETS, chosen, open_metrics
from plantain.engines.contract import remote_engine
from plantain.findings import load_taxonomy
from plantain.journal import StoredScore
from plantain.metrics import Metric
from plantain.metrics.networks.at_hand import Networks
from plantain.metrics.networks.available import find_networks
from plantain.records import InputError
from plantain.roles import Judge
from plantain.runs.door import Door
from plantain.runs.observer import SILENT, ProgressObserver
from plantain.runs.open_run import OpenRun
from plantain.runs.settings.terms import Terms
from plantain.runs.summary import RunSummary


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """What is to be scored.

    Attributes:
        metrics: names; None for all that can be measured here.
        judges: who judges, and how.
        networks: for learned metrics; None to look for them on this machine.
        retry: ask again for draws that failed.
        all_outputs: judges see every output of a grid, not only those that the arm's rule names.
    """

    metrics: Sequence[str] | None = None
    judges: Sequence[JudgeName] = ()
    networks: Networks | None = None
    retry: bool = False
    all_outputs: bool = False


async def score_run(
    run: Path,
    benchmark: Benchmark,
    wish: ScoreRequest,
    *,
    terms: Terms | None = None,
    judges: Sequence[Judge] | None = None,
    observer: ProgressObserver = SILENT,
    accept_model_change: bool = False,
    on_commit: Callable[[int], None] | None = None,
) -> RunSummary:
    """Scores what the run's outputs lack.

    Args:
        run: its folder.
        benchmark: that it was generated from.
        wish: what is to be scored.
        terms: limits, providers and consent for judges.
        judges: objects to use for the wish's judges, in order (tests and Python callers).
        observer: told how it goes on.
        accept_model_change: go on, and record it, when a provider serves another model than before.
        on_commit: told the number of durable events so far.

    Raises:
        InputError: another benchmark; a judge that there is not; an image that may not be sent to a hosted judge.
    """
    wanted = chosen(wish.metrics)
    models = tuple(dict.fromkeys(name.model for name in wish.judges))
    terms = replace(terms, models=models) if terms is not None else Terms(models)
    door = Door(terms)
    _check_run(run, benchmark)
    door.check(images=(sample.image for sample in benchmark.samples))
    seats = _seats(wish.judges, judges, door)
    networks = wish.networks if wish.networks is not None else find_networks(wanted)
    metrics, lacking = open_metrics(wanted, networks)
    notes = [f"{name} not measured: {reason}" for name, reason in lacking]
    for line in notes:
        observer.note(line)
    async with door.open(
        run,
        observer=observer,
        on_commit=on_commit,
        accept_model_change=accept_model_change,
        also_close=[judge for _, judge in seats],
    ) as opened:
        opened.summary.notes += notes
        scoring = _Scoring(benchmark, BenchRun(opened.journal.reader), opened)
        opened.summary.measured = await scoring.metrics(metrics)
        opened.summary.sets = await scoring.sets(wanted, networks)
        opened.summary.judged = await scoring.judges(await seat(opened.journal, seats), wish)
    return opened.summary


def _seats(
    names: Sequence[JudgeName], judges: Sequence[Judge] | None, door: Door
) -> list[tuple[JudgeName, Judge]]:
    if judges is not None:
        return list(zip(names, map(door.guarded, judges), strict=True))
    seats = []
    for name in names:
        theirs = door.terms.provider(name.model).get("prompts")
        if name.prompts is None and theirs is not None and asks_for_scores(theirs, name.rubric):
            name = replace(name, prompts=theirs)  # from [providers]: another wording all the same
        seats.append((name, door.judge(name.model, prompts=name.prompts, named_by="--judge")))
    return seats


def _check_run(run: Path, benchmark: Benchmark) -> None:
    """Refuses a benchmark whose samples are not those that the run's outputs were made of. Raises InputError."""
    with BenchRun.open(run) as recorded:
        for facts in recorded.samples.values():
            found = benchmark.sample(facts.id)
            if content_of(benchmark, found) != facts.content:
                raise InputError(
                    f"{benchmark.root}: sample {facts.id} is not the one that {run} was generated from: its files or "
                    "texts have changed; score with the benchmark as it was, or generate into a new run folder"
                )


@dataclass(frozen=True, slots=True)
class _Scoring:
    """The stages, each of which returns how many scores it stored."""

    benchmark: Benchmark
    run: BenchRun
    opened: OpenRun

    async def metrics(self, metrics: Sequence[Metric]) -> int:
        """Measures what is lacking, a sample per thread, or per worker of the run's engine."""
        self.opened.observer.begun("metrics", len(self.run.samples))
        loop, one_network, stored = asyncio.get_running_loop(), Lock(), 0

        def work() -> Iterator[tuple[str, list[Lacking]]]:
            for sample_id, outputs in by_sample(self.run):
                lacks = lacking(self.run.reader, outputs, metrics)
                if lacks:
                    yield sample_id, lacks
                else:
                    self.opened.observer.advanced(0)

        workers, engine = _cores(), remote_engine()
        at_once = workers + 1 if engine is None else 2 * max(1, self.opened.terms.room)
        with ThreadPoolExecutor(workers) as executor, _one_thread_each():

            async def carry(item: tuple[str, list[Lacking]]) -> None:
                nonlocal stored
                rows: list[StoredScore] = []
                sample_id, lacks = item
                if engine is not None:
                    rows, lacks = await measure_on(engine, self.benchmark, sample_id, lacks, self.run.read)
                if lacks:
                    rows += await loop.run_in_executor(
                        executor, measure, self.benchmark, sample_id, lacks, self.run.read, one_network
                    )
                count = await self.opened.journal.add_scores(rows)
                stored += count
                self.opened.observer.advanced(count)

            await self.opened.walk(work(), carry, at_once=at_once)
        return stored

    async def sets(self, wanted: set[str], networks: Networks) -> int:
        """Computes the distances of sets that are lacking."""
        names = [name for name in SETS if name in wanted]
        if networks.features is None or not names:
            return 0
        return await measure_sets(
            self.benchmark,
            self.run,
            self.opened.journal,
            networks.features,
            names,
            lambda: self.opened.stopping,
        )

    async def judges(self, seated: Sequence[SeatedJudge], wish: ScoreRequest) -> int:
        """Has judged what is lacking."""
        if not seated or self.opened.stopping:
            return 0
        judgement = Judgement(
            self.benchmark,
            self.run,
            self.opened.journal,
            load_taxonomy(),
            self.opened.client,
            seated,
            wish.retry,
            wish.all_outputs,
        )
        self.opened.observer.begun("judges", sum(1 for _ in judgement.outstanding()))
        stored = 0

        async def carry(item: tuple[Output, SeatedJudge]) -> None:
            nonlocal stored
            count = await judgement.judge(item)
            stored += count
            self.opened.observer.advanced(count)

        await self.opened.walk(judgement.outstanding(), carry)
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
