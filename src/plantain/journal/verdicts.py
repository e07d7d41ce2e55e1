"""Verdicts in the journal: one row each, and one for every criterion and fact that the judge reported."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

import orjson

from plantain.journal.payload import clean_text
from plantain.journal.rows import StoredVerdict
from plantain.records import CriterionResult, Observations, Verdict

VERDICTS = """
CREATE TABLE verdict(
  task TEXT NOT NULL, generation INTEGER NOT NULL, round INTEGER NOT NULL,
  judge TEXT NOT NULL, draw INTEGER NOT NULL, decisive INTEGER NOT NULL,
  opinion INTEGER, reason TEXT NOT NULL, differences TEXT NOT NULL DEFAULT '',
  qualified_all_pass INTEGER, qualified_weighted INTEGER, score REAL, qualified INTEGER,
  PRIMARY KEY (task, generation, round, judge, draw),
  FOREIGN KEY (task, generation, round) REFERENCES attempt(task, generation, round)
) STRICT, WITHOUT ROWID;

CREATE TABLE criterion(
  task TEXT NOT NULL, generation INTEGER NOT NULL, round INTEGER NOT NULL,
  judge TEXT NOT NULL, draw INTEGER NOT NULL, name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('criterion', 'fact')), place INTEGER NOT NULL,
  passed INTEGER, value REAL, confidence REAL,
  codes TEXT NOT NULL DEFAULT '[]', reason TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (task, generation, round, judge, draw, name),
  FOREIGN KEY (task, generation, round, judge, draw) REFERENCES verdict(task, generation, round, judge, draw)
) STRICT, WITHOUT ROWID;
"""
"""A decision of a verdict is null if undecided. A criterion has `passed`, a `value` where its scale is one of numbers,
and neither where it is unscored; `reason` is the judge's evidence, or why there is no score. A fact, which decides
nothing, has its yes or no as `value`."""

FROM_COLUMNS = f"""
ALTER TABLE verdict RENAME TO verdict_3;
{VERDICTS}
INSERT INTO verdict SELECT task, generation, round, judge, draw, decisive, opinion,
  json_text(observations, 'reason'), '', qualified_all_pass, qualified_weighted, score, qualified FROM verdict_3;
INSERT INTO criterion SELECT v.task, v.generation, v.round, v.judge, v.draw, c.key, 'criterion',
  (SELECT count(*) FROM json_each(v.observations, '$.criteria') b WHERE b.id < c.id),
  json_extract(c.value, '$.passed'), NULL, json_extract(c.value, '$.confidence'),
  json_extract(c.value, '$.codes'), json_text(c.value, 'evidence')
  FROM verdict_3 v, json_each(v.observations, '$.criteria') c;
INSERT INTO criterion(task, generation, round, judge, draw, name, kind, place, value)
  SELECT task, generation, round, judge, draw, 'has_disease', 'fact', 0, has_disease FROM verdict_3
  UNION ALL SELECT task, generation, round, judge, draw, 'other_disease', 'fact', 1, other_disease FROM verdict_3;
DROP TABLE verdict_3;
"""
"""From version 3, which had a column for each of Med-Banana's four criteria and the whole report as JSON."""


def json_text(text: str, key: str) -> str:
    """A string of a JSON object, for use in SQL, whose own functions end a string at an escaped NUL."""
    return str(orjson.loads(text)[key])


JUDGED_AGAIN = 10_000
"""Draws of a build's attempts from here on are of judges that were asked after the run; its own judges begin at 0."""

PERSON = "person/"
"""What stands before a person's code where that person corrected a verdict: a verdict of its own, never decisive, and
the latest of each person counts."""

_KEY = "task, generation, round, judge, draw"
_PUT = f"INSERT INTO verdict VALUES ({', '.join('?' * 13)})"
_PUT_CRITERION = f"INSERT INTO criterion VALUES ({', '.join('?' * 13)})"


