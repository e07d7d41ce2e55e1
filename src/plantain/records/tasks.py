"""Tasks, their attempts, their model calls with usage and price, and the hashes that identify and seed them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TypeVar

from plantain.records.judging import Verdict

K = TypeVar("K")


class Step(StrEnum):
    """The model calls of a round, in their order."""

    WRITE = "write"
    EDIT = "edit"
    JUDGE = "judge"


@dataclass(frozen=True, slots=True)
class CallKey:
    """Identity of a memoised call; a replay finds its answer by this key.

    Attributes:
        generation: how often a retry restarted the task.
        round: round of the loop, from 1.
        draw: number among calls of the same step and round, from 0: a judge's repetitions, a panel's members.
    """

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
        kind: ok, not_applicable, rate_limited, transport, refused, no_image, malformed or cancelled; it selects the
            retry policy.
        reason: why it is not ok, in one line; "" if ok.
        retry_after: seconds until the provider permits a retry (`rate_limited`, `transport`); None if not stated.
        fatal: True if the fault concerns the whole run, not this task (bad key, exhausted quota, retired model): the
            run stops instead of failing every task in turn.
        unbilled: True if the provider answered with an error or was never reached, so that nothing was billed.
        timed_out: True if no answer came in time: it may have been billed, and the provider may be overloaded.
        lost: True if a local worker process ended without an answer; such calls have a separate limit of retries.

    `unbilled`, `timed_out` and `lost` are neither journalled nor compared.
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
        """True if the call ended with a usable answer."""
        return self.kind is OutcomeKind.OK

    @property
    def costs_nothing(self) -> bool:
        """True if no model ran, so that the call is free unless usage was reported."""
        return self.fatal or self.unbilled or self.kind in BEFORE_WORK


BEFORE_WORK = frozenset({OutcomeKind.RATE_LIMITED, OutcomeKind.REFUSED, OutcomeKind.CANCELLED})
"""Outcomes of calls on which no model has worked."""


OK = Outcome(OutcomeKind.OK)


class Direction(StrEnum):
    """The kind of change (Med-Banana-50K, 2.1): builds add or remove a finding; a benchmark may request any other."""

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
    """Return the state of a task that ends with this verdict: success, failed or undecided."""
    return {True: TaskState.SUCCESS, False: TaskState.FAILED, None: TaskState.UNDECIDED}[verdict.qualified]


class TaskKind(StrEnum):
    """The purpose of a task: an edit of a build, or an output of a benchmark."""

    EDIT = "edit"
    BENCH = "bench"


@dataclass(frozen=True, slots=True)
class EditTask:
    """The task to add one finding to an image or remove it; `finding` of a benchmark's task is an arm's label."""

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
    """One round of a task: an instruction and its results.

    An attempt exists once its instruction does; a refused or imageless edit is an attempt without image.

    Attributes:
        generation: number of retries of the task before this round; `round` counts from 1 after each retry.
        edit_outcome, judge_outcome: how the editor's and the judge's call ended; None if it has not ended.
        edited: hash of the image as it is judged and released; `raw`: of the editor's own file; None without an image.
        mask: hash of a PNG that marks the pixels meant to change; None if unknown.
        support: extent of the change: "local", "diffuse" or "warp"; None if unknown.
        verdict: the decisive verdict; None without one.
        superseded: True if a later retry replaced it.
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
    """Divide `most` places evenly among parts, none getting more than its size; return each part's number.

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


USUAL_TIERS = frozenset({"", "default", "standard", "on_demand", "auto", "unspecified", "batch"})
"""Providers' names of the tier that list prices are for. A batch has a price list of its own (`times`)."""

RECIPE = "recipe"
"""Source of a price that the recipe states, which is taken at its word for every tier."""

