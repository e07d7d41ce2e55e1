"""Scoring a bench run from what it has stored: metrics on all cores, then judges. Nothing is generated again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

import cv2

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.plan import content_of
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.bench.score.judges import Judgement
from plantain.bench.score.judging import JudgeName, SeatedJudge, asks_for_scores, seat
from plantain.bench.score.pixel_metrics import Lacking, by_sample, lacking, measure
from plantain.bench.score.set_distances import measure_sets
from plantain.bench.score.suite import PIXEL_METRICS, SETS, SuiteMetric, chosen
from plantain.bench.score.suite_learned import learned_metrics
from plantain.bench.score.suite_text import find_text_metric
from plantain.findings import load_taxonomy
from plantain.journal import DiskFull, Journal
from plantain.metrics.networks.available import Networks, find_networks
from plantain.models.registry import close_models, resolve_judge
from plantain.records import InputError
from plantain.roles import Judge
from plantain.runs.consent import check_consent
from plantain.runs.door import Door
from plantain.runs.opening import open_client
from plantain.runs.pricing import check_prices
from plantain.runs.terms import Terms
from plantain.runs.transport import check_transports, tasks_under_way
from plantain.runs.worker_pool import WorkerPool, interruptible, time_cap


class ScoreObserver:
    """Told how scoring goes on; every method may be overridden and returns quickly."""

    def begun(self, what: str, total: int) -> None:
        """A stage begins: "metrics" counts samples, "judges" outputs."""

    def advanced(self, scores: int) -> None:
        """One more of the stage is done, and that many scores were stored."""

    def note(self, line: str) -> None:
        """Something that a person should know, once."""

    def stopping(self) -> None:
        """Someone asked to stop: what is in flight is finished, nothing new is begun."""


SILENT = ScoreObserver()


@dataclass(slots=True)
class ScoreSummary:
    """What one scoring did.

    Attributes:
        measured: scores of metrics stored; judged: scores of judges stored; sets: distances of sets computed.
        made, replayed: calls of judges.
        notes: metrics that were not measured, and why, a line each.
        stopped: why it stopped before the end; None when nothing is lacking.
        failed: something was wrong, rather than used up or interrupted.
        left: which batch jobs go on without us.
    """

    measured: int = 0
    judged: int = 0
    sets: int = 0
    made: int = 0
    replayed: int = 0
    notes: list[str] = field(default_factory=list)
    stopped: str | None = None
    failed: bool = False
    left: str = ""


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
    observer: ScoreObserver = SILENT,
    accept_model_change: bool = False,
    on_commit: Callable[[int], None] | None = None,
) -> ScoreSummary:
    """Scores what the run's outputs lack.

    Args:
        run: its folder.
        benchmark: that it was generated from.
        wish: what is to be scored.
        terms: limits, providers and consent for judges.
        judges: objects to use for the wish's judges, in order (tests and Python callers).
        watch: told how it goes on.
        accept_model_change: go on, and record it, when a provider serves another model than before.
        on_commit: told the number of durable events so far.

    Raises:
        InputError: another benchmark; a judge that there is not; an image that may not be sent to a hosted judge.
    """
    wanted = chosen(wish.metrics)
    models = tuple(dict.fromkeys(name.model for name in wish.judges))
    terms = replace(terms, models=models) if terms is not None else Terms(models)
    check_prices(terms)
    check_transports(terms)
    _check_run(run, benchmark)
    check_consent(terms, (sample.image for sample in benchmark.samples))
    door = Door(terms)
    jobs = door.jobs
    seats = _seats(wish.judges, judges, door)
    networks = wish.networks if wish.networks is not None else find_networks(wanted)
    texts, no_texts = find_text_metric(wanted)
    why_not = (*networks.why_not, *no_texts)
    summary = ScoreSummary(notes=[f"{name} not measured: {reason}" for name, reason in why_not])
    for line in summary.notes:
        observer.note(line)
    journal = Journal.open(run)
    journal.on_commit = on_commit
    door.gate.journal = journal
    try:
        client, gate = await open_client(terms, journal, jobs, accept_model_change=accept_model_change)
        bench_run, pool = BenchRun(journal.reader), WorkerPool(client)
        async with interruptible(client, observer.stopping), time_cap(terms.limits, journal.reader, pool):
            scoring = _Scoring(benchmark, bench_run, journal, pool, observer)
            summary.measured = await scoring.metrics(wanted, networks, texts)
            summary.sets = await scoring.sets(wanted, networks)
            summary.judged = await scoring.judges(await seat(journal, seats), wish, tasks_under_way(terms))
        summary.left = await jobs.close()
        summary.made, summary.replayed = client.made, client.replayed
        summary.stopped, summary.failed = pool.halted, pool.faulty
        if summary.stopped is None and client.stop_requested:
            summary.stopped = "interrupted"
        with suppress(DiskFull):  # telemetry is not worth a fault where there is no room for it
            await journal.end_session(client.replayed, {"made": client.made, "limits": gate.told()})
    finally:
        await jobs.close()
        await journal.close()
        await close_models(*(judge for _, judge in seats))
    return summary


def _seats(
    names: Sequence[JudgeName], judges: Sequence[Judge] | None, door: Door
) -> list[tuple[JudgeName, Judge]]:
    if judges is not None:
        return list(zip(names, judges, strict=True))
    made: dict[tuple[str, Path | None], Judge] = {}
    seats = []
    for name in names:
        options = door.options(name.model)
        if name.prompts is not None:
            options = replace(options, prompts=name.prompts)
        elif options.prompts is not None and asks_for_scores(options.prompts):
            name = replace(name, prompts=options.prompts)  # from [providers]: another wording all the same
        if (name.model, name.prompts) not in made:
            made[name.model, name.prompts] = resolve_judge(name.model, options, "--judge")
        seats.append((name, made[name.model, name.prompts]))
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
    journal: Journal
    pool: WorkerPool
    observer: ScoreObserver

    async def metrics(self, wanted: set[str], networks: Networks, texts: Sequence[SuiteMetric]) -> int:
        """Measures what is lacking, a sample per thread."""
        metrics = [metric for metric in PIXEL_METRICS if metric.name in wanted]
        metrics += [*texts, *learned_metrics(networks, wanted)]
        self.observer.begun("metrics", len(self.run.samples))
        loop, one_network, stored = asyncio.get_running_loop(), Lock(), 0

        def work() -> Iterator[tuple[str, list[Lacking]]]:
            for sample_id, outputs in by_sample(self.run):
                lacks = lacking(self.run.reader, outputs, metrics)
                if lacks:
                    yield sample_id, lacks
                else:
                    self.observer.advanced(0)

        workers = _cores()
        with ThreadPoolExecutor(workers) as executor, _one_thread_each():

            async def carry(item: tuple[str, list[Lacking]]) -> None:
                nonlocal stored
                rows = await loop.run_in_executor(
                    executor, measure, self.benchmark, *item, self.run.read, one_network
                )
                count = await self.journal.add_scores(rows)
                stored += count
                self.observer.advanced(count)

            await self.pool.all(work(), carry, workers + 1, None)
        return stored

    async def sets(self, wanted: set[str], networks: Networks) -> int:
        """Computes the distances of sets that are lacking."""
        names = [name for name in SETS if name in wanted]
        if networks.features is None or not names:
            return 0
        return await measure_sets(
            self.benchmark,
            self.run,
            self.journal,
            networks.features,
            names,
            lambda: self.pool.client.stop_requested,
        )

    async def judges(self, seated: Sequence[SeatedJudge], wish: ScoreRequest, at_once: int) -> int:
        """Has judged what is lacking."""
        if not seated or self.pool.client.stop_requested:
            return 0
        judgement = Judgement(
            self.benchmark,
            self.run,
            self.journal,
            load_taxonomy(),
            self.pool.client,
            seated,
            wish.retry,
            wish.all_outputs,
        )
        self.observer.begun("judges", sum(1 for _ in judgement.outstanding()))
        stored = 0

        async def carry(item: tuple[Output, SeatedJudge]) -> None:
            nonlocal stored
            count = await judgement.judge(item)
            stored += count
            self.observer.advanced(count)

        await self.pool.all(judgement.outstanding(), carry, at_once, None)
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
