"""The forecast: calls, money, hours and disk that a recipe's tasks will take; from a pilot run where there is one."""

from __future__ import annotations

import math
import os
import statistics
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy
from plantain.journal import JournalReader
from plantain.journal.questions.status import costs
from plantain.journal.questions.tasks import rounds_of_closed
from plantain.metrics.statistics.intervals import wilson
from plantain.models.registry import image_token_range
from plantain.pipeline.plan import enumerate_tasks
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import make_ready
from plantain.records import InputError, Price, Step, TaskState, Usage
from plantain.records.messages import counted
from plantain.roles import TakesRegion
from plantain.runs.terms import (
    ON_THIS_MACHINE,
    OPEN_MODELS,
    SPREAD,
    TYPICAL_USAGE,
    devices_of,
    price_under,
)

EXPECTED_ROUNDS = 3.15
"""Mean rounds per task: 57.2 per cent succeed, of them 58, 25 and 17 per cent in rounds 1, 2 and 3 to 5 (taken as 4);
the rest use all five (Med-Banana-50K, 3). The low estimate is one round each, the high one the recipe's maximum."""

EXPECTED_YIELD = 0.572
"""Share of tasks that succeed (Med-Banana-50K, 3)."""

BYTES_PER_ATTEMPT = 420_000
"""An edited 1024x1024 JPEG of quality 95 as sent and as normalised, its mask, and the rows."""

BYTES_PER_IMAGE = 330_000

HOSTED_LATENCY_S = {Step.WRITE: 6.0, Step.EDIT: 12.0, Step.JUDGE: 9.0}
LOCAL_LATENCY_S = {Step.WRITE: 0.02, Step.EDIT: 0.7, Step.JUDGE: 1.5}
"""Seconds per call without a pilot: guesses for hosted models, measured for the offline ones on one core."""

OPEN_LATENCY_S = (0.5, 5.0, 120.0)
"""Seconds that an edit with open weights takes its device: between a small model on a GPU and one on a processor."""

ROLE_OF = {Step.WRITE: "writer", Step.EDIT: "editor", Step.JUDGE: "judge"}

BATCH_HOURS = (0.2, 1.0, 24.0)
"""Of one batch job; every wave of tasks takes one for each step of its rounds, one after the other."""


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """A forecast quantity: its low, expected and high value."""

    low: float
    expected: float
    high: float

    def __add__(self, other: CallEstimate) -> CallEstimate:
        return CallEstimate(self.low + other.low, self.expected + other.expected, self.high + other.high)

    def times(self, low: float, expected: float | None = None, high: float | None = None) -> CallEstimate:
        """Return the estimate with each value multiplied by its factor; a missing factor is `low`."""
        expected, high = low if expected is None else expected, low if high is None else high
        return CallEstimate(self.low * low, self.expected * expected, self.high * high)

    def at_least(self, other: CallEstimate) -> CallEstimate:
        return CallEstimate(*map(max, astuple(self), astuple(other)))

    def at_most(self, limit: float) -> CallEstimate:
        return CallEstimate(min(self.low, limit), min(self.expected, limit), min(self.high, limit))


def three(estimate: CallEstimate | None) -> dict[str, float] | None:
    """Return an estimate for JSON, with the keys "low", "expected" and "high"; None for None."""
    return None if estimate is None else asdict(estimate)