PREPAID = "provisioned_throughput"
"""Vertex AI's traffic type of calls under throughput that was bought by the hour: no token of them is billed."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token and image counts of a call, and the model that answered. None: not reported.

    All providers' counts are converted to one convention:

    - `input_tokens` counts everything read: words, images, tokens from a cache and tokens written to one.
    - `output_tokens` counts everything billed as output: words, images and thinking.
    - Every other token count is a part of one of these two: `cached_tokens`, `cache_write_tokens` and
      `input_image_tokens` of the input (`cached_image_tokens` of both the cached and the images), `thinking_tokens` and
      `output_image_tokens` of the output.

    Attributes:
        images: number of images in the answer.
        served_model, finish_reason, response_id: as the provider reports them; "" if it does not.
        tier: service tier that served the call, as the provider names it, in lower case; "" for the usual one.
        ran_on: local worker that computed the answer: CPU or GPU, library versions; "" for a hosted model.
        asks: usage of each request if the call consisted of several, else (); each is billed by its own tier, and the
            counts of the call are their sums. A request without counts was sent at an unknown cost.
        reported_usd: cost of the call by the server's own reply, in US dollars; plans and budgets do not use it.
    """

    served_model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    input_image_tokens: int | None = None
    output_image_tokens: int | None = None
    images: int | None = None
    finish_reason: str = ""
    response_id: str = ""
    cached_image_tokens: int | None = None
    cache_write_tokens: int | None = None
    tier: str = ""
    ran_on: str = ""
    asks: tuple[Usage, ...] = ()
    reported_usd: float | None = None

    @property
    def total_tokens(self) -> int:
        """All tokens read and written, as limits per minute count them; unreported counts are 0."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def with_image_tokens(self, tokens: int | None) -> Usage:
        """Return the usage with `output_image_tokens` = `images` x `tokens`; unchanged if that count is reported.

        Args:
            tokens: tokens of one image of the requested size; None if unknown: nothing changes, as without images. The
                product is added to `output_tokens` if that count, without thinking, is too small to include all images.
        """
        if not self.images or not tokens or self.output_image_tokens is not None:
            return self
        image_tokens = self.images * tokens
        reported = self.output_tokens or 0
        whole = (
            reported if reported - (self.thinking_tokens or 0) >= image_tokens else reported + image_tokens
        )
        return replace(self, output_tokens=whole, output_image_tokens=image_tokens)


RATES = ("_per_m", "_each")
"""Endings of the fields of `Price` that are dollars."""


@dataclass(frozen=True, slots=True)
class Price:
    """List prices of one model, in US dollars. None means that the provider does not charge that way.

    Attributes:
        input_per_m: per million tokens read.
        output_per_m: per million tokens written; thinking is billed as output.
        cached_per_m: per million tokens read from the provider's cache; None for the price of input.
        cached_image_per_m: the same for image tokens; as `cached_per_m` where None.
        batch_cached_per_m: `cached_per_m` in a batch job; None for the batch discount on `cached_per_m`.
        cache_write_per_m: per million tokens written to the cache; as input where None.
        image_input_per_m: per million image tokens read; None for the price of input.
        image_output_per_m: per million image tokens written; None for the price of output.
        image_out_each: per image written, where images have a price of their own.
        regional_factor: factor on all prices if the provider charges more for regional addresses.
        since, until: first day of validity and the day after its last, ISO; "" if open.
        date, source: when and where the price was read.
    """

    input_per_m: float = 0.0
    output_per_m: float = 0.0
    cached_per_m: float | None = None
    image_input_per_m: float | None = None
    image_output_per_m: float | None = None
    image_out_each: float | None = None
    cached_image_per_m: float | None = None
    cache_write_per_m: float | None = None
    batch_cached_per_m: float | None = None
    regional_factor: float = 1.0
    since: str = field(default="", compare=False)
    until: str = field(default="", compare=False)
    date: str = field(default="", compare=False)
    source: str = field(default="", compare=False)

    def cost(self, usage: Usage) -> float | None:
        """Return the cost of a call in US dollars, by the token convention of `Usage`; None if unknown.

        It is unknown if the usage has no input or output tokens, or names a service tier that list prices are not for,
        unless the recipe states the price. With prices per image, the input is small and may be missing, and an image
        is not also billed by its tokens. Of several requests, each is billed separately.
        """
        if usage.asks:
            bills = [bill for ask in usage.asks if (bill := self.cost(ask)) is not None]
            return sum(bills) if len(bills) == len(usage.asks) else None
        image_tokens = usage.images and (self.image_out_each is not None or usage.output_image_tokens)
        if (usage.input_tokens is None or usage.output_tokens is None) and not image_tokens:
            return None
        if usage.tier == PREPAID:
            return 0.0
        if usage.tier not in USUAL_TIERS and self.source != RECIPE:
            return None
        return self._read(usage) + self._written(usage)

    def _read(self, usage: Usage) -> float:
        whole = usage.input_tokens or 0
        cached = min(usage.cached_tokens or 0, whole)
        cached_images = min(usage.cached_image_tokens or 0, cached)
        kept = min(usage.cache_write_tokens or 0, whole - cached)
        images = min(max(0, (usage.input_image_tokens or 0) - cached_images), whole - cached - kept)
        text = whole - cached - kept - images
        cached_rate = _rate(self.cached_per_m, self.input_per_m)
        return (
            text * self.input_per_m
            + images * _rate(self.image_input_per_m, self.input_per_m)
            + (cached - cached_images) * cached_rate
            + cached_images * _rate(self.cached_image_per_m, cached_rate)
            + kept * _rate(self.cache_write_per_m, self.input_per_m)
        ) / 1e6

    def _written(self, usage: Usage) -> float:
        images = min(usage.output_image_tokens or 0, usage.output_tokens or 0)
        dollars = ((usage.output_tokens or 0) - images) * self.output_per_m / 1e6
        if self.image_out_each is not None:
            return dollars + (usage.images or 0) * self.image_out_each
        return dollars + images * _rate(self.image_output_per_m, self.output_per_m) / 1e6

    def times(self, factor: float) -> Price:
        """Return the price list with all dollar amounts multiplied by a factor, e.g. 0.5 for a batch."""
        rates = {one.name: getattr(self, one.name) for one in fields(self) if one.name.endswith(RATES)}
        return replace(self, **{name: rate * factor for name, rate in rates.items() if rate is not None})

    def holds_on(self, day: str) -> bool:
        """Return True if this price is valid on a day, ISO ("2026-11-27")."""
        return self.since <= day and (not self.until or day < self.until)


def _rate(own: float | None, usual: float) -> float:
    return usual if own is None else own


FREE = Price(source="runs on this machine")
