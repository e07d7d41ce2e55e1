"""Compare judges on the same stored attempts: tallies of each judge, and flips between every two.

Tallies and flips are records as `judge rejudge --json` prints them; the page shows the same records.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from plantain.audit.images import cluster_of
from plantain.audit.rejudge import (
    JuryInRun,
    Rejudged,
    RejudgeRequest,
    StoredAttempt,
    chosen_attempts,
    repeated,
    stored_attempts,
    stored_juries,
)
from plantain.journal import JournalReader, JsonValue
from plantain.journal.questions.tasks import judged_again
from plantain.journal.verdicts import JUDGED_AGAIN, PUBLISHED, published_verdict
from plantain.metrics.statistics.agreement import cohen_kappa
from plantain.metrics.statistics.clusters import clustered_rate
from plantain.metrics.statistics.gap import shares
from plantain.records import InputError, Verdict
from plantain.rubrics import rubric_named

IN_RUN = "(in the run)"
"""Appended to the name of a judge whose verdict decided in the run."""

SHOWN = 12
"""Flips that are listed, of every two judges."""

QUALIFIED = "qualified"
"""The verdict, among the criteria."""

Record = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Answer:
    """A judge's answer on one attempt.

    Attributes:
        passed: True or False for "qualified" and for each criterion; None if unscored.
        values: the JSON value of each criterion: true, false, a number, or None if unscored.
        summaries: names of the criteria that decide on the whole edit, and so are no dimension of it.
    """

    passed: Mapping[str, bool | None]
    values: Mapping[str, bool | float | None] = field(default_factory=dict)
    summaries: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class JudgedAttempt:
    """One stored attempt and its judges' answers.

    Attributes:
        about: "id" (of the imported row, else of the task), "task", "round", "modality", "finding", "direction",
            "cluster", and the hashes "original" and "edited".
        key: task, generation and round.
        answers: the answer of each judge that has a verdict, by the judge's name.
    """

    about: Record
    key: tuple[str, int, int]
    answers: Mapping[str, Answer]

    @property
    def cluster(self) -> str:
        return str(self.about["cluster"])

    def passed(self, judge: str, criterion: str) -> bool | None:
        """Return True if a judge passed a criterion, False if it failed it; None without an answer."""
        return self.answers[judge].passed.get(criterion) if judge in self.answers else None

    def rows(self, judges: Sequence[str]) -> list[Record]:
        """Return one JSON record per judge: the attempt, the judge's verdict (None if missing) and criteria."""
        rows: list[Record] = []
        for judge in judges:
            answer = self.answers.get(judge, Answer({}))
            row: Record = {name: self.about[name] for name in ("id", "task", "round")} | {"judge": judge}
            rows.append(row | {"qualified": answer.passed.get(QUALIFIED), "criteria": {**answer.values}})
        return rows


def judged_attempts(reader: JournalReader, done: Rejudged, request: RejudgeRequest) -> list[JudgedAttempt]:
    """Return the attempts that the request chooses, and all others that another judge has judged before.

    Each contains the answers of all judges so far, the run's judge included, and the published verdict.

    Args:
        reader: journal of the run.
        done: the result of the rejudging.
        request: the request that it answered.
    """
    names = _stored_names(reader, done.juries)
    drawn = {one.key for one in chosen_attempts(reader, request)}
    wanted = drawn | judged_again(reader)
    summaries = _summaries(reader, done.juries)
    return [_judged(reader, names, summaries, one) for one in stored_attempts(reader) if one.key in wanted]


def _summaries(reader: JournalReader, asked: Sequence[JuryInRun]) -> dict[int, frozenset[str]]:
    """Return the criteria that decide on the whole edit, those of key "qualified", by each jury's first draw.

    A stored jury's rubric is found by its name; one of a user's file, not among those asked now, has none of them.
    """
    rubrics = {jury.draws[0]: jury.jury.rubric for jury in asked}
    for number, (_, _, rubric, *_) in enumerate(stored_juries(reader)):
        with contextlib.suppress(InputError):
            rubrics.setdefault(JUDGED_AGAIN * (number + 1), rubric_named(rubric))
    return {
        draw: frozenset(one.name for one in rubric.criteria if one.key == QUALIFIED)
        for draw, rubric in rubrics.items()
    }


