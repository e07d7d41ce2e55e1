"""The tables of a run, computed by SQL from its journal.

Every table is a pure function of a reader. Its docstring states whether it counts tasks or attempts. Attempts of
superseded generations are never counted; unscored values stay unscored, and the coverage is part of the table.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from plantain.journal.questions.status import BY_STEP, put_back
from plantain.journal.questions.units import NOTHING, rates, units
from plantain.journal.reader import JournalReader
from plantain.journal.verdicts import JUDGED_AGAIN, PUBLISHED
from plantain.metrics.statistics.clusters import Rate
from plantain.records import TaskState

CLOSED = "state IN ('success', 'failed')"

_DECISIONS = ("qualified", "qualified_all_pass", "qualified_weighted", "opinion", "opinion = qualified")
"""The decisions of a verdict, as SQL over `judged`."""
_CRITERIA = "judged CROSS JOIN criterion c USING (task, generation, round, judge, draw)"
_CODES = (
    f"SELECT c.name, e.value, count(*) FROM {_CRITERIA}, json_each(c.codes) e"
    " WHERE c.kind = 'criterion' AND c.passed = 0 GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2"
)


@dataclass(frozen=True, slots=True)
class CompositionRow:
    """One row of Table 1: numbers of tasks by state.

    Attributes:
        findings: number of different findings.
        rate: success / (success + failed).
        mean_rounds: mean number of rounds of the successful tasks; None without any.
    """

    modality: str
    direction: str
    findings: int
    success: int
    failed: int
    undecided: int
    not_applicable: int
    stopped: int
    pending: int
    rate: Rate
    mean_rounds: float | None

    @property
    def tasks(self) -> int:
        """The number of tasks in any state."""
        return self.success + self.failed + self.undecided + self.not_applicable + self.stopped + self.pending


@dataclass(frozen=True, slots=True)
class Composition:
    """Table 1: tasks per modality and direction (Med-Banana-50K, Table 1).

    Attributes:
        total: sum of all rows; `total.findings` counts distinct (modality, finding), its `mean_rounds` is weighted.
        mean_rounds_weighted: mean rounds of all successful tasks; the paper's total is the rows' unweighted mean.
        superseded_attempts: number of attempts that no table counts.
    """

    rows: tuple[CompositionRow, ...]
    total: CompositionRow
    mean_rounds_weighted: float | None
    mean_rounds_unweighted: float | None
    superseded_attempts: int


@dataclass(frozen=True, slots=True)
class CriterionRow:
    """One criterion of Table 2.

    Attributes:
        weight: weight in the score of an attempt.
        first_round, overall: share of judged attempts that pass, in round 1 and in all rounds.
        codes: (failure code, number of attempts), most frequent first.
    """

    criterion: str
    weight: float
    first_round: Rate
    overall: Rate
    codes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """Table 2: pass rates per criterion over attempts (Med-Banana-50K, Table 2).

    Attributes:
        criteria: one row each, by weight.
        qualified: attempts accepted by the run's policy; `all_pass` and `weighted`: by each policy.
        opinion: the judge's overall yes, if given; `opinion_agrees`: how often it equals the run's decision.
        attempts: attempts of current generations; `judged` of them have a verdict, `unjudged`: others by reason.
        put_back: the result of `status.put_back`.
        published: numbers of yes and of all answers in published verdicts, which count in no other number.
    """

    criteria: tuple[CriterionRow, ...]
    qualified: CriterionRow
    all_pass: Rate
    weighted: Rate
    opinion: Rate
    opinion_agrees: Rate
    attempts: int
    judged: int
    unjudged: tuple[tuple[str, int], ...]
    put_back: tuple[int, float, int]
    published: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RoundRow:
    """Closed tasks by round: one round.

    `at_risk` tasks were decided in this round, `success` of them with success (`hazard`: their share). `share` and
    `cumulative` are shares of all successes, `cumulative_tasks` of all tasks that succeeded or failed.
    """

    round: int
    at_risk: int
    success: int
    hazard: float | None
    share: float | None
    cumulative: float | None
    cumulative_tasks: float | None


@dataclass(frozen=True, slots=True)
class FindingRow:
    """Success of one finding in one direction.

    Attributes:
        success, failed, other: numbers of tasks that succeeded, failed, or have any other state.
        rate: success / (success + failed), in tasks.
        judged: number of judged attempts; qualified_weighted: share of these that the weighted policy accepts.
    """

    modality: str
    finding: str
    direction: str
    success: int
    failed: int
    other: int
    rate: Rate
    judged: int
    qualified_weighted: Rate


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """How calls of one step ended; a call that was retried counts once, by its last try."""

    step: str
    outcome: str
    calls: int


def table1(reader: JournalReader) -> Composition:
    """Compute Table 1 (Med-Banana-50K): numbers of tasks by modality, direction and state."""
    run = reader.connection.execute
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    rounds: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for modality, direction, state, n, total_rounds, known in run(
        "SELECT modality, direction, state, count(*), sum(round), sum(round > 0) FROM task WHERE kind = 'edit'"
        " GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    ):
        counts[modality, direction][state] += n
        if state == TaskState.SUCCESS:
            rounds[modality, direction] = [total_rounds, known]  # 0 where an imported release does not tell
    distinct = "SELECT DISTINCT modality, finding{} FROM task WHERE kind = 'edit'"
    findings = Counter((modality, way) for modality, _, way in run(distinct.format(", direction")))
    with units(reader):
        counted = f"sum(state = 'success'), count(*) FROM unit WHERE {CLOSED} GROUP BY"
        shares = rates(reader, f"SELECT modality, direction, {counted} modality, direction, cluster")
        whole = rates(reader, f"SELECT {counted} cluster").get((), NOTHING)
    rows = tuple(
        _composition_row(key, findings[key], counts[key], shares.get(key, NOTHING), _mean(*rounds[key]))
        for key in sorted(counts)
    )
    weighted = _mean(sum(r[0] for r in rounds.values()), sum(r[1] for r in rounds.values()))
    means = [row.mean_rounds for row in rows if row.mean_rounds is not None]
    total = sum(counts.values(), Counter[str]())
    names = len(run(distinct.format("")).fetchall())
    return Composition(
        rows=rows,
        total=_composition_row(("all", "both"), names, total, whole, weighted),
        mean_rounds_weighted=weighted,
        mean_rounds_unweighted=_mean(sum(means), len(means)),
        superseded_attempts=reader.attempt_count(superseded=True),
    )


def table2(reader: JournalReader, weights: Mapping[str, float]) -> Judged:
    """Compute Table 2 (Med-Banana-50K): pass rates of attempts by criterion. `weights` are the rubric's."""
    with units(reader):
        first, overall = (_pass_rates(reader, where) for where in ("round = 1", "true"))
        codes = tuple(reader.connection.execute(_CODES).fetchall())
    why = {name: tuple((code, n) for criterion, code, n in codes if criterion == name) for name in weights}
    attempts, judged, unjudged = _coverage(reader)
    return Judged(
        criteria=tuple(
            CriterionRow(name, weights[name], first[name], overall[name], why[name])
            for name in sorted(weights, key=lambda name: (-weights[name], name))
        ),
        qualified=CriterionRow(
            "qualified", sum(weights.values()), first["qualified"], overall["qualified"], ()
        ),
        all_pass=overall["qualified_all_pass"],
        weighted=overall["qualified_weighted"],
        opinion=overall["opinion"],
        opinion_agrees=overall["opinion = qualified"],
        attempts=attempts,
        judged=judged,
        unjudged=unjudged,
        put_back=put_back(reader),
        published=_published(reader),
    )


