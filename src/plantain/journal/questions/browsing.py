"""A run's tasks in pages, filtered and searched; the time for a page does not grow with the run."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from plantain.journal.reader import JournalReader
from plantain.records import InputError, TaskState

_STATES = tuple(state.value for state in TaskState)
Values = list[str | int]


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """The filter for tasks; an empty field sets no condition. The finding of a benchmark's task is its arm.

    Attributes:
        text: text in an instruction, a reason, a finding or a modality, the id of an image, or the first digits of a
            task's id.
    """

    state: str = ""
    text: str = ""

    def __post_init__(self) -> None:
        if self.state and self.state not in _STATES:
            raise InputError(f"state {self.state!r}: one of {', '.join(_STATES)}")

    @property
    def given(self) -> dict[str, str]:
        """The fields that are not empty, by name."""
        return {name: value for name, value in asdict(self).items() if value}


@dataclass(frozen=True, slots=True)
class BrowsedTask:
    """One task in a list.

    Attributes:
        image: id of the image before; `original`: its hash.
        edited: hash of the last attempt's image; "" without one.
        instruction: the last attempt's instruction.
        reason: why it did not succeed; "" if it did or is open.
        cost_usd: US dollars for its calls; None if no cost is known.
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


@dataclass(frozen=True, slots=True)
class BrowsedPage:
    """One page of a list of tasks; `before` and `behind` are True if the list has tasks before and after the page."""

    tasks: tuple[BrowsedTask, ...]
    before: bool
    behind: bool


_LAST = "SELECT {} FROM attempt a WHERE a.task = t.id AND a.generation = t.generation {} ORDER BY a.round DESC LIMIT 1"
_COLUMNS = (
    "t.id, t.image_id, t.modality, t.finding, t.direction, t.kind, t.state, t.round, t.reason, "
    f"coalesce(({_LAST.format('a.instruction', '')}), ''), "
    "coalesce((SELECT prepared FROM image i WHERE i.id = t.image_id), ''), "
    f"coalesce(({_LAST.format('a.edited', 'AND a.edited IS NOT NULL')}), ''), "
    "(SELECT sum(cost_usd) FROM call c WHERE c.task = t.id)"
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
    tasks = tuple(BrowsedTask(*row) for row in rows)
    return BrowsedPage(tasks, more if backwards else bool(mark), bool(mark) if backwards else more)


def _where(query: TaskQuery) -> tuple[str, Values]:
    parts, values = ["TRUE"], Values()
    if query.state:
        parts.append("t.state = ?")
        values.append(query.state)
    if query.text:
        parts.append(
            "(substr(t.id, 1, ?) = ? OR t.image_id = ? OR "
            "instr(lower(t.reason || ' ' || t.finding || ' ' || replace(t.modality, '_', ' ')), ?) OR EXISTS "
            "(SELECT 1 FROM attempt a WHERE a.task = t.id AND instr(lower(a.instruction), ?)))"
        )
        low = query.text.lower()
        values += [len(low), low, query.text, low, low]
    return " AND ".join(parts), values