def _stored_names(reader: JournalReader, asked: Sequence[JuryInRun]) -> dict[int, str]:
    """Return a name of its own for each jury by its first draw; those asked now keep theirs."""
    names = {jury.draws[0]: jury.name for jury in asked}
    for number, (name, _, _, *again) in enumerate(stored_juries(reader)):
        shown, draw = repeated(name, int(again[0]) if again else 1), JUDGED_AGAIN * (number + 1)
        if draw not in names:
            names[draw] = f"{shown} (jury {number + 1})" if shown in names.values() else shown
    return names


def _judged(
    reader: JournalReader,
    names: Mapping[int, str],
    summaries: Mapping[int, frozenset[str]],
    one: StoredAttempt,
) -> JudgedAttempt:
    (task_id, generation, round), task = one.key, one.task
    answers: dict[str, Answer] = {}
    for stored in reader.verdicts(task_id, generation):
        if stored.round == round and stored.draw in names:
            answers[names[stored.draw]] = _answer(stored.verdict, summaries.get(stored.draw, frozenset()))
        elif stored.round == round and stored.decisive:
            answers[f"{stored.verdict.judge} {IN_RUN}"] = _answer(stored.verdict)
    own = ""
    for score in reader.scores(task_id, generation):
        if (score.metric, score.round) == (PUBLISHED, round):
            own = str(score.detail.get("id", ""))
            published = published_verdict([(score.metric, score.score.value, score.detail)])
            if published is not None and published.qualified is not None:
                answers[PUBLISHED] = _answer(published)
    image = reader.image(task.image_id)
    about: Record = {
        "id": own or task_id,
        "task": task_id,
        "round": round,
        "modality": task.modality,
        "finding": task.finding,
        "direction": task.direction.value,
        "cluster": cluster_of(reader.image(image.origin)),
        "original": image.prepared_sha256,
        "edited": one.attempt.edited or "",
        "synthetic": image.synthetic,
    }
    return JudgedAttempt(about, one.key, answers)


def _answer(verdict: Verdict, summaries: frozenset[str] = frozenset()) -> Answer:
    results = verdict.observations.criteria
    passed = {name: result.passed for name, result in results.items()}
    values = {name: one.passed if one.value is None else one.value for name, one in results.items()}
    return Answer({QUALIFIED: verdict.qualified, **passed}, values, summaries)


def tallies(
    reader: JournalReader, attempts: Sequence[JudgedAttempt], done: Rejudged
) -> tuple[list[Record], list[Record]]:
    """Count verdicts by judge: return records of the requested judges (with calls and cost), and of all others."""
    asked = []
    for jury in done.juries:
        name = jury.name
        why = {reason: n for (judge, reason), n in done.unjudged.items() if judge == name}
        asked.append(_tally(attempts, name) | _bill(reader, attempts, jury) | {"unjudged": {**why}})
    names = {record["judge"] for record in asked}
    others = dict.fromkeys(judge for one in attempts for judge in one.answers if judge not in names)
    return asked, [_tally(attempts, judge) for judge in others]


def consistency(attempts: Sequence[JudgedAttempt]) -> list[Record]:
    """Measure how consistent each repeatedly asked judge is, by comparing every two of its repetitions.

    "identical": the same verdict and the same answer on every criterion; "one_dimension": otherwise different on at
    most one criterion (Med-Banana-50K, 4.3). A pair with an unscored criterion counts in neither, nor in `n`.
    """
    found: list[Record] = []
    repeats: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for one in attempts for name in one.answers):
        repeats.setdefault(re.sub(r", repeat \d+\Z", "", name), []).append(name)
    for judge, own in repeats.items():
        pairs = [
            (one.cluster, one.answers[a], one.answers[b])
            for one in attempts
            for a, b in combinations(own, 2)
            if a in one.answers and b in one.answers
        ]
        alike = [(cluster, *_difference(a, b)) for cluster, a, b in pairs if _whole(a) and _whole(b)]
        if len(own) > 1:
            found.append(
                {
                    "judge": judge,
                    "repeat": len(own),
                    "identical": _rate((cluster, same) for cluster, same, _ in alike),
                    "one_dimension": _rate((cluster, not same and n <= 1) for cluster, same, n in alike),
                    "unscored": len(pairs) - len(alike),
                }
            )
    return found


