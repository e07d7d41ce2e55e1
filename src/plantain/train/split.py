"""Training and held-out examples: fixed held-out sets, nested training sets, whole clusters.

MedEBench (section 3.4) fine-tunes on 4, 8 and 16 samples of each of six tasks with 30 images and does not say which
samples are evaluated. Here the same held-out samples serve every size, and each training set contains the smaller ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from plantain.records import InputError, derive_seed
from plantain.records.messages import counted
from plantain.train.pairs import ListedExample


@dataclass(frozen=True, slots=True)
class TaskSplit:
    """One task's examples, divided for training and evaluation.

    Attributes:
        task: name of the task.
        held_out: ids that no training set contains.
        training: ids in order; the training set of size n is the first n.
    """

    task: str
    held_out: tuple[str, ...]
    training: tuple[str, ...]


def largest_tasks(examples: Sequence[ListedExample], count: int) -> tuple[str, ...]:
    """Return the names of the `count` tasks with most examples, largest first, ties by name."""
    sizes = Counter(example.task for example in examples)
    return tuple(sorted(sizes, key=lambda task: (-sizes[task], task))[:count])


def split_task(
    examples: Sequence[ListedExample], task: str, *, seed: int, largest: int, per_task: int
) -> TaskSplit:
    """Divide a task's examples into training and held-out ones; no cluster is in both, reserved ones are held out.

    Args:
        examples: examples of all tasks.
        task: the task to split.
        seed: seed of the order of clusters.
        largest: size of the largest training set.
        per_task: maximum number of the task's examples to use.

    Raises:
        InputError: there are too few examples for a training set and a held-out one.
    """
    split = _divided(examples, task, seed, largest, per_task)
    if _complete(split, largest):
        return split
    groups = len({example.cluster for example in examples if example.task == task})
    why = f"too few to train on {largest} and hold others out"
    if groups < 2:
        why = "its examples are of one patient or image, and two groups are needed"
    remedy = "no other task has two groups"
    if others := tasks_to_split(examples, seed=seed, largest=largest, per_task=per_task):
        remedy = f"another --task: {', '.join(map(repr, others))}"
    elif smaller := tasks_to_split(examples, seed=seed, largest=1, per_task=per_task):
        remedy = "choose smaller sizes, e.g. --set sizes=1"
        remedy += "" if task in smaller else f" --task {smaller[0]!r}"
    raise InputError(
        f"task {task!r} has {counted(len(split.training), 'example')} in {counted(groups, 'group')}: {why}; {remedy}"
    )


def tasks_to_split(examples: Sequence[ListedExample], *, seed: int, largest: int, per_task: int) -> list[str]:
    """Return the tasks that `split_task` can split, by name; arguments as there."""
    tasks = sorted({example.task for example in examples})
    return [task for task in tasks if _complete(_divided(examples, task, seed, largest, per_task), largest)]


def _complete(split: TaskSplit, largest: int) -> bool:
    return len(split.training) >= largest and bool(split.held_out)


def _divided(
    examples: Sequence[ListedExample], task: str, seed: int, largest: int, per_task: int
) -> TaskSplit:
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
        (training if len(training) < largest and cluster not in reserved else held_out).extend(members)
    return TaskSplit(task, tuple(held_out), tuple(training))


def split_preferences(
    listed: Sequence[ListedExample], share: float, seed: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Divide preferences into ids to train on and ids to monitor; no cluster is in both, reserved ones are monitored.

    Monitored preferences decide when a training ends, so the test split of a release, and all examples in its
    clusters, are in neither.

    Args:
        listed: preferences.
        share: share of the clusters to monitor, in (0, 1).
        seed: seed of the order of clusters.

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
    monitored = reserved | set(free[: max(0, wanted)])
    learn = tuple(example.id for example in listed if example.cluster not in monitored)
    watch = tuple(example.id for example in listed if example.cluster in monitored)
    if not learn or not watch:
        raise InputError(
            f"{len(listed)} preferences of {len(clusters)} groups outside the test split are too few to train on some "
            "and monitor others: a preference needs a task with both a success and a failure"
        )
    return learn, watch
