"""Which tasks a pilot does: as many of each finding and direction, the same ones however often it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from plantain.journal import JournalReader, TaskRow
from plantain.journal.questions.tasks import first_tasks, parts_of_plan
from plantain.records import TaskState

K = TypeVar("K")


def shared_out(sizes: Mapping[K, int], most: int) -> dict[K, int]:
    """Shares `most` places over parts: one each in turn, until places or tasks run out.

    Example:
        >>> shared_out({"add": 100, "remove": 2}, 10)
        {'add': 8, 'remove': 2}
    """
    places = dict.fromkeys(sizes, 0)
    left = min(most, sum(sizes.values()))
    while left:
        for part in [part for part in sizes if places[part] < sizes[part]][:left]:
            places[part] += 1
            left -= 1
    return places


def drawn_tasks(reader: JournalReader, most: int) -> list[str]:
    """Ids of the pilot's tasks, sorted; all tasks of a plan that has no more than `most`."""
    places = shared_out(parts_of_plan(reader), most)
    return sorted(task for part, n in places.items() if n for task in first_tasks(reader, part, n))


def drawn_pending(reader: JournalReader, most: int) -> Iterator[TaskRow]:
    """Those of them that are still to be done."""
    for task in drawn_tasks(reader, most):
        row = reader.task(task)
        if row.state is TaskState.PENDING:
            yield row
