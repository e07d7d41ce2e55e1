"""The few-shot study: tasks, demonstrations and held-out samples (MedEBench, 3.4).

The held-out samples are the same for every number of demonstrations; demonstrations are nested (two shots show the one
of one shot and one more); no held-out sample shares a cluster with a demonstration.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plantain.bench.benchmark.medebench import paper_tasks
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.runfile import Arm
from plantain.records import InputError, derive_seed
from plantain.records.messages import counted, suggest

TASKS, IMAGES, MOST_SHOTS = 6, 30, 3
"""The paper's: six tasks, 30 images of each, up to three demonstrations."""


@dataclass(frozen=True, slots=True)
class ShotStudy:
    """The demonstrations and held-out samples of a few-shot study.

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
    named: Sequence[str] = (),
    most: int = MOST_SHOTS,
) -> ShotStudy:
    """Choose the tasks, demonstrations and held-out samples of a few-shot study, at random by seed.

    Args:
        samples: the benchmark's samples in any order; those without a real image after are skipped.
        seed: the run's seed.
        named: tasks by name; default: those of the paper's six (Table 7) that the benchmark has, else the largest
            six (`TASKS`).
        most: number of demonstrations of each task; more, up to `MOST_SHOTS`, where a task has enough sources.

    Raises:
        InputError: no such task, or no task has samples for its demonstrations and a held-out one.
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
        room = len({one.cluster for one in members}) - 1
        demonstrations, tests = _split(task, members, seed, max(most, min(MOST_SHOTS, room)))
        if tests and len(chosen) < max(TASKS, len(named)):
            chosen[task] = demonstrations
            held_out += tests
    if not chosen:
        raise InputError(
            f"--shots: no task has {most + 1} samples of different sources with an image after, "
            f"which {counted(most, 'demonstration')} and a held-out sample need"
        )
    return ShotStudy(chosen, tuple(sorted(held_out)))


def recorded_study(arms: Iterable[Arm]) -> ShotStudy | None:
    """Return the few-shot study recorded in a run's arms, or None. Samples added later do not change it."""
    for arm in arms:
        if arm.shots is not None and arm.samples is not None:
            return ShotStudy(arm.demonstrations, arm.samples)
    return None


def _split(task: str, members: Sequence[Sample], seed: int, most: int) -> tuple[tuple[str, ...], list[str]]:
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
    return tuple(cluster[0].id for cluster in ordered[:most]), tests[: IMAGES - most]