def _published(reader: JournalReader) -> tuple[tuple[str, int, int], ...]:
    rows = reader.connection.execute(
        "SELECT 'qualified', sum(value), count(value) FROM score WHERE metric = ?1 UNION ALL"
        " SELECT key, sum(j.value), count(*) FROM score, json_each(score.detail) j WHERE metric = ?1"
        " AND j.type IN ('true', 'false') AND key <> 'qualified' GROUP BY key",
        (PUBLISHED,),
    )
    return tuple((name, int(yes), n) for name, yes, n in rows if n)


def rounds_to_success(reader: JournalReader) -> tuple[RoundRow, ...]:
    """Count the rounds that successful tasks took, and the share of tasks in each round that succeed.

    A task that succeeded or failed in round R was decided in rounds 1 to R; a stopped or undecided one in rounds 1 to
    R - 1, as its last round was not decided. Pending and not applicable tasks are skipped.
    """
    decided: Counter[int] = Counter()
    success: Counter[int] = Counter()
    closed = 0
    for state, last, n in reader.connection.execute(
        "SELECT state, round, count(*) FROM task WHERE kind = 'edit'"
        " AND state IN ('success', 'failed', 'undecided', 'stopped') GROUP BY 1, 2"
    ):
        ruled = state in (TaskState.SUCCESS, TaskState.FAILED)
        decided[last if ruled else last - 1] += n
        if state == TaskState.SUCCESS:
            success[last] += n
        closed += n if ruled else 0
    total = success.total()
    rows = []
    for number in range(1, max([r for r in decided if decided[r]], default=0) + 1):
        at_risk = sum(n for last, n in decided.items() if last >= number)
        upto = sum(n for last, n in success.items() if last <= number)
        shares = (_mean(success[number], at_risk), _mean(success[number], total))
        rows.append(
            RoundRow(number, at_risk, success[number], *shares, _mean(upto, total), _mean(upto, closed))
        )
    return tuple(rows)