NOTHING = CallEstimate(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Pilot:
    """Rates measured in an earlier run, to forecast a larger one.

    Attributes:
        rounds: the rounds that each of its closed tasks took; `succeeded`: how many of them succeeded.
        tries: model calls per attempt, by step, retries included.
        cost_usd, latency_s: mean US dollars and seconds per call, by step and model, if known.
    """

    rounds: tuple[int, ...]
    succeeded: int
    tries: dict[Step, float]
    cost_usd: dict[tuple[Step, str], float]
    latency_s: dict[tuple[Step, str], float]

    def rounds_per_task(self) -> CallEstimate:
        """Return the mean number of rounds per task; low and high are its 95 % normal interval, at least 0."""
        mean = statistics.fmean(self.rounds)
        spread = statistics.stdev(self.rounds) if len(self.rounds) > 1 else 0.0
        half = 1.96 * spread / math.sqrt(len(self.rounds))
        return CallEstimate(max(0.0, mean - half), mean, mean + half)


def read_pilot(run: Path) -> Pilot:
    """Measure the rates of a run, also during its build. InputError if it is not a run, or has no closed task."""
    with JournalReader.open(run) as reader:
        closed = list(rounds_of_closed(reader))
        if not closed:
            raise InputError(f"--run {run}: none of its tasks is closed yet, so there are no rates yet")
        attempts = max(1, reader.attempt_count() + reader.attempt_count(superseded=True))
        rows = {(Step(row.step), row.model): row for row in costs(reader)}
        return Pilot(
            tuple(rounds for _, rounds in closed),
            sum(state is TaskState.SUCCESS for state, _ in closed),
            {step: sum(r.tries for (of, _), r in rows.items() if of is step) / attempts for step in Step},
            {key: r.cost_usd / r.priced for key, r in rows.items() if r.cost_usd is not None and r.priced},
            {key: r.mean_latency_s for key, r in rows.items() if r.mean_latency_s is not None},
        )


@dataclass(slots=True)
class BuildPlan:
    """The forecast of a build.

    Attributes:
        tasks: number of tasks; with `accepted_per_finding` the largest possible number.
        images: number of images that tasks use.
        by_finding: number of tasks by modality, finding and direction.
        tried: number of tasks expected to run; less than `tasks` only with `accepted_per_finding`; `tried_by`: the same
            by modality, finding and direction.
        rounds: number of rounds of all tasks.
        calls_by: calls by step and model.
        cost_usd: cost in US dollars; None while a price is unknown.
        duration_s, disk: duration in seconds, and disk space in bytes.
        unpriced: models without a known price.
    """

    tasks: int = 0
    images: int = 0
    by_finding: dict[tuple[str, str, str], int] = field(default_factory=dict)
    tried: CallEstimate = NOTHING
    tried_by: dict[tuple[str, str, str], CallEstimate] = field(default_factory=dict)
    rounds: CallEstimate = NOTHING
    calls: CallEstimate = NOTHING
    calls_by: dict[tuple[Step, str], CallEstimate] = field(default_factory=dict)
    cost_usd: CallEstimate | None = None
    duration_s: CallEstimate = NOTHING
    disk: CallEstimate = NOTHING
    unpriced: tuple[str, ...] = ()


def make_plan(
    recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, pilot: Pilot | None = None
) -> BuildPlan:
    """Count a recipe's tasks and forecast calls, cost, duration and disk. No model is called.

    Args:
        pilot: rates of an earlier run; None for the paper's rates and plantain's assumptions.
    """
    plan = BuildPlan()
    images: set[str] = set()
    for task in enumerate_tasks(recipe, catalogue, taxonomy):
        images.add(task.image_id)
        plan.tasks += 1
        key = (task.modality, task.finding, task.direction.value)
        plan.by_finding[key] = plan.by_finding.get(key, 0) + 1
    plan.images = len(images)
    for key, n in plan.by_finding.items():
        plan.tried_by[key] = _tried(recipe, pilot, n)
    plan.tried = sum(plan.tried_by.values(), NOTHING)
    most = float(recipe.loop.max_rounds)
    usual = CallEstimate(1.0, min(EXPECTED_ROUNDS, most), most)
    each = usual if pilot is None else pilot.rounds_per_task().at_most(most)
    plan.rounds = plan.tried.times(each.low, each.expected, each.high)
    roles = _roles(recipe)
    for step, model in roles:
        members = sum(other is step for other, _ in roles)  # of a panel
        tries = pilot.tries[step] / members if pilot and pilot.tries[step] else 1.0
        known = plan.calls_by.get((step, model), NOTHING)
        plan.calls_by[(step, model)] = known + plan.rounds.times(tries)
    plan.calls = sum(plan.calls_by.values(), NOTHING)
    called = dict.fromkeys(model for _, model in plan.calls_by)
    plan.unpriced = tuple(model for model in called if price_under(recipe.terms, model) is None)
    if not plan.unpriced:
        plan.cost_usd = sum((_cost(recipe, pilot, *key, n) for key, n in plan.calls_by.items()), NOTHING)
    plan.duration_s = _duration(recipe, plan, pilot)
    images_used = plan.tried.at_most(plan.images)
    plan.disk = plan.rounds.times(BYTES_PER_ATTEMPT) + images_used.times(BYTES_PER_IMAGE)
    return plan


def _provider(model: str) -> str:
    return model.partition("/")[0]


def _roles(recipe: Recipe) -> list[tuple[Step, str]]:
    models = recipe.models
    return [
        (Step.WRITE, models.writer),
        (Step.EDIT, models.editor),
        *((Step.JUDGE, judge) for judge in models.judges),
    ]


def _yield(recipe: Recipe, pilot: Pilot | None) -> CallEstimate:
    """The share of tasks that succeed; without a pilot between the recipe's floor and all of them."""
    if pilot is None:
        return CallEstimate(min(recipe.data.yield_floor, EXPECTED_YIELD), EXPECTED_YIELD, 1.0)
    low, high = wilson(pilot.succeeded, len(pilot.rounds))
    return CallEstimate(low, pilot.succeeded / len(pilot.rounds), high)


def _tried(recipe: Recipe, pilot: Pilot | None, most: int) -> CallEstimate:
    """Tasks of a part that are tried: all, or until enough succeed; a part below the yield floor ends earlier."""
    asked, floor = recipe.data.accepted_per_finding, recipe.data.yield_floor
    if asked is None:
        return CallEstimate(most, most, most)
    share = _yield(recipe, pilot)
    few, usual, many = (
        min(asked / max(rate, floor), most) if max(rate, floor) else most
        for rate in (share.high, share.expected, share.low)
    )
    return CallEstimate(few, usual, many)


def _cost(recipe: Recipe, pilot: Pilot | None, step: Step, model: str, calls: CallEstimate) -> CallEstimate:
    measured = pilot.cost_usd.get((step, model)) if pilot else None
    if measured is not None:
        return calls.times(measured)
    price = price_under(recipe.terms, model)
    if price is None or price == Price():
        return NOTHING
    each = typical_usage(recipe, step, model)
    return calls.times(
        *(share * (price.cost(usage) or 0.0) for share, usage in zip(SPREAD, each, strict=True))
    )


def typical_usage(recipe: Recipe, step: Step, model: str) -> tuple[Usage, Usage, Usage]:
    """Return a call's low, expected and high token usage; for edits it depends on image size and quality."""
    options = recipe.terms.options(model, ROLE_OF[step])
    usage = TYPICAL_USAGE[step]
    if step is not Step.EDIT:
        return usage, usage, usage
    few, usual, many = (
        replace(usage, output_tokens=tokens, output_image_tokens=tokens)
        for tokens in image_token_range(
            options.context.listed, options.get("image_size") or "", options.get("image_quality") or ""
        )
    )
    return few, usual, many


def _duration(recipe: Recipe, plan: BuildPlan, pilot: Pilot | None) -> CallEstimate:
    """Return the longest of: calls in flight, each provider's limits, and computation on this machine."""
    if any(recipe.terms.provider(model).in_jobs for _, model in plan.calls_by):
        rounds = CallEstimate(1.0, float(math.ceil(recipe.loop.max_rounds)), float(recipe.loop.max_rounds))
        waves = math.ceil(plan.tried.expected / recipe.limits.wave)
        jobs = len({step for step, _ in plan.calls_by})  # of a round, one after the other
        return rounds.times(*(waves * jobs * 3600.0 * hours for hours in BATCH_HOURS))
    waiting = computing = longest = NOTHING
    for (step, model), calls in plan.calls_by.items():
        seconds = _seconds(pilot, step, model, calls)
        waiting += seconds
        if _provider(model) in OPEN_MODELS:
            devices = max(1, len(devices_of(recipe.terms, model)))
            longest = longest.at_least(seconds.times(1.0 / devices))  # one after another on each device
        elif _provider(model) in ON_THIS_MACHINE:
            computing += seconds
    for model in dict.fromkeys(model for _, model in plan.calls_by):
        longest = longest.at_least(_by_limits(recipe, plan, model))
    concurrent = waiting.times(1.0 / recipe.limits.concurrency)
    cores = computing.times(1.0 / min(recipe.limits.concurrency, os.cpu_count() or 1))
    return longest.at_least(concurrent).at_least(cores)


def _seconds(pilot: Pilot | None, step: Step, model: str, calls: CallEstimate) -> CallEstimate:
    measured = pilot.latency_s.get((step, model)) if pilot else None
    if measured is not None:
        return calls.times(measured)
    if _provider(model) in OPEN_MODELS:
        return calls.times(*OPEN_LATENCY_S)
    guess = (LOCAL_LATENCY_S if _provider(model) in ON_THIS_MACHINE else HOSTED_LATENCY_S)[step]
    return calls.times(*(share * guess for share in SPREAD))


def _by_limits(recipe: Recipe, plan: BuildPlan, model: str) -> CallEstimate:
    """Seconds that a model's stated limits alone make its calls take."""
    section = recipe.terms.provider(model)
    result = requests = tokens = NOTHING
    for (step, name), calls in plan.calls_by.items():
        if name != model:
            continue
        requests += calls
        tokens += calls.times(*(usage.total_tokens for usage in typical_usage(recipe, step, model)))
    if section.requests_per_minute:
        result = result.at_least(requests.times(60.0 / section.requests_per_minute))
    if section.tokens_per_minute:
        result = result.at_least(tokens.times(60.0 / section.tokens_per_minute))
    return result


def forecast(recipe: Recipe, pilot: Path | None = None) -> tuple[BuildPlan, list[str]]:
    """Forecast a recipe; return the plan, and remarks on missing keys or an unsuitable editor. No model is called.

    Args:
        recipe: the recipe.
        pilot: folder of a run whose rates, costs and latencies to use.

    Raises:
        InputError: as `make_ready`, except for missing keys.
    """
    missing: list[str] = []
    ready = make_ready(recipe, missing=missing)
    with ready.catalogue:
        made = make_plan(recipe, ready.catalogue, ready.taxonomy, read_pilot(pilot) if pilot else None)
    remarks = [f"{line}; build needs it" for line in dict.fromkeys(missing)]
    editor = ready.method.editor
    if isinstance(editor, TakesRegion) and editor.takes_region:
        remarks.append(
            f"{recipe.models.editor} needs a region to edit, and a build has none: every edit would end as "
            "not_applicable. Measure it on a benchmark with regions by bench generate --editor, or choose another"
        )
    if recipe.loop.turns > 1:
        remarks.append(
            f"loop.turns = {recipe.loop.turns}: the plan is of the first turn; each accepted edit is edited up to "
            f"{counted(recipe.loop.turns - 1, 'time')} more"
        )
    return made, remarks
