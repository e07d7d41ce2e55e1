"""Two wordings of a judge's prompts on the same stored attempts: what flips, how far they agree, what either costs.

The attempts are taken into a run of the comparison's own; the run that they come from is only read. Answers stay in
that folder, so that a third wording, or a larger sample, asks only for what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.audit.rejudging.rejudge import check_rejudgeable, policy_of
from plantain.audit.rejudging.stored import SeatedJury, StoredAttempt, StoredJudging, seat, stored_attempts
from plantain.audit.rejudging.wordings import Wording, juries_of, without_prompts
from plantain.findings import load_taxonomy
from plantain.journal import Journal, JournalReader, JsonValue, RecordedTask
from plantain.journal.verdicts import JUDGED_AGAIN
from plantain.metrics.statistics.agreement import Agreement, cohen_kappa
from plantain.records import InputError, Verdict
from plantain.rubrics import recorded
from plantain.runs.door import Beginning, Door
from plantain.runs.observer import SILENT, ProgressObserver
from plantain.runs.settings.terms import Terms
from plantain.runs.summary import RunSummary


@dataclass(frozen=True, slots=True)
class ComparedAttempt:
    """One attempt under both wordings; None where a judge gave no report."""

    stored: StoredAttempt
    cluster: str
    before: bool | None
    first: Verdict | None
    second: Verdict | None

    @property
    def flips(self) -> bool:
        """Whether one wording lets it through and the other does not."""
        both = self.first is not None and self.second is not None
        return both and self.first.qualified != self.second.qualified  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class PassCounts:
    """A yes or no under both wordings, over the attempts that both judged.

    Attributes:
        first, second: how often it is yes.
        to_yes, to_no: how often the second says yes where the first says no, and the other way round.
        agreement: Cohen's kappa with its interval over patients, or images where no patient is known.
    """

    first: int
    second: int
    to_yes: int
    to_no: int
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class PromptComparison:
    """What came of a comparison.

    Attributes:
        judge: who judged.
        names: of the two wordings.
        attempts: in order; `sampled` of them were asked for, the others wait.
        cost_usd: of each wording's calls on these attempts, as far as known; `calls` how many were answered.
        summary: of this process.
    """

    judge: str
    names: tuple[str, str]
    sampled: int
    attempts: tuple[ComparedAttempt, ...]
    cost_usd: tuple[float | None, float | None]
    calls: tuple[int, int]
    unjudged: Mapping[str, int]
    summary: RunSummary

    @property
    def both(self) -> list[tuple[ComparedAttempt, Verdict, Verdict]]:
        """The attempts that both wordings judged."""
        return [(one, one.first, one.second) for one in self.attempts if one.first and one.second]

    def qualified(self) -> PassCounts:
        """Whether the run's policy lets an attempt through."""
        return self._counts(lambda verdict: bool(verdict.qualified))

    def criteria(self) -> dict[str, PassCounts]:
        """Each criterion of the rubric; one that is unscored has not passed."""
        names = dict.fromkeys(name for _, first, _ in self.both for name in first.observations.criteria)
        return {
            name: self._counts(lambda verdict, name=name: bool(verdict.observations.criteria[name].passed))  # type: ignore[misc]
            for name in names
        }

    def _counts(self, passed: Callable[[Verdict], bool]) -> PassCounts:
        pairs = [(passed(first), passed(second)) for _, first, second in self.both]
        ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
        clusters = [one.cluster for one, _, _ in self.both]
        agreement = cohen_kappa(ours, theirs, categories=(False, True), clusters=clusters)
        return PassCounts(
            sum(ours), sum(theirs), sum(b > a for a, b in pairs), sum(a > b for a, b in pairs), agreement
        )

    def as_json(self) -> dict[str, JsonValue]:
        """For scripts: counts, agreement, cost, and every attempt that flips."""
        first, second = self.names
        return {
            "judge": self.judge,
            "a": first,
            "b": second,
            "sampled": self.sampled,
            "judged_by_both": len(self.both),
            "not_judged": dict(self.unjudged),
            "qualified": _counts_json(self.qualified()),
            "criteria": {name: _counts_json(counts) for name, counts in self.criteria().items()},
            "cost_usd": {"a": self.cost_usd[0], "b": self.cost_usd[1]},
            "calls": {"a": self.calls[0], "b": self.calls[1]},
            "flips": [
                {
                    "task": one.stored.task.id,
                    "generation": one.stored.attempt.generation,
                    "round": one.stored.attempt.round,
                    "finding": one.stored.task.finding,
                    "direction": one.stored.task.direction.value,
                    "recorded": one.before,
                    "a": ours.qualified,
                    "b": theirs.qualified,
                    "criteria": changed(ours, theirs),
                }
                for one, ours, theirs in self.both
                if one.flips
            ],
            "stopped": self.summary.stopped,
        }


def changed(first: Verdict, second: Verdict) -> list[JsonValue]:
    """The criteria on which two verdicts differ."""
    theirs = second.observations.criteria
    return [
        name for name, result in first.observations.criteria.items() if result.passed != theirs[name].passed
    ]


def _counts_json(counts: PassCounts) -> dict[str, JsonValue]:
    agreement = counts.agreement
    return {
        "a": counts.first,
        "b": counts.second,
        "to_yes": counts.to_yes,
        "to_no": counts.to_no,
        "kappa": agreement.value,
        "low": agreement.low,
        "high": agreement.high,
        "same": agreement.observed,
        "reason": agreement.reason,
    }


