"""Score a bench run's stored outputs: metrics on all cores, then judges. Nothing is generated again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Lock

import cv2

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.bench.score.judging import Judgement, JudgeName, SeatedJudge, asks_for_scores, seat
from plantain.bench.score.set_distances import SETS, measure_sets
from plantain.engines.local import cores
from plantain.journal import JsonValue, StoredScore
from plantain.metrics import Metric, MetricSample
from plantain.metrics.metric import Networks, RememberingEncoder, registered, unusable
from plantain.metrics.networks import find_networks
from plantain.pixels.arrays import Image, Mask, Pixels
from plantain.pixels.decode import decode
from plantain.records import InputError, Score, unscored
from plantain.records.messages import fold, suggest
from plantain.roles import Judge
from plantain.runs.open_run import OpenRun
from plantain.runs.progress import SILENT, ProgressObserver, RunSummary
from plantain.runs.setup import RunSetup
from plantain.runs.terms import Terms

PIXEL_METRICS = tuple(name for name, kind in registered().items() if not kind.uses)
"""Metrics that need no network or reader."""

METRICS = (*registered(), *SETS)
"""All metrics by name."""

PAPER = {
    "masked ssim": "cp_reference",
    "context preservation": "cp_reference",
    "imagereward_p": "image_reward",
    "imagereward_d": "image_reward_d",
} | {(kind.column or name).lower(): name for name, kind in registered().items()}
"""Names in tables and in the paper, in small letters -> names of metrics."""
_JUDGED = re.compile(r"(?:ea|vq|(?:editing)?accuracy|(?:visual)?quality|context)[pd]?")

REQUIREMENTS = {
    "roi": "the sample has no region of interest",
    "truth": "the sample has no ground truth",
    "prompt": "the sample has no prompt",
    "detailed": "the sample has no description of the change",
}

Measured = tuple[Score, Mapping[str, JsonValue]]
"""A score with its detail."""
Read = Callable[[Output], bytes]
"""Return an output's PNG."""


def chosen(names: Sequence[str] | None) -> set[str]:
    """Convert names of metrics, identifiers or the paper's names, to identifiers; None: all metrics.

    `masked_ssim` is plantain's metric; "Masked SSIM" in any other spelling is the paper's.

    Raises:
        InputError: no such metric, it is a judge's score, or a plug-in cannot be loaded.
    """
    paper = {fold(name): metric for name, metric in PAPER.items()}
    names = None if names is None else [name.strip() for name in names]
    if judged := [name for name in names or () if _JUDGED.fullmatch(fold(name))]:
        raise InputError(f"--metrics: {judged[0]} is a judge's score; name the judge with --judge")
    names = names and [name if name in METRICS else paper.get(fold(name), name.lower()) for name in names]
    for name in names or ():
        if name in unusable():
            raise InputError(f"--metrics: {unusable()[name]}")
        if name not in METRICS:
            raise InputError(f"--metrics: no metric {name!r}; {suggest(name, METRICS)}")
    return set(METRICS if names is None else names)


def open_metrics(wanted: set[str], networks: Networks) -> tuple[list[Metric], list[tuple[str, str]]]:
    """Load the wanted metrics; return those that can be measured here, and (name, reason) for each other one."""
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


class SampleCase:
    """A benchmark's sample as input of metrics (`MetricSample`); each image is read on its first use."""

    def __init__(self, benchmark: Benchmark, sample: Sample) -> None:
        self.prompt = sample.prompt
        self.detailed = sample.detailed
        self._sample = sample
        self._benchmark = benchmark

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


def measured(metric: Metric, case: MetricSample, output: Pixels) -> Measured:
    """Measure an output; return (score, detail), unscored if an input is missing or the metric is not applicable."""
    for need in metric.needs:
        given = getattr(case, need)
        if given is None or (isinstance(given, str) and not given):
            return unscored(REQUIREMENTS[need]), {}
    try:
        found = metric.measure(case, output)
    except ValueError as error:
        return unscored(str(error)), {}
    return found if isinstance(found, tuple) else (found, {})


Missing = tuple[Output, list[Metric]]
"""An output with the metrics for which it has no current score."""


def missing_scores(run: BenchRun, outputs: Iterable[Output], metrics: Sequence[Metric]) -> Iterator[Missing]:
    """Yield each output with the metrics to measure: their score is missing or of another version or image."""
    for output in outputs:
        stored = {
            name: (row.detail.get("version"), row.detail.get("blob"))
            for name, row in run.scores(output).items()
        }
        missing = [metric for metric in metrics if stored.get(metric.name) != (metric.version, output.edited)]
        if missing:
            yield output, missing


def measure(case: SampleCase, work: Sequence[Missing], read: Read, networks: Lock) -> list[StoredScore]:
    """Compute the missing scores of the outputs of one sample. It is thread-safe.

    The detail of a score has the metric's version and the hash of the measured image.

    Args:
        case: the sample.
        work: the missing scores.
        read: returns an output's PNG.
        networks: lock that is held while metrics run that use a network.
    """
    rows: list[StoredScore] = []
    for alone in (False, True):
        with networks if alone else nullcontext():
            for output, missing in work:
                metrics = [metric for metric in missing if metric.alone is alone]
                pixels = decode(read(output)) if metrics and output.edited is not None else None
                for metric in metrics:
                    found: Measured = unscored(output.reason), {}
                    if pixels is not None:
                        found = measured(metric, case, pixels)
                    detail = {"version": metric.version, "blob": output.edited, **found[1]}
                    rows.append(output.score(metric.name, found[0], detail))
    return rows


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """The metrics and judges whose scores a run should have.

    Attributes:
        metrics: names of metrics; None for all that can be measured here.
        judges: the judges with their settings.
        networks: networks of learned metrics; None to look for them on this machine.
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
    """Score the outputs of a run, by metrics first and then by judges; existing scores are kept.

    Args:
        run: the run's folder.
        benchmark: the benchmark that it was generated from.
        request: the scores to add.
        terms: limits, providers and consent for judges.
        judges: judge objects for the request's judges, in order; None to load them by name.
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
    """Add the missing metrics, a sample per thread; return how many."""
    opened.observer.stage_started("metrics", len(run.samples))
    loop, one_network, stored = asyncio.get_running_loop(), Lock(), 0
    workers, threads = cores(), cv2.getNumThreads()
    with ThreadPoolExecutor(workers) as executor, ExitStack() as after:
        cv2.setNumThreads(1)  # samples are measured side by side
        after.callback(cv2.setNumThreads, threads)

        async def carry(item: tuple[str, list[Output]]) -> None:
            nonlocal stored
            count, work = 0, list(missing_scores(run, item[1], metrics))
            if work:
                case = SampleCase(benchmark, benchmark.sample(item[0]))
                rows = await loop.run_in_executor(executor, measure, case, work, run.read, one_network)
                count = await opened.journal.add_scores(rows)
            stored += count
            opened.observer.advanced(count)

        await opened.walk(run.by_sample(), carry, at_once=workers + 1)
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
