"""Tasks, their model calls and attempts, and the hashes that identify and seed them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from plantain.records.judging import Verdict

K = TypeVar("K")


class Step(StrEnum):
    """The model calls of a round, in their order; only a judge that is asked blind looks before it judges."""

    WRITE = "write"
    EDIT = "edit"
    LOOK = "look"
    JUDGE = "judge"


@dataclass(frozen=True, slots=True)
class CallKey:
    """Identity of a memoised call; a replay finds its answer by this key."""

    task_id: str
    generation: int
    round: int
    step: Step
    draw: int = 0


class OutcomeKind(StrEnum):
    """How a model call ended; each kind has one retry policy (`plantain.calls.policy`)."""

    OK = "ok"
    NOT_APPLICABLE = "not_applicable"
    RATE_LIMITED = "rate_limited"
    TRANSPORT = "transport"
    REFUSED = "refused"
    NO_IMAGE = "no_image"
    MALFORMED = "malformed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended and why.

    Attributes:
        kind: the outcome.
        reason: one line; "" if ok.
        retry_after: seconds that the provider asked us to wait, for `rate_limited`.
        fatal: the fault concerns the whole run, not this task (bad key, exhausted quota, retired
            model): the run stops instead of failing every task in turn.
        unbilled: the provider answered with an error or was never reached: nothing can have been billed.
        timed_out: no answer came in time: it may have been billed, and the provider may be overloaded.
        lost: the worker that computed has ended without an answer, independently of the request: such calls
            have tries of their own.

    The last three are evidence of this process; they are neither journalled nor compared.
    """

    kind: OutcomeKind
    reason: str = ""
    retry_after: float | None = None
    fatal: bool = False
    unbilled: bool = field(default=False, compare=False)
    timed_out: bool = field(default=False, compare=False)
    lost: bool = field(default=False, compare=False)

    @property
    def ok(self) -> bool:
        return self.kind is OutcomeKind.OK

    @property
    def costs_nothing(self) -> bool:
        """True if it ended before the model worked, unless the provider reports usage."""
        return self.fatal or self.unbilled or self.kind in BEFORE_WORK


BEFORE_WORK = frozenset({OutcomeKind.RATE_LIMITED, OutcomeKind.REFUSED, OutcomeKind.CANCELLED})
"""Outcomes of calls on which no model has worked."""


OK = Outcome(OutcomeKind.OK)


class Direction(StrEnum):
    """Which way an edit goes (Med-Banana-50K, 2.1). Builds add and remove; a benchmark may ask for any other change."""

    ADD = "add"
    REMOVE = "remove"
    CHANGE = "change"


BUILD_DIRECTIONS = (Direction.ADD, Direction.REMOVE)
"""The directions of a build."""


class TaskState(StrEnum):
    """The state of a task. All but `pending` are closed.

    `undecided`: the judge cannot tell whether the edit qualifies. Refining cannot change that, so the task ends at
    once; its last edit is neither a success nor a negative example.
    """

    PENDING = "pending"
    SUCCESS = "success"
    FAILED = "failed"
    UNDECIDED = "undecided"
    NOT_APPLICABLE = "not_applicable"
    STOPPED = "stopped"


def state_after(verdict: Verdict) -> TaskState:
    """Return the state of a task that ends with this verdict."""
    return {True: TaskState.SUCCESS, False: TaskState.FAILED, None: TaskState.UNDECIDED}[verdict.qualified]


class TaskKind(StrEnum):
    """An edit or a control of a build, or an output of a benchmark."""

    EDIT = "edit"
    CONTROL = "control"
    BENCH = "bench"


@dataclass(frozen=True, slots=True)
class EditTask:
    """Add one finding to, or remove it from, one image."""

    id: str
    image_id: str
    modality: str
    finding: str
    direction: Direction
    kind: TaskKind = TaskKind.EDIT


def task_id(source_sha256: str, frame: int, finding: str, direction: Direction) -> str:
    """Return a task's id: 20 hex digits from source image, finding and direction, never from recipe or order."""
    text = "\x1f".join((source_sha256, str(frame), finding, direction.value))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def derive_seed(run_seed: int, *parts: object) -> int:
    """Return a 63-bit seed from the run's seed and its purpose, e.g. (task id, round, step, draw)."""
    text = "\x1f".join(str(part) for part in (run_seed, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """One round of a task: an instruction and its results. Image fields are blob hashes.

    An attempt exists once its instruction does; a refused or imageless edit is an attempt without image.
    """

    task_id: str
    generation: int
    round: int
    instruction: str
    edit_outcome: Outcome | None = None
    edited: str | None = None
    raw: str | None = None
    mask: str | None = None
    support: str | None = None
    judge_outcome: Outcome | None = None
    verdict: Verdict | None = None
    superseded: bool = False


def shared_out(sizes: Mapping[K, int], most: int) -> dict[K, int]:
    """Share `most` places over parts: one each in turn, until places or tasks run out.

    Example:
        >>> shared_out({"add": 100, "remove": 2}, 10)
        {'add': 8, 'remove': 2}
    """
    places = dict.fromkeys(sizes, 0)
    left = min(most, sum(sizes.values()))
    while left:
        for part in [part for part in sizes if places[part] < sizes[part]][:left]:
            places[part] += 1
            left -= 1
    return places
