"""How far an editor that was shown demonstrations draws them instead of the new case: the score `demo_similarity`.

MedEBench saw that models confuse demonstration and case. For every demonstration picture d of the task (before and
after) the output's structural similarity to d is compared with that of the image it was made from; the score is the
largest difference. Copying the input scores 0, drawing a demonstration scores far above. All demonstrations of the
study count for every number of shots, shown or not, so that the largest of equally many is taken each time, and the
arm without demonstrations is the control.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import lru_cache

from plantain.bench.benchmark.benchmark import Benchmark, resized_bicubic
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.arms import Arm
from plantain.journal import Journal, JsonValue, StoredScore
from plantain.journal.questions.benchmark import arm_tasks
from plantain.metrics import ssim
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import Attempt, Score, unscored

METRIC = "demo_similarity"
VERSION = 1

BATCH = 50


async def score_confusion(benchmark: Benchmark, journal: Journal, arms: Sequence[Arm]) -> int:
    """Scores every output of the few-shot arms that lacks the score; returns how many were scored."""
    measure = Confusion(benchmark)
    batch: list[StoredScore] = []
    scored = 0
    for arm, sample, attempt in _unscored(benchmark, journal, arms):
        batch.append(await asyncio.to_thread(_score, measure, journal, arm, sample, attempt))
        if len(batch) == BATCH:
            scored += await journal.add_scores(batch)
            batch = []
    return scored + await journal.add_scores(batch)


class Confusion:
    """The measure over one benchmark; keeps the pictures of a few demonstrations at hand."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark
        self._pictures = lru_cache(maxsize=64)(self._read)
        self._before = lru_cache(maxsize=4096)(self._similarity_before)

    def differences(self, sample: Sample, output: Pixels, demonstrations: Sequence[str]) -> list[list[float]]:
        """For each demonstration: how much closer than its input the output is to its image before and after.

        Raises:
            ValueError: the images are too small for structural similarity.
        """
        return [
            [
                _ssim(output, self._pictures(shown, after, sample.size))
                - self._before(sample.id, shown, after)
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
        return _ssim(self._benchmark.previous(sample), self._pictures(shown, after, sample.size))


def _unscored(
    benchmark: Benchmark, journal: Journal, arms: Sequence[Arm]
) -> Iterator[tuple[Arm, Sample, Attempt]]:
    for arm in arms:
        if arm.shots is None:
            continue
        for task in arm_tasks(journal.reader, arm.label):
            have = {
                (stored.round, stored.detail.get("blob"))
                for stored in journal.reader.scores(task.id, task.generation)
                if stored.metric == METRIC and stored.detail.get("version") == VERSION
            }
            for attempt in journal.reader.attempts(task.id, task.generation):
                if (attempt.round, attempt.edited) not in have:
                    yield arm, benchmark.sample(task.sample), attempt


def _score(measure: Confusion, journal: Journal, arm: Arm, sample: Sample, attempt: Attempt) -> StoredScore:
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
    return StoredScore(
        attempt.task_id,
        attempt.generation,
        attempt.round,
        METRIC,
        score,
        {**detail, "blob": attempt.edited, "version": VERSION},
    )


def _ssim(one: Pixels, other: Pixels) -> float:
    score = ssim(one, other)
    if score.value is None:
        raise ValueError(score.reason)
    return score.value