def by_finding(reader: JournalReader) -> tuple[FindingRow, ...]:
    """Count successful tasks by finding and direction, and the attempts that the weighted policy accepts (Figure 3)."""
    keys = "modality, finding, direction"
    run = reader.connection.execute
    with units(reader):
        tasks = rates(
            reader,
            f"SELECT {keys}, sum(state = 'success'), count(*) FROM unit WHERE {CLOSED} GROUP BY {keys}, cluster",
        )
        accepted = "sum(qualified_weighted), count(qualified_weighted)"
        weighted = rates(reader, f"SELECT {keys}, {accepted} FROM judged GROUP BY {keys}, cluster")
        counts = {tuple(key): n for *key, n in run(f"SELECT {keys}, count(*) FROM judged GROUP BY {keys}")}
    rows = []
    for *key, success, failed, other in run(
        f"SELECT {keys}, sum(state = 'success'), sum(state = 'failed'), sum(state NOT IN ('success', 'failed'))"
        f" FROM task WHERE kind = 'edit' GROUP BY {keys} ORDER BY {keys}"
    ):
        rate, heavy = (found.get(tuple(key), NOTHING) for found in (tasks, weighted))
        rows.append(FindingRow(*(*key, success, failed, other, rate, counts.get(tuple(key), 0), heavy)))
    return tuple(rows)


def call_outcomes(reader: JournalReader) -> tuple[OutcomeRow, ...]:
    """Count how the calls of current generations ended; of a call's tries only the one whose answer was used."""
    return tuple(
        OutcomeRow(step, outcome, n)
        for step, outcome, n in reader.connection.execute(
            "SELECT step, outcome, count(*) FROM call c JOIN task t ON t.id = c.task AND t.generation = c.generation"
            f" WHERE t.kind = 'edit' AND final = 1 AND draw < {JUDGED_AGAIN} GROUP BY 1, 2 ORDER BY {BY_STEP}, 2"
        )
    )


def _composition_row(
    key: tuple[str, str], findings: int, counts: Counter[str], rate: Rate, mean_rounds: float | None
) -> CompositionRow:
    states = {state.value: counts[state.value] for state in TaskState}
    modality, direction = key
    return CompositionRow(modality, direction, findings, rate=rate, mean_rounds=mean_rounds, **states)


def _pass_rates(reader: JournalReader, where: str) -> defaultdict[str, Rate]:
    """How often each decision and criterion was yes; undecided and unscored ones are not in its n."""
    found: defaultdict[str, Rate] = defaultdict(lambda: NOTHING)
    for decision in _DECISIONS:
        sql = f"SELECT sum({decision}), count({decision}) FROM judged WHERE {where} GROUP BY cluster"
        found[decision] = rates(reader, sql).get((), NOTHING)
    criteria = (
        f"SELECT c.name, sum(c.passed), count(*) FROM {_CRITERIA} WHERE c.kind = 'criterion'"
        f" AND c.passed IS NOT NULL AND {where} GROUP BY c.name, cluster"
    )
    return found | {name: rate for (name,), rate in rates(reader, criteria).items()}


def _coverage(reader: JournalReader) -> tuple[int, int, tuple[tuple[str, int], ...]]:
    """Attempts, how many are judged, and why the others are not."""
    judged = 0
    unjudged: Counter[str] = Counter()
    for edit, judge, has_verdict, published, n in reader.connection.execute(
        "SELECT a.edit_outcome, a.judge_outcome, EXISTS (SELECT 1 FROM verdict v WHERE v.task = a.task AND"
        " v.generation = a.generation AND v.round = a.round AND v.decisive = 1), EXISTS (SELECT 1 FROM score s WHERE"
        " s.task = a.task AND s.generation = a.generation AND s.round = a.round AND s.metric = 'published' AND"
        " s.value NOTNULL), count(*) FROM attempt a"
        " JOIN task t ON t.id = a.task AND t.generation = a.generation AND t.kind = 'edit' GROUP BY 1, 2, 3, 4"
    ):
        if has_verdict:
            judged += n
        elif edit is None:
            unjudged["not edited yet"] += n
        elif edit != "ok":
            unjudged[f"edit {edit}"] += n
        elif published:
            unjudged["published verdict only"] += n
        else:
            why = {None: "not judged yet", "ok": "verdict not published"}
            unjudged[why.get(judge, f"judge {judge}")] += n
    return judged + unjudged.total(), judged, tuple(sorted(unjudged.items()))


def _mean(total: float, n: int) -> float | None:
    return total / n if n else None
