"""A pilot: its tasks, its numbers, and the decision to start the whole build or not."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from plantain.catalogue.groups import Groups
from plantain.journal import JournalReader, TaskRow
from plantain.journal.cards import standings_of
from plantain.journal.questions.accepted import Part, count_parts, ids_of_part
from plantain.metrics.statistics.clusters import Rate, clustered_rate
from plantain.metrics.statistics.gap import shares
from plantain.pages.wording import DASH
from plantain.pipeline.forecast import BuildPlan, three
from plantain.records import InputError, SourceImage, TaskState
from plantain.records.judging import NOT_VALIDATED
from plantain.records.messages import counted
from plantain.records.tasks import shared_out

FEWEST = 10
"""Judged tasks below which nothing is decided: the 95 % interval of a rate is then wider than half of all rates."""

LEAST_QUALIFIED = 0.25
"""Stop if the whole interval of the rate is below this: more than four tasks, of up to five rounds each, for one edit
that qualifies. The published build had 0.57 (Med-Banana-50K, 3)."""

MOST_STOPPED = 0.10
"""Share of tasks that ended in a refusal or fault: above it, fix models or settings first."""

MOST_UNDECIDED = 0.50
"""Share of tasks on which the judge cannot tell: above it, the plan needs another judge."""

MOST_NOT_APPLICABLE = 0.50
"""Share of tasks that cannot be shown on their image: above it, the plan is mostly about other images."""

FEWEST_OF_FINDING = 3
"""Judged tasks of a finding and direction from which it can be found not to work: none qualified, or the interval of
their rate below `LEAST_QUALIFIED`."""

MOST_FAILING = 0.50
"""Share of the plan's tasks that are of findings that do not work."""


def drawn_tasks(reader: JournalReader, most: int) -> list[str]:
    """Choose up to `most` tasks, spread evenly over findings and directions, and always the same; return sorted ids."""
    places = shared_out(_planned(reader), most)
    # Ids are hashes, so the first ones are a draw that never changes.
    return sorted(task for part, n in places.items() if n for task in sorted(ids_of_part(reader, part))[:n])


def _planned(reader: JournalReader) -> dict[Part, int]:
    """Return the number of tasks of each part of the plan, in order."""
    return {part: count.tasks for part, count in sorted(count_parts(reader).items())}


def drawn_pending(reader: JournalReader, most: int) -> Iterator[TaskRow]:
    """Iterate over the pending ones among the pilot's `most` tasks, which `drawn_tasks` chooses."""
    rows = (reader.task(task) for task in drawn_tasks(reader, most))
    return (row for row in rows if row.state is TaskState.PENDING)


@dataclass(frozen=True, slots=True)
class PilotPart:
    """The results of a pilot for one finding and direction.

    Attributes:
        planned: number of such tasks in the whole plan.
        tasks: number of them in the pilot.
        states: number of tasks by state.
        rate: share of successes among the tasks that ended in success or failed.
    """

    modality: str
    finding: str
    direction: str
    planned: int
    tasks: int
    states: Mapping[str, int]
    rate: Rate

    @property
    def standing(self) -> str:
        """The pilot's conclusion for the finding: "works", "does not work", or "too few to say"."""
        if self.rate.n < FEWEST_OF_FINDING:
            return "too few to say"
        never = self.rate.successes == 0
        low = self.rate.high is not None and self.rate.high < LEAST_QUALIFIED
        return "does not work" if never or low else "works"


@dataclass(frozen=True, slots=True)
class PilotNumbers:
    """The results of the pilot's tasks.

    Attributes:
        asked: number of the pilot's tasks; `states` counts them by state.
        parts: results by finding and direction.
        qualified: successes of successes and failures; `stopped`, `undecided`, `not_applicable`: of all closed tasks.
        forecast: forecast for the whole plan by the pilot's rates.
        believed: True if all judges were shown to be reliable.
        why_stopped: (reason, number of tasks) for the commonest reasons why tasks stopped.
    """

    asked: int
    states: dict[str, int]
    parts: tuple[PilotPart, ...]
    qualified: Rate
    stopped: Rate
    undecided: Rate
    not_applicable: Rate
    forecast: BuildPlan
    believed: bool
    why_stopped: tuple[tuple[str, int], ...] = ()


def pilot_numbers(reader: JournalReader, tasks: Sequence[str], forecast: BuildPlan) -> PilotNumbers:
    """Compute the pilot's results from these tasks."""
    rows = [reader.task(task) for task in tasks]
    closed = [row for row in rows if row.state is not TaskState.PENDING]
    judged = [row for row in rows if row.state in (TaskState.SUCCESS, TaskState.FAILED)]
    images = list(_images(reader, {row.task.image_id for row in closed}))
    groups = Groups(images)
    cluster = {row.task.image_id: row.task.image_id for row in rows}
    cluster |= {image.id: groups.group(image) for image in images}
    standings = standings_of(reader)
    stopped = Counter(row.reason for row in rows if row.state is TaskState.STOPPED)
    return PilotNumbers(
        asked=len(rows),
        states=dict(Counter(row.state.value for row in rows)),
        parts=tuple(_part(key, n, rows, cluster) for key, n in _planned(reader).items()),
        qualified=_rate(judged, cluster, TaskState.SUCCESS),
        stopped=_rate(closed, cluster, TaskState.STOPPED),
        undecided=_rate(closed, cluster, TaskState.UNDECIDED),
        not_applicable=_rate(closed, cluster, TaskState.NOT_APPLICABLE),
        forecast=forecast,
        believed=bool(standings) and all(one.qualifies for one in standings),
        why_stopped=tuple(stopped.most_common(5)),
    )