def put_verdict(connection: sqlite3.Connection, stored: StoredVerdict) -> None:
    """Stores a verdict with its criteria. Raises ValueError for a number that is not finite."""
    verdict, seen = stored.verdict, stored.verdict.observations
    key = (stored.task_id, stored.generation, stored.round, verdict.judge, stored.draw)
    check_finite(score=verdict.score)
    connection.execute(
        _PUT,
        (
            *key,
            stored.decisive,
            seen.opinion,
            clean_text(seen.reason),
            clean_text(seen.differences),
            verdict.qualified_all_pass,
            verdict.qualified_weighted,
            verdict.score,
            verdict.qualified,
        ),
    )
    rows: list[tuple[object, ...]] = []
    for place, (name, result) in enumerate(seen.criteria.items()):
        check_finite(**{name: result.confidence}, value=result.value)
        codes, words = orjson.dumps(result.codes).decode(), clean_text(result.evidence)
        result_columns = (result.passed, result.value, result.confidence, codes, words)
        rows.append((*key, name, "criterion", place, *result_columns))
    for place, (name, answer) in enumerate(seen.facts.items()):
        rows.append((*key, name, "fact", place, None, float(answer), None, "[]", ""))
    connection.executemany(_PUT_CRITERION, rows)


def put_correction(connection: sqlite3.Connection, correction: StoredVerdict) -> None:
    """Stores what a person said, after that person's earlier corrections of the attempt; it never decides."""
    earlier = "SELECT count(*) FROM verdict WHERE task = ? AND generation = ? AND round = ? AND judge = ?"
    key = (correction.task_id, correction.generation, correction.round, correction.verdict.judge)
    draw = int(connection.execute(earlier, key).fetchone()[0])
    put_verdict(connection, replace(correction, draw=draw, decisive=False))


def corrections_in(verdicts: Iterable[StoredVerdict]) -> list[StoredVerdict]:
    """Of a task's verdicts the latest correction of each person on each attempt."""
    latest: dict[tuple[int, int, str], StoredVerdict] = {}
    for stored in verdicts:
        if stored.verdict.judge.startswith(PERSON):
            key = (stored.generation, stored.round, stored.verdict.judge)
            if key not in latest or stored.draw > latest[key].draw:
                latest[key] = stored
    return list(latest.values())


_SAME_VERDICT = (
    "INSERT OR IGNORE INTO verdict SELECT task, generation, :round, judge, draw, decisive, opinion, reason, "
    "differences, qualified_all_pass, qualified_weighted, score, qualified FROM verdict"
)
_SAME_CRITERION = (
    "INSERT OR IGNORE INTO criterion SELECT task, generation, :round, judge, draw, name, kind, place, passed, value, "
    "confidence, codes, reason FROM criterion"
)
_SAME_SCORE = (
    "INSERT OR IGNORE INTO score SELECT task, generation, :round, metric, value, reason, detail FROM score"
)


def repeat_verdict(
    connection: sqlite3.Connection, task_id: str, generation: int, round: int, earlier: int
) -> None:
    """Gives an attempt all verdicts and scores of an earlier round's, whose picture and instruction it shares."""
    key = {"task": task_id, "generation": generation, "round": round, "earlier": earlier}
    for statement in (_SAME_VERDICT, _SAME_CRITERION, _SAME_SCORE):
        where = " WHERE task = :task AND generation = :generation AND round = :earlier"
        connection.execute(statement + where, key)
    connection.execute(
        "UPDATE attempt SET judge_outcome = 'ok' WHERE task = :task AND generation = :generation AND round = :round",
        key,
    )


def read_verdicts(
    connection: sqlite3.Connection, where: str, values: Iterable[str | int]
) -> Iterator[StoredVerdict]:
    """The verdicts to which a condition applies, by attempt; of an attempt the decisive one last."""
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
            criteria[name] = CriterionResult(
                _decision(passed), confidence, tuple(orjson.loads(codes)), reason, value
            )
    seen = Observations(criteria, facts, _decision(row[6]), row[7], row[12])
    verdict = Verdict(row[3], seen, _decision(row[8]), _decision(row[9]), row[10], _decision(row[11]))
    return StoredVerdict(row[0], row[1], row[2], verdict, draw=row[4], decisive=bool(row[5]))


def _decision(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def check_finite(**numbers: float | None) -> None:
    """NaN would silently come back as None: SQLite and JSON have no word for it."""
    for name, number in numbers.items():
        if number is not None and not math.isfinite(number):
            raise ValueError(f"{name} is {number}, not a finite number")