def judge_recorded(on: Path) -> str:
    """The judges that a run was built with, by name. Raises InputError for a run that names none."""
    with JournalReader.open(on) as reader:
        models = reader.header.frozen.get("models")
    named = models.get("judge") if isinstance(models, dict) else None
    if not isinstance(named, list) or not named:
        raise InputError(f"{on}: names no judge; choose one with --judge")
    return ",".join(map(str, named))


async def compare_prompts(
    on: Path,
    first: Wording,
    second: Wording,
    *,
    judge: str,
    terms: Terms,
    run: Path,
    sample: int | None = None,
    retry: bool = False,
    observer: ProgressObserver = SILENT,
) -> PromptComparison:
    """Has the same stored attempts judged under two sets of prompts.

    Args:
        on: the run whose attempts are judged; only read.
        first, second: the prompts.
        judge: "provider/model", or several with commas between.
        terms: limits, providers and consent.
        run: the comparison's own folder, made or resumed.
        sample: so many attempts, drawn by the run's seed; None for all.
        retry: ask again where the judge gave no report before.
        observer: told how it goes on.

    Raises:
        InputError: nothing to judge, no such judge, the same prompts twice, or a folder that holds something else.
    """
    terms = without_prompts(terms)
    with JournalReader.open(on) as source:
        check_rejudgeable(source)
        frozen, seed, run_id = source.header.frozen, source.header.seed, source.header.run_id
        rubric, (policy, threshold) = recorded(frozen), policy_of(frozen, recorded(frozen))
        wanted = list(stored_attempts(source, sample, seed))
        door = Door(terms)
        door.check(images=[source.image(image) for image in {one.task.image_id for one in wanted}])
        juries = juries_of(door, judge, rubric, (first, second))
        begun = Beginning("prompts", seed, {"kind": "prompts", "on": run_id})
        async with door.open(run, begun, observer=observer) as opened:
            seated = await seat(opened.journal, juries)
            await _take_in(opened.journal, source, wanted)
            judging = StoredJudging(opened, load_taxonomy(), policy, threshold, retry, paired=True)
            observer.begun("attempts judged", len(wanted) * len(seated))

            async def carry(item: tuple[StoredAttempt, SeatedJury]) -> None:
                opened.summary.judged += await judging.judge(*item)
                observer.advanced(1)

            await opened.walk(_by_attempt(wanted, seated), carry)
            reader = opened.journal.reader
            attempts = tuple(_compared(reader, one, seated) for one in wanted)
            bills = [_bill(reader, wanted, jury) for jury in seated]
    unjudged = {jury.jury.name: sum(judging.why_not(jury.jury.name).values()) for jury in seated}
    return PromptComparison(
        judge,
        (first.name, second.name),
        len(wanted),
        attempts,
        (bills[0][0], bills[1][0]),
        (bills[0][1], bills[1][1]),
        unjudged,
        opened.summary,
    )


def _by_attempt(
    wanted: Sequence[StoredAttempt], seated: Sequence[SeatedJury]
) -> Iterator[tuple[StoredAttempt, SeatedJury]]:
    for one in wanted:
        for jury in seated:
            yield one, jury


async def _take_in(journal: Journal, source: JournalReader, wanted: Sequence[StoredAttempt]) -> None:
    """Copies the tasks of these attempts whole, with pictures and verdicts, so that a larger sample fits beside."""
    for task_id in dict.fromkeys(one.task.id for one in wanted):
        row = source.task(task_id)
        image = source.image(row.task.image_id)
        if source.has_blob(image.prepared_sha256):
            blob = journal.put_blob(source.read_blob(image.prepared_sha256), "image/jpeg")
            await journal.add_images([(image, blob)])
        attempts = [
            replace(attempt, raw=None, mask=None)
            for attempt in source.attempts(task_id)
            if attempt.edited and source.has_blob(attempt.edited)
        ]
        blobs = [
            journal.put_blob(source.read_blob(attempt.edited or ""), "image/jpeg") for attempt in attempts
        ]
        kept = {(attempt.generation, attempt.round) for attempt in attempts}
        verdicts = [
            stored
            for stored in source.verdicts(task_id)
            if stored.draw < JUDGED_AGAIN and (stored.generation, stored.round) in kept
        ]
        await journal.add_recorded([RecordedTask(row, tuple(attempts), tuple(verdicts), (), tuple(blobs))])


def _compared(reader: JournalReader, one: StoredAttempt, seated: Sequence[SeatedJury]) -> ComparedAttempt:
    task_id, generation, round = one.key
    verdicts = [stored for stored in reader.verdicts(task_id, generation) if stored.round == round]
    before = next((stored.verdict.qualified for stored in verdicts if stored.decisive), None)
    ours, theirs = (
        next(
            (s.verdict for s in verdicts if (s.verdict.judge, s.draw) == (jury.jury.name, jury.draw)),
            None,
        )
        for jury in seated
    )
    image = reader.image(one.task.image_id)
    return ComparedAttempt(one, image.group or image.id, before, ours, theirs)


def _bill(
    reader: JournalReader, wanted: Sequence[StoredAttempt], jury: SeatedJury
) -> tuple[float | None, int]:
    """Dollars and answers of one jury's calls on these attempts; None where no price is known."""
    rounds = {one.key for one in wanted}
    calls = [
        row
        for task_id in dict.fromkeys(one.task.id for one in wanted)
        for row in reader.calls(task_id)
        if (task_id, row.key.generation, row.key.round) in rounds
        and jury.draw <= row.key.draw < jury.draw + JUDGED_AGAIN
    ]
    known = [row.cost_usd for row in calls if row.cost_usd is not None]
    return (sum(known) if known else None), sum(row.final for row in calls)