def _part(
    key: tuple[str, str, str], planned: int, rows: Sequence[TaskRow], cluster: Mapping[str, str]
) -> PilotPart:
    own = [row for row in rows if (row.task.modality, row.task.finding, row.task.direction.value) == key]
    judged = [row for row in own if row.state in (TaskState.SUCCESS, TaskState.FAILED)]
    states = dict(Counter(row.state.value for row in own))
    return PilotPart(*key, planned, len(own), states, _rate(judged, cluster, TaskState.SUCCESS))


def _rate(rows: Sequence[TaskRow], cluster: Mapping[str, str], state: TaskState) -> Rate:
    return clustered_rate(shares((cluster[row.task.image_id], row.state is state) for row in rows))


def _images(reader: JournalReader, names: Collection[str]) -> Iterator[SourceImage]:
    """Those that the run has: an image is copied into it when a task first needs it."""
    for name in sorted(names):
        with contextlib.suppress(InputError):
            yield reader.image(name)


@dataclass(frozen=True, slots=True)
class PilotDecision:
    """The decision on the whole build: `go` is True to start it; `why` are reasons against it, `mind` are cautions."""

    go: bool
    why: tuple[str, ...]
    mind: tuple[str, ...]

    @property
    def word(self) -> str:
        return "go" if self.go else "stop"


def decide_pilot(numbers: PilotNumbers, budget_usd: float | None) -> PilotDecision:
    """Decide by this module's constants if the whole plan should be built, with one line for every reason.

    `budget_usd` is the budget of the whole plan in US dollars; None without one.
    """
    rate, whole = numbers.qualified, numbers.forecast
    why, mind = list[str](), list[str]()
    if pending := numbers.states.get(TaskState.PENDING.value, 0):
        why.append(f"{pending} of {counted(numbers.asked, 'task')} of the pilot still to be done")
    if rate.n < FEWEST:
        why.append(f"only {counted(rate.n, 'task')} judged; at least {FEWEST} say something")
    elif rate.high is not None and rate.high < LEAST_QUALIFIED:
        why.append(f"{_in_words(rate)} qualify: all of the interval is below {LEAST_QUALIFIED:.0%}")
    if _above(numbers.stopped, MOST_STOPPED):
        reasons = "; ".join(f"{n} x {reason}" for reason, n in numbers.why_stopped if reason)
        why.append(f"{_in_words(numbers.stopped)} of the tasks stopped{f': {reasons}' if reasons else ''}")
    if _above(numbers.undecided, MOST_UNDECIDED):
        why.append(f"the judge cannot decide on {_in_words(numbers.undecided)} of the tasks")
    if _above(numbers.not_applicable, MOST_NOT_APPLICABLE):
        why.append(f"{_in_words(numbers.not_applicable)} of the tasks cannot be shown on their image")
    failing = [part for part in numbers.parts if part.standing == "does not work"]
    share = sum(part.planned for part in failing) / max(1, sum(part.planned for part in numbers.parts))
    names = ", ".join(f"{part.direction} {part.finding}" for part in failing)
    if failing and share > MOST_FAILING:
        why.append(f"{share:.0%} of the plan are tasks that do not work with these models: {names}")
    elif failing:
        mind.append(f"leave out what does not work with these models: {names}")
    if budget_usd is not None and whole.cost_usd is not None and whole.cost_usd.expected > budget_usd:
        why.append(
            f"the whole is expected to cost ${whole.cost_usd.expected:,.2f}; limits.budget_usd is {budget_usd:g}"
        )
    if not numbers.believed:
        mind.append(f"{NOT_VALIDATED}: the rates are its own opinion")
    if whole.cost_usd is None:
        mind.append(f"the cost is not known: no price for {', '.join(whole.unpriced)}")
    return PilotDecision(not why, tuple(why), tuple(mind))


def _above(rate: Rate, most: float) -> bool:
    return rate.value is not None and rate.value > most


def _in_words(rate: Rate) -> str:
    between = "" if rate.low is None or rate.high is None else f", {rate.low:.0%} to {rate.high:.0%}"
    return f"{rate.successes} of {rate.n} ({rate.successes / max(1, rate.n):.0%}{between})"


def pilot_document(numbers: PilotNumbers, decision: PilotDecision) -> dict[str, object]:
    """Return the dictionary that `plantain build --pilot --json` prints."""
    whole = numbers.forecast
    return {
        "decision": decision.word,
        "why": list(decision.why),
        "mind": list(decision.mind),
        "tasks": {"asked": numbers.asked, **numbers.states},
        **{
            name: rate_json(getattr(numbers, name))
            for name in ("qualified", "stopped", "undecided", "not_applicable")
        },
        "whole": {
            "tasks": whole.tasks,
            "success": three(whole.success),
            "cost_usd": three(whole.cost_usd),
            "duration_s": three(whole.duration_s),
        },
        "findings": [
            {**asdict(part), "rate": rate_json(part.rate), "standing": part.standing}
            for part in numbers.parts
        ],
    }


def rate_json(rate: Rate) -> dict[str, float | int | None]:
    """Return a rate for JSON: "n", and "rate", "low" and "high" in [0, 1], None if unknown."""
    return {"n": rate.n, "rate": rate.value, "low": rate.low, "high": rate.high}


def interval(rate: Rate) -> str:
    """Format a rate's interval in per cent, such as "41 to 78 %"; a dash if it has none."""
    if rate.low is None or rate.high is None:
        return DASH
    return f"{100 * rate.low:.0f} to {100 * rate.high:.0f} %"
