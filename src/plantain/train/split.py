"""Which examples are held out and which are learned from: fixed held-out sets, nested training sets, whole clusters.

MedEBench (section 5) fine-tunes on 4, 8 and 16 samples of each of six tasks with 30 images and leaves open which ones
are evaluated. Here the same held-out samples serve every size, and each training set contains the smaller ones, so
that sizes differ in nothing else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from plantain.records import InputError, derive_seed
from plantain.train.examples.pairs import ListedExample

SIZES = (0, 4, 8, 16)
TASKS = 6
PER_TASK = 30


@dataclass(frozen=True, slots=True)
class TaskSplit:
    """One task's examples.

    Attributes:
        task: its name.
        held_out: ids that no size learns from.
        training: ids in the order in which sizes take them; size n learns from the first n.
    """

    task: str
    held_out: tuple[str, ...]
    training: tuple[str, ...]


def choose_tasks(examples: Sequence[ListedExample], count: int = TASKS) -> tuple[str, ...]:
    """The tasks with most examples, ties by name."""
    sizes = Counter(example.task for example in examples)
    return tuple(sorted(sizes, key=lambda task: (-sizes[task], task))[:count])


def split_task(
    examples: Sequence[ListedExample],
    task: str,
    *,
    seed: int,
    largest: int = SIZES[-1],
    per_task: int = PER_TASK,
) -> TaskSplit:
    """Splits one task's examples; clusters stay whole, on one side.

    Args:
        examples: of all tasks.
        task: whose examples.
        seed: of the order.
        largest: examples that the largest training set needs.
        per_task: at most so many examples of the task are used at all.

    Returns:
        Training ids, at least `largest`, and all others held out; the reserved ones are among the latter.

    Raises:
        InputError: the task has too few examples for a training set and a held-out one.
    """
    clusters: dict[str, list[str]] = defaultdict(list)
    for example in sorted(examples, key=lambda example: example.id):
        if example.task == task:
            clusters[example.cluster].append(example.id)
    reserved = {example.cluster for example in examples if example.reserved}
    order = sorted(
        clusters, key=lambda cluster: (cluster in reserved, derive_seed(seed, "split", task, cluster))
    )
    training: list[str] = []
    held_out: list[str] = []
    for cluster in order:
        members = clusters[cluster][: max(0, per_task - len(training) - len(held_out))]
        learned = len(training) < largest and cluster not in reserved
        (training if learned else held_out).extend(members)
    if len(training) < largest or not held_out:
        raise InputError(
            f"task {task!r} has {len(training)} examples in {len(clusters)} groups: too few to learn from {largest} "
            "and hold others out; choose smaller sizes, or other tasks"
        )
    return TaskSplit(task, tuple(held_out), tuple(training))


def split_watched(
    listed: Sequence[ListedExample], share: float, seed: int, what: str, needed: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ids to learn from and ids to watch; clusters stay whole, reserved ones are watched.

    What is watched decides when a training ends or how it is described, so that a release's test split is left for
    whoever measures the result: it is neither learned from nor watched, nor is anything that shares a cluster with it.

    Args:
        listed: examples.
        share: of the clusters that are watched, in (0, 1).
        seed: of the draw.
        what, needed: the examples in the plural, and what such an example takes, for the message.

    Raises:
        InputError: there are too few clusters for both.
    """
    final = {example.cluster for example in listed if example.final}
    listed = [example for example in listed if example.cluster not in final]
    clusters = sorted(
        {example.cluster for example in listed}, key=lambda name: derive_seed(seed, "dpo", name)
    )
    reserved = {example.cluster for example in listed if example.reserved}
    free = [name for name in clusters if name not in reserved]
    wanted = max(1, round(share * len(clusters))) - len(reserved)
    held_out = reserved | set(free[: max(0, wanted)])
    learn = tuple(example.id for example in listed if example.cluster not in held_out)
    watched = tuple(example.id for example in listed if example.cluster in held_out)
    if not learn or not watched:
        raise InputError(
            f"{len(listed)} {what} of {len(clusters)} groups outside the test split are too few to learn from "
            f"some and watch others: {needed}"
        )
    return learn, watched
