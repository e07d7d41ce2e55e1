"""Similarity of outputs to the demonstrations that their editor was shown."""

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
