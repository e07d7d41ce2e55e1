"""Training examples (an edit, or two edits of which one is better), and their division into trained and held out.

MedEBench (section 3.4) fine-tunes on 4, 8 and 16 samples of each of six tasks with 30 images and does not say which
samples are evaluated. Here the same held-out samples serve every size, and each training set contains the smaller ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from plantain.pixels.arrays import Mask, Pixels
from plantain.records import InputError, derive_seed


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """One supervised example.

    Attributes:
        id: unique in its source.
        task: kind of edit; training sets are drawn per task.
        cluster: shared by dependent examples (same source image or patient), which are never split.
        instruction: what to change.
        before, after: uint8 RGB (H, W, 3), same shape.
        region: bool (H, W), where the edit was made, if known; used for measuring only.
    """

    id: str
    task: str
    cluster: str
    instruction: str
    before: Pixels = field(repr=False)
    after: Pixels = field(repr=False)
    region: Mask | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Two edits of the same image for the same task; other attributes as for `TrainingPair`.

    Attributes:
        instruction: the winner's.
        before, winner, loser: uint8 RGB (H, W, 3), same shape.
    """

    id: str
    task: str
    cluster: str
    instruction: str
    before: Pixels = field(repr=False)
    winner: Pixels = field(repr=False)
    loser: Pixels = field(repr=False)


@dataclass(frozen=True, slots=True)
class ListedExample:
    """An example before its pixels are read.

    Attributes:
        id, task, cluster: as for `TrainingPair`.
        reserved: never trained on (the validation and test splits of a release).
        final: of the test split: not used to choose anything either, such as when a training ends.
    """

    id: str
    task: str
    cluster: str
    reserved: bool = False
    final: bool = False


class PairSource(Protocol):
    """A source of training pairs.

    Attributes:
        name: for people.
        digest: changes with the data.
    """

    name: str
    digest: str

    def listed(self) -> list[ListedExample]:
        """Return every pair without pixels, in a stable order."""
        ...

    def read(self, ids: Sequence[str]) -> Iterator[TrainingPair]:
        """Yield the pairs of these ids one at a time, in the source's own order."""
        ...


@dataclass(frozen=True, slots=True)
class TaskSplit:
    """One task's examples.

    Attributes:
        task: its name.
        held_out: ids that no training set contains.
        training: ids in order; the training set of size n is the first n.
    """

    task: str
    held_out: tuple[str, ...]
    training: tuple[str, ...]


def largest_tasks(examples: Sequence[ListedExample], count: int) -> tuple[str, ...]:
    """Return the tasks with most examples, ties by name."""
    sizes = Counter(example.task for example in examples)
    return tuple(sorted(sizes, key=lambda task: (-sizes[task], task))[:count])


def split_task(
    examples: Sequence[ListedExample], task: str, *, seed: int, largest: int, per_task: int
) -> TaskSplit:
    """Split one task's examples; clusters stay whole, reserved ones are held out.

    Args:
        examples: of all tasks.
        task: the task to split.
        seed: of the order of clusters.
        largest: size of the largest training set.
        per_task: at most so many examples of the task are used.

    Raises:
        InputError: too few examples for a training set and a held-out one.
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
        (training if len(training) < largest and cluster not in reserved else held_out).extend(members)
    if len(training) < largest or not held_out:
        raise InputError(
            f"task {task!r} has {len(training)} examples in {len(clusters)} groups: too few to train on {largest} "
            "and hold others out; choose smaller sizes, or other tasks"
        )
    return TaskSplit(task, tuple(held_out), tuple(training))


def split_preferences(
    listed: Sequence[ListedExample], share: float, seed: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split preferences into ids to train on and ids to monitor; clusters stay whole, reserved ones are monitored.

    Monitored preferences decide when a training ends, so the test split of a release, and whatever shares a cluster
    with it, is in neither.

    Args:
        listed: preferences.
        share: of the clusters that are monitored, in (0, 1).
        seed: of the order of clusters.

    Raises:
        InputError: too few clusters for both.
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