def _whole(answer: Answer) -> bool:
    return None not in answer.passed.values()


def _difference(a: Answer, b: Answer) -> tuple[bool, int]:
    """Return True if two answers are identical, and the number of dimensions on which they differ."""
    dimensions = a.passed.keys() - {QUALIFIED} - a.summaries
    different = sum(a.values.get(name) != b.values.get(name) for name in dimensions)
    return different == 0 and a.passed == b.passed, different


def _tally(attempts: Sequence[JudgedAttempt], judge: str) -> Record:
    own = [one for one in attempts if judge in one.answers]
    criteria = dict.fromkeys(name for one in own for name in one.answers[judge].passed)
    rates = {name: _rate((one.cluster, one.passed(judge, name)) for one in own) for name in criteria}
    verdicts = [one.passed(judge, QUALIFIED) for one in own]
    return {
        "judge": judge,
        "judged": len(own),
        "unscored": verdicts.count(None),
        "qualified": verdicts.count(True),
        "rate": {**rates.pop(QUALIFIED, _rate(()))},
        "criteria": {**rates},
    }


def _bill(reader: JournalReader, attempts: Sequence[JudgedAttempt], jury: JuryInRun) -> Record:
    """Return how many calls of a jury on these attempts were answered, and their known cost in dollars."""
    keys = {one.key for one in attempts}
    calls = [
        row
        for task in dict.fromkeys(one.key[0] for one in attempts)
        for row in reader.calls(task)
        if row.key.draw in jury.draws and (task, row.key.generation, row.key.round) in keys
    ]
    known = [row.cost_usd for row in calls if row.cost_usd is not None]
    return {"calls": sum(row.final for row in calls), "cost_usd": round(sum(known), 6) if known else None}


def flips(attempts: Sequence[JudgedAttempt], judges: Sequence[str]) -> list[Record]:
    """Count flips, the attempts on which two judges decide differently, for every two judges.

    The records are verdict and criteria, with kappa and the first flips. `rate` is the share of flips, with its
    interval over patients or images.
    """
    found = []
    for first, second in combinations(judges, 2):
        both = [one.answers for one in attempts if first in one.answers and second in one.answers]
        criteria = {name for own in both for name in own[first].passed.keys() & own[second].passed.keys()}
        for name in (QUALIFIED, *sorted(criteria - {QUALIFIED})):
            found.append(_flip(attempts, (first, second), name))
    return found


def _flip(attempts: Sequence[JudgedAttempt], judges: tuple[str, str], criterion: str) -> Record:
    first, second = judges
    answers = [(one, one.passed(first, criterion), one.passed(second, criterion)) for one in attempts]
    decided = [(one, a, b) for one, a, b in answers if a is not None and b is not None]
    counted = Counter((a, b) for _, a, b in decided)
    record: Record = {
        "first": first,
        "second": second,
        "criterion": criterion,
        "both": counted[True, True],
        "first_only": counted[True, False],
        "second_only": counted[False, True],
        "neither": counted[False, False],
        **_rate((one.cluster, a != b) for one, a, b in decided),
    }
    if not decided:
        return record
    attempts, a, b = zip(*decided, strict=True)
    kappa = cohen_kappa(a, b, categories=(False, True), clusters=[one.cluster for one in attempts])
    flipped = [
        one.about | {"by": first if passed else second} for one, passed, other in decided if passed != other
    ]
    record["kappa"] = {name: _round(getattr(kappa, name)) for name in ("value", "low", "high")}
    return record | {"kappa_reason": kappa.reason, "examples": [*flipped[:SHOWN]]}


def _rate(answers: Iterable[tuple[str, bool | None]]) -> Record:
    rate = clustered_rate(shares((cluster, yes) for cluster, yes in answers if yes is not None))
    return {"n": rate.n, "rate": _round(rate.value), "low": _round(rate.low), "high": _round(rate.high)}


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
