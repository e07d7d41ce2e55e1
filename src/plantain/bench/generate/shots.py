"""The few-shot study: tasks, demonstrations and held-out samples (MedEBench, 3.4), and the score `demo_similarity`.

The held-out samples are the same for every number of demonstrations; demonstrations are nested (two shots show the one
of one shot and one more); no held-out sample shares a cluster with a demonstration.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from plantain.bench.benchmark.benchmark import Benchmark, resized_bicubic
from plantain.bench.benchmark.medebench import paper_tasks
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.arms import Arm
from plantain.journal import Journal, JsonValue, StoredScore
from plantain.journal.questions.benchmark import arm_tasks
from plantain.metrics import ssim
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import Attempt, InputError, Score, derive_seed, unscored
from plantain.records.messages import suggest

TASKS, IMAGES, MOST_SHOTS = 6, 30, 3
"""The paper's: six tasks, 30 images of each, up to three demonstrations."""

METRIC = "demo_similarity"
VERSION = 1


@dataclass(frozen=True, slots=True)
class ShotStudy:
    """A few-shot study.

    Attributes:
        demonstrations: task -> ids of its demonstration samples, in the order they are shown.
        samples: ids of the held-out samples of all tasks, sorted.
    """

    demonstrations: Mapping[str, tuple[str, ...]]
    samples: tuple[str, ...]


def choose_study(
    samples: Iterable[Sample],
    seed: int,
    *,
    tasks: int = TASKS,
    images: int = IMAGES,
    named: Sequence[str] = (),
    most: int = MOST_SHOTS,
) -> ShotStudy:
    """Choose tasks and samples by the seed; the order of `samples` does not matter.

    Args:
        samples: of the benchmark; those without a real image after are left out.
        seed: the run's.
        tasks: how many tasks: without the paper's, those with most samples, the first by name among equals.
        images: most samples of each task, demonstrations included.
        named: tasks by name; default: those of the paper's six (Table 7) that the benchmark has.
        most: demonstrations of each task.

    Raises:
        InputError: no such task, or no task has another sample than its demonstrations.
    """
    by_task: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.changed is not None:
            by_task[sample.task].append(sample)
    for task in named:
        if task not in by_task:
            raise InputError(f"--task: no task {task!r} with an image after; {suggest(task, by_task)}")
    kept = (
        named or paper_tasks({task: len(members) for task, members in by_task.items()}, most + 1) or by_task
    )
    chosen: dict[str, tuple[str, ...]] = {}
    held_out: list[str] = []
    for task, members in sorted(by_task.items(), key=lambda item: (-len(item[1]), item[0])):
        if task not in kept:
            continue
        demonstrations, tests = _split(task, members, seed, images, most)
        if tests and len(chosen) < max(tasks, len(named)):
            chosen[task] = demonstrations
            held_out += tests
    if not chosen:
        raise InputError(
            f"--shots: no task has {most + 1} samples of different sources with an image after, "
            f"which {most} demonstrations and a held-out sample need"
        )
    return ShotStudy(chosen, tuple(sorted(held_out)))


def recorded_study(arms: Iterable[Arm]) -> ShotStudy | None:
    """Return the study of a run, None without one. Samples added to the benchmark later do not change it."""
    for arm in arms:
        if arm.shots is not None and arm.samples is not None:
            return ShotStudy(arm.demonstrations, arm.samples)
    return None


def _split(
    task: str, members: Sequence[Sample], seed: int, images: int, most: int
) -> tuple[tuple[str, ...], list[str]]:
    """Return demonstrations, one from each of the first clusters drawn, and the samples of the other clusters."""
    clusters: dict[str, list[Sample]] = defaultdict(list)
    for sample in members:
        clusters[sample.cluster].append(sample)

    def drawn(name: str) -> tuple[int, str]:
        return derive_seed(seed, "shots", task, name), name

    ordered = [sorted(clusters[name], key=lambda one: drawn(one.id)) for name in sorted(clusters, key=drawn)]
    if len(ordered) <= most:
        return (), []
    tests = [sample.id for cluster in ordered[most:] for sample in cluster]
    return tuple(cluster[0].id for cluster in ordered[:most]), tests[: images - most]


