"""A run's tasks in pages, filtered and searched; the time for a page does not grow with the run."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, fields

from plantain.journal.reader import JournalReader
from plantain.records import InputError, TaskState

_STATES = tuple(state.value for state in TaskState)
Values = list[str | int]


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """The filter for tasks; an empty field sets no condition. The finding of a benchmark's task is its arm.

    Attributes:
        verdict: "qualified" or "not": at least one attempt was judged so.
        criterion: at least one attempt failed this criterion.
        differ: "any": two judges, or a judge and a human reader, disagree on at least one attempt.
        text: text in an instruction or a reason, the id of an image, or the first digits of a task's id.
    """

    state: str = ""
    modality: str = ""
    finding: str = ""
    direction: str = ""
    verdict: str = ""
    criterion: str = ""
    differ: str = ""
    text: str = ""

    def __post_init__(self) -> None:
        if self.state and self.state not in _STATES:
            raise InputError(f"state {self.state!r}: one of {', '.join(_STATES)}")
        if self.verdict not in ("", "qualified", "not"):
            raise InputError(f"verdict {self.verdict!r}: qualified or not")

    @property
    def given(self) -> dict[str, str]:
        """The fields that are not empty, by name."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}


@dataclass(frozen=True, slots=True)
class JudgeMark:
    """One judge's decision on an attempt.

    Attributes:
        qualified: the decision; None if undecided.
        decisive: True if it closed the task.
    """

    judge: str
    qualified: bool | None
    decisive: bool


@dataclass(frozen=True, slots=True)
class BrowsedTask:
    """One task in a list.

    Attributes:
        image: id of the image before; `original`: its hash.
        edited: hash of the last attempt's image; "" without one.
        instruction: the last attempt's instruction.
        reason: why it did not succeed; "" if it did or is open.
        cost_usd: US dollars for its calls; None if no cost is known.
        marks: decisions on the last attempt.
    """

    id: str
    image: str
    modality: str
    finding: str
    direction: str
    kind: str
    state: str
    round: int
    reason: str
    instruction: str
    original: str
    edited: str
    cost_usd: float | None
    marks: tuple[JudgeMark, ...]


@dataclass(frozen=True, slots=True)
class BrowsedPage:
    """One page of a list of tasks; `before` and `behind` are True if the list has tasks before and after the page."""

    tasks: tuple[BrowsedTask, ...]
    before: bool
    behind: bool


@dataclass(frozen=True, slots=True)
class Offered:
    """The values that tasks can be filtered by, each list sorted."""

    modalities: tuple[str, ...]
    findings: tuple[str, ...]
    directions: tuple[str, ...]
    criteria: tuple[str, ...]


_LAST = "SELECT {} FROM attempt a WHERE a.task = t.id AND a.generation = t.generation {} ORDER BY a.round DESC LIMIT 1"
_COLUMNS = (
    "t.id, t.image_id, t.modality, t.finding, t.direction, t.kind, t.state, t.round, t.reason, "
    f"coalesce(({_LAST.format('a.instruction', '')}), ''), "
    "coalesce((SELECT prepared FROM image i WHERE i.id = t.image_id), ''), "
    f"coalesce(({_LAST.format('a.edited', 'AND a.edited IS NOT NULL')}), ''), "
    "(SELECT sum(cost_usd) FROM call c WHERE c.task = t.id)"
)
_OF_TASK = "v.task = t.id AND v.generation = t.generation"
_MARKS = (
    "SELECT judge, qualified, decisive FROM verdict WHERE (task, generation, round) = (SELECT v.task, v.generation, "
    f"max(v.round) FROM verdict v JOIN task t ON {_OF_TASK} WHERE t.id = ?) ORDER BY decisive DESC, judge, draw"
)


def page_of(
    reader: JournalReader, query: TaskQuery, *, size: int, after: str = "", before: str = ""
) -> BrowsedPage:
    """Return one page of at most `size` tasks that match the query, by id.

    `after` and `before` are ids of tasks: the page starts after it, or ends before it.
    """
    where, bound = _where(query)
    mark = after or before
    backwards = bool(before) and not after
    if mark:
        where += f" AND t.id {'<' if backwards else '>'} ?"
        bound.append(mark)
    way = "DESC" if backwards else "ASC"
    sql = f"SELECT {_COLUMNS} FROM task t WHERE {where} ORDER BY t.id {way} LIMIT ?"
    rows = reader.connection.execute(sql, (*bound, size + 1)).fetchall()
    more, rows = len(rows) > size, rows[:size]
    if backwards:
        rows.reverse()
    tasks = tuple(_browsed(reader.connection, row) for row in rows)
    return BrowsedPage(tasks, more if backwards else bool(mark), bool(mark) if backwards else more)


def count_of(reader: JournalReader, query: TaskQuery) -> int:
    """Count the tasks that match a query."""
    where, values = _where(query)
    return int(reader.connection.execute(f"SELECT count(*) FROM task t WHERE {where}", values).fetchone()[0])


def offered(reader: JournalReader) -> Offered:
    """Return the values that tasks can be filtered by; slow, as it reads every task, so cache the result."""

    def distinct(column: str, table: str, where: str = "TRUE") -> tuple[str, ...]:
        rows = reader.connection.execute(f"SELECT DISTINCT {column} FROM {table} WHERE {where}")
        return tuple(sorted(value for (value,) in rows if value))

    return Offered(
        distinct("modality", "task"),
        distinct("finding", "task"),
        distinct("direction", "task"),
        distinct("name", "criterion", "kind = 'criterion'"),
    )


def _where(query: TaskQuery) -> tuple[str, Values]:
    parts, values = ["TRUE"], Values()
    for name in ("state", "modality", "finding", "direction"):
        if value := getattr(query, name):
            parts.append(f"t.{name} = ?")
            values.append(value)

    def some(table: str, condition: str, *bound: str) -> None:
        """Some row on the task's current attempts meets a condition."""
        parts.append(f"EXISTS (SELECT 1 FROM {table} v WHERE {_OF_TASK} AND {condition})")
        values.extend(bound)

    if query.verdict:
        some("verdict", f"v.qualified = {int(query.verdict == 'qualified')}")
    if query.criterion:
        some("criterion", "v.name = ? AND v.passed = 0", query.criterion)
    if query.differ:
        uneven = "GROUP BY v.round HAVING min(v.qualified) <> max(v.qualified)"
        parts.append(f"EXISTS (SELECT 1 FROM verdict v WHERE {_OF_TASK} {uneven})")
    if query.text:
        instructed = "SELECT 1 FROM attempt a WHERE a.task = t.id AND instr(lower(a.instruction), ?)"
        parts.append(
            f"(substr(t.id, 1, ?) = ? OR t.image_id = ? OR instr(lower(t.reason), ?) OR EXISTS ({instructed}))"
        )
        low = query.text.lower()
        values += [len(low), low, query.text, low, low]
    return " AND ".join(parts), values


def _browsed(connection: sqlite3.Connection, row: sqlite3.Row) -> BrowsedTask:
    marks = tuple(
        JudgeMark(judge, None if good is None else bool(good), bool(last))
        for judge, good, last in connection.execute(_MARKS, (row[0],))
    )
    return BrowsedTask(*(*row, marks))
