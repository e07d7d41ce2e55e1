"""A pilot: its tasks, its numbers, and the decision to start the whole build or not."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from plantain.catalogue.groups import Groups
from plantain.journal import JournalReader, TaskRow
from plantain.journal.cards import standings_of
from plantain.journal.questions.accepted import count_parts, ids_of_part
from plantain.metrics.statistics.clusters import Rate, clustered_rate
from plantain.metrics.statistics.gap import shares
from plantain.pipeline.forecast import BuildPlan
from plantain.records import InputError, SourceImage, TaskState
from plantain.records.judging import NOT_VALIDATED
from plantain.records.messages import counted
from plantain.records.tasks import shared_out

FEWEST = 10
"""Judged tasks below which nothing is decided: the 95 % interval of a rate is then wider than half of all rates."""

LEAST_QUALIFIED = 0.25
"""Stop if the whole interval of the rate is below this: more than four tasks, of up to five rounds each, for one edit
that qualifies. The published build had 0.57 (Med-Banana-50K, 3)."""

MOST = {
    "stopped": (0.10, "stopped"),
    "undecided": (0.50, "are undecided"),
    "not_applicable": (0.50, "cannot be shown on their image"),
}
"""State -> the largest share of tasks that may end so, in words. Above it, first fix models or settings, choose another
judge, or plan other images."""


def drawn_tasks(reader: JournalReader, most: int) -> list[str]:
    """Choose up to `most` tasks, spread evenly over findings and directions, and always the same; return sorted ids."""
    sizes = {part: count.tasks for part, count in sorted(count_parts(reader).items())}
    places = shared_out(sizes, most)
    # Ids are hashes, so the first ones are a draw that never changes.
    return sorted(task for part, n in places.items() if n for task in sorted(ids_of_part(reader, part))[:n])


def drawn_pending(reader: JournalReader, most: int) -> Iterator[TaskRow]:
    """Iterate over the pending ones among the pilot's `most` tasks, which `drawn_tasks` chooses."""
    rows = (reader.task(task) for task in drawn_tasks(reader, most))
    return (row for row in rows if row.state is TaskState.PENDING)


@dataclass(frozen=True, slots=True)
class PilotNumbers:
    """The results of the pilot's tasks.

    Attributes:
        asked: number of the pilot's tasks; `states` counts them by state.
        rates: "qualified": successes of successes and failures; "stopped", "undecided", "not_applicable": of all closed
            tasks.
        forecast: forecast for the whole plan by the pilot's rates.
        believed: True if all judges were shown to be reliable.
    """

    asked: int
    states: dict[str, int]
    rates: dict[str, Rate]
    forecast: BuildPlan
    believed: bool


def pilot_numbers(reader: JournalReader, tasks: Sequence[str], forecast: BuildPlan) -> PilotNumbers:
    """Compute the pilot's results from these tasks."""
    rows = [reader.task(task) for task in tasks]
    closed = [row for row in rows if row.state is not TaskState.PENDING]
    judged = [row for row in rows if row.state in (TaskState.SUCCESS, TaskState.FAILED)]
    images = list(_images(reader, {row.task.image_id for row in closed}))
    groups = Groups(images)
    cluster = {row.task.image_id: row.task.image_id for row in rows}
    cluster |= {image.id: groups.group(image) for image in images}

    def rate(of: Sequence[TaskRow], state: TaskState) -> Rate:
        return clustered_rate(shares((cluster[row.task.image_id], row.state is state) for row in of))

    unsuccessful = (TaskState.STOPPED, TaskState.UNDECIDED, TaskState.NOT_APPLICABLE)
    standings = standings_of(reader)
    return PilotNumbers(
        asked=len(rows),
        states=dict(Counter(row.state.value for row in rows)),
        rates={"qualified": rate(judged, TaskState.SUCCESS)}
        | {state.value: rate(closed, state) for state in unsuccessful},
        forecast=forecast,
        believed=bool(standings) and all(one.qualifies for one in standings),
    )


def _images(reader: JournalReader, names: Collection[str]) -> Iterator[SourceImage]:
    """Those that the run has: an image is copied into it when a task first needs it."""
    for name in sorted(names):
        with contextlib.suppress(InputError):
            yield reader.image(name)


def decide_pilot(numbers: PilotNumbers, budget_usd: float | None) -> tuple[list[str], list[str]]:
    """Decide by this module's constants if the whole plan should be built: yes, if no reason is against it.

    Args:
        budget_usd: the budget of the whole plan in US dollars; None without one.

    Returns:
        The reasons against it, and cautions, a line each.
    """
    rates, whole = numbers.rates, numbers.forecast
    rate = rates["qualified"]
    why, mind = list[str](), list[str]()
    if pending := numbers.states.get(TaskState.PENDING.value, 0):
        why.append(f"{pending} of {counted(numbers.asked, 'task')} of the pilot still to be done")
    if rate.n < FEWEST:
        why.append(f"only {counted(rate.n, 'task')} judged; at least {FEWEST} say something")
    elif rate.high is not None and rate.high < LEAST_QUALIFIED:
        why.append(f"{in_words(rate)} qualify: all of the interval is below {LEAST_QUALIFIED:.0%}")
    for name, (most, words) in MOST.items():
        if (rates[name].value or 0.0) > most:
            why.append(f"{in_words(rates[name])} of the tasks {words}")
    if budget_usd is not None and whole.cost_usd is not None and whole.cost_usd.expected > budget_usd:
        why.append(
            f"the whole is expected to cost ${whole.cost_usd.expected:,.2f}; limits.budget_usd is {budget_usd:g}"
        )
    if not numbers.believed:
        mind.append(f"{NOT_VALIDATED}: the rates are its own opinion")
    if whole.cost_usd is None:
        mind.append(f"the cost is not known: no price for {', '.join(whole.unpriced)}")
    return why, mind


def in_words(rate: Rate) -> str:
    """Format a rate with its 95 % interval, if it has one, e.g. "12 of 20 (60%, 39% to 78%)"."""
    between = "" if rate.low is None or rate.high is None else f", {rate.low:.0%} to {rate.high:.0%}"
    return f"{rate.successes} of {rate.n} ({rate.successes / max(1, rate.n):.0%}{between})"
