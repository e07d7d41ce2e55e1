"""Reading verdicts of the journal: a row each, and one for every criterion and fact that the judge reported."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

import orjson

from plantain.journal.rows import StoredVerdict
from plantain.records import CriterionResult, Observations, Verdict

JUDGED_AGAIN = 10_000
"""Draws of a build's attempts from here on are of judges that were asked after the run; its own judges start at 0."""

PERSON = "person/"
"""Prefix of the code of a human reader who corrected a verdict. The correction is a verdict that never decides; the
latest of each reader counts."""

PUBLISHED = "published"
"""Metric under which an import keeps a published verdict, and its name where it is shown with those of judges."""

PUBLISHED_CRITERIA = {"structure_reasonable": "structural_plausibility", "looks_realistic": "realism"}
"""Med-Banana's names of two criteria (section 5.2), and ours."""

_KEY = "task, generation, round, judge, draw"


def published_verdict(
    scores: Iterable[tuple[str, float | None, Mapping[str, object]]],
) -> Verdict | None:
    """Return the published verdict among (metric, value, detail) of an attempt's scores, or None."""
    for metric, value, detail in scores:
        if metric == PUBLISHED:
            answers = {name: one for name, one in detail.items() if isinstance(one, bool)}
            criteria = {
                ours: CriterionResult(answers[name], None, (), "")
                for name, ours in PUBLISHED_CRITERIA.items()
                if name in answers
            }
            facts = {name: answers[name] for name in ("has_disease",) if name in answers}
            seen = Observations(criteria, facts, reason=str(detail.get("reason") or ""))
            decided = None if value is None else bool(value)
            return (
                None
                if decided is None and not answers
                else Verdict(PUBLISHED, seen, None, None, None, decided)
            )
    return None


def corrections_in(verdicts: Iterable[StoredVerdict]) -> list[StoredVerdict]:
    """Return the latest correction of each human reader on each attempt, from a task's verdicts."""
    latest: dict[tuple[int, int, str], StoredVerdict] = {}
    for stored in verdicts:
        if stored.verdict.judge.startswith(PERSON):
            key = (stored.generation, stored.round, stored.verdict.judge)
            if key not in latest or stored.draw > latest[key].draw:
                latest[key] = stored
    return list(latest.values())


def read_verdicts(
    connection: sqlite3.Connection, where: str, values: Iterable[str | int]
) -> Iterator[StoredVerdict]:
    """Return the verdicts to which a condition applies, by attempt; of an attempt the decisive one last."""
    bound = tuple(values)
    rows = connection.execute(
        f"SELECT {_KEY}, decisive, opinion, reason, qualified_all_pass, qualified_weighted, score, "
        f"qualified, differences FROM verdict WHERE {where} ORDER BY generation, round, decisive, judge, draw",
        bound,
    ).fetchall()
    found = connection.execute(
        f"SELECT {_KEY}, kind, name, passed, value, confidence, codes, c.reason FROM verdict "
        f"CROSS JOIN criterion c USING ({_KEY}) WHERE {where} ORDER BY {_KEY}, kind, place",
        bound,
    )
    results = {key: [row[5:] for row in own] for key, own in groupby(found, key=lambda row: row[:5])}
    for row in rows:
        yield _stored(row, results.get(row[:5], []))


def _stored(row: sqlite3.Row, results: list[tuple[str, str, int, float, float, str, str]]) -> StoredVerdict:
    criteria, facts = {}, {}
    for kind, name, passed, value, confidence, codes, reason in results:
        if kind == "fact":
            facts[name] = bool(value)
        else:
            codes_of = tuple(orjson.loads(codes))
            criteria[name] = CriterionResult(_decision(passed), confidence, codes_of, reason, value)
    seen = Observations(criteria, facts, _decision(row[6]), row[7], row[12])
    verdict = Verdict(row[3], seen, _decision(row[8]), _decision(row[9]), row[10], _decision(row[11]))
    return StoredVerdict(row[0], row[1], row[2], verdict, draw=row[4], decisive=bool(row[5]))


def _decision(value: int | None) -> bool | None:
    return None if value is None else bool(value)