class DemonstrationSimilarity:
    """How much closer outputs are to demonstrations than their inputs are: a measure of confusing the two.

    MedEBench saw that models confuse demonstration and case. For every demonstration image d of the task (before and
    after) the output's SSIM to d is compared with that of its input; the score is the largest difference. A copied
    input scores 0, a drawn demonstration far above. All demonstrations of the study count for every number of shots,
    shown or not, so that the largest of equally many is taken, and the arm without demonstrations is the control.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark
        self._images = lru_cache(maxsize=64)(self._read)
        self._before = lru_cache(maxsize=4096)(self._similarity_before)

    def differences(self, sample: Sample, output: Pixels, demonstrations: Sequence[str]) -> list[list[float]]:
        """Return the difference to each demonstration's image before and after.

        Raises:
            ValueError: the images are too small for SSIM.
        """
        return [
            [
                _ssim(output, self._images(shown, after, sample.size)) - self._before(sample.id, shown, after)
                for after in (False, True)
            ]
            for shown in demonstrations
        ]

    def _read(self, sample_id: str, after: bool, size: tuple[int, int]) -> Pixels:
        sample = self._benchmark.sample(sample_id)
        pixels = self._benchmark.changed(sample) if after else self._benchmark.previous(sample)
        return resized_bicubic(pixels, size)

    def _similarity_before(self, sample_id: str, shown: str, after: bool) -> float:
        sample = self._benchmark.sample(sample_id)
        return _ssim(self._benchmark.previous(sample), self._images(shown, after, sample.size))


async def score_demo_similarity(benchmark: Benchmark, journal: Journal, arms: Sequence[Arm]) -> int:
    """Score every output of the few-shot arms that has no such score; return how many were scored."""
    measure = DemonstrationSimilarity(benchmark)
    scored = 0
    for arm, sample, attempt in _unscored(benchmark, journal, arms):
        row = await asyncio.to_thread(_score, measure, journal, arm, sample, attempt)
        scored += await journal.add_scores([row])
    return scored


def _unscored(
    benchmark: Benchmark, journal: Journal, arms: Sequence[Arm]
) -> Iterator[tuple[Arm, Sample, Attempt]]:
    for arm in arms:
        for task in arm_tasks(journal.reader, arm.label) if arm.shots is not None else ():
            have = {
                (stored.round, stored.detail.get("blob"))
                for stored in journal.reader.scores(task.id, task.generation)
                if stored.metric == METRIC and stored.detail.get("version") == VERSION
            }
            for attempt in journal.reader.attempts(task.id, task.generation):
                if (attempt.round, attempt.edited) not in have:
                    yield arm, benchmark.sample(task.sample), attempt


def _score(
    measure: DemonstrationSimilarity, journal: Journal, arm: Arm, sample: Sample, attempt: Attempt
) -> StoredScore:
    demonstrations = arm.demonstrations[sample.task]
    score, detail = unscored("no image"), dict[str, JsonValue]()
    if attempt.edited is not None:
        output = decode(journal.reader.read_blob(attempt.edited))
        try:
            found = measure.differences(sample, output, demonstrations)
        except ValueError as error:
            score = unscored(str(error))
        else:
            score = Score(max(value for pair in found for value in pair))
            detail = {
                "by_demonstration": [[round(value, 6) for value in pair] for pair in found],
                "demonstrations": list(demonstrations),
                "shown": arm.shots,
            }
    detail = {**detail, "blob": attempt.edited, "version": VERSION}
    return StoredScore(attempt.task_id, attempt.generation, attempt.round, METRIC, score, detail)


def _ssim(one: Pixels, other: Pixels) -> float:
    score = ssim(one, other)
    if score.value is None:
        raise ValueError(score.reason)
    return score.value
