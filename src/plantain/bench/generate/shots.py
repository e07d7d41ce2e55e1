"""The few-shot study: which tasks, which worked examples, and which samples are held out (MedEBench, 3.4).

The held-out samples are the same for every number of demonstrations; demonstrations are nested (two shots show the one
of one shot and one more); no held-out sample shares a cluster with a demonstration.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.arms import Arm
from plantain.records import InputError, derive_seed

TASKS, IMAGES, MOST_SHOTS = 6, 30, 3
"""The paper's: six tasks, 30 images of each, up to three demonstrations."""


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
    most: int = MOST_SHOTS,
) -> ShotStudy:
    """Chooses tasks and samples by the seed; nothing depends on the order of `samples`.

    Args:
        samples: of the benchmark; those without a real image after cannot be demonstrations and are left out.
        seed: the run's.
        tasks: how many tasks: those with most samples, the first by name among equals.
        images: samples of each task, demonstrations included, at most.
        most: demonstrations of each task.

    Raises:
        InputError: no task has a sample left beside its demonstrations.
    """
    by_task: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.changed is not None:
            by_task[sample.task].append(sample)
    chosen: dict[str, tuple[str, ...]] = {}
    held_out: list[str] = []
    for task, members in sorted(by_task.items(), key=lambda item: (-len(item[1]), item[0])):
        demonstrations, tests = _split(task, members, seed, images, most)
        if tests and len(chosen) < tasks:
            chosen[task] = demonstrations
            held_out += tests
    if not chosen:
        raise InputError(
            f"--shots: no task has {most + 1} samples of different sources with an image after, "
            f"which {most} demonstrations and a held-out sample need"
        )
    return ShotStudy(chosen, tuple(sorted(held_out)))


def recorded_study(arms: Iterable[Arm]) -> ShotStudy | None:
    """The study that a run has begun; None where it has none. A benchmark that grew does not change it."""
    for arm in arms:
        if arm.shots is not None and arm.samples is not None:
            return ShotStudy(arm.demonstrations, arm.samples)
    return None


def _split(
    task: str, members: Sequence[Sample], seed: int, images: int, most: int
) -> tuple[tuple[str, ...], list[str]]:
    """Demonstrations, one from each of the first clusters by lot, and the samples of the other clusters."""
    clusters: dict[str, list[Sample]] = defaultdict(list)
    for sample in members:
        clusters[sample.cluster].append(sample)
    drawn = sorted(clusters, key=lambda name: (derive_seed(seed, "shots", task, name), name))
    ordered = [
        sorted(clusters[name], key=lambda one: (derive_seed(seed, "shots", task, one.id), one.id))
        for name in drawn
    ]
    if len(ordered) <= most:
        return (), []
    tests = [sample.id for cluster in ordered[most:] for sample in cluster]
    return tuple(cluster[0].id for cluster in ordered[:most]), tests[: images - most]
