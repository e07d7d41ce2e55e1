"""Answers as rows, one a reader and item: what exports hold and what every figure is computed from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import orjson

from plantain.files.csv_form import written_csv
from plantain.records import InputError
from plantain.review.answers import checked, is_right, meant
from plantain.review.ratings import Ratings, ReaderAnswer
from plantain.review.study import ItemKind, ReaderTask, Study


@dataclass(frozen=True, slots=True)
class Row:
    """One reader's answer to one item. Readers stand by their codes; nothing here names anybody."""

    reader: str
    block: str
    task: ReaderTask
    item: str
    kind: ItemKind
    repeats: str
    case: str
    source: str
    stratum: str
    cluster: str
    modality: str
    finding: str
    direction: str
    position: int
    slots: tuple[str, ...]
    model: str
    answer: str
    truth: str
    right: bool | None
    cannot: str
    codes: tuple[str, ...]
    marks: tuple[Mapping[str, Any], ...]
    comment: str
    value: Mapping[str, Any]
    focus_s: float
    answers_given: int
    at: str


DICTIONARY = {
    "study": "first 16 digits of the frozen study's hash",
    "reader": "code of the reader; names are nowhere in an export",
    "block": "block of the study",
    "task": "what was asked, as `plantain review new --task` calls it",
    "item": "the question",
    "kind": "main, or training, repeat, anchor, attention: only main counts in main figures",
    "repeats": "the item that this one repeats, for repeats",
    "case": "case of the study",
    "source": "task or sample of the run that the case was made from",
    "stratum": "by which cases were drawn",
    "cluster": "patient or group: cases of one cluster are no independent samples",
    "modality": "of the picture",
    "finding": "that the edit is about",
    "direction": "add, remove or change",
    "position": "place in this reader's order, from 0",
    "slots": "whose pictures stood where, left to right (JSON)",
    "model": "whose picture was judged, where it was one",
    "answer": "the answer in words that do not depend on places",
    "truth": "the right answer, where one is known",
    "right": "whether the answer is the truth; empty where none is known",
    "cannot": "why the reader could not judge this; empty otherwise",
    "codes": "reasons from the rubric (JSON)",
    "marks": "where something is wrong: x, y, w, h in pixels, code, place (JSON)",
    "comment": "free text",
    "value": "the whole answer (JSON); of regions the mask as a PNG in base64",
    "focus_s": "seconds that the case had the reader's focus, until this answer",
    "answers_given": "how often the reader answered this: the newest counts, of training the first of the last turn; "
    "in history.csv which of these answers it is",
    "at": "when, UTC",
}
"""Every column of an export, in its order."""


def rows_of(study: Study, ratings: Ratings) -> list[Row]:
    """The answers that count, by reader, block and position: the newest of each item.

    Of training it is the first of the last turn, by which the training is passed: the feedback has told the truth to
    whoever answers again.

    Raises:
        InputError: an answer is not one to its item: the file was changed outside the reading room.
    """
    counts: dict[tuple[str, str], Row] = {}
    turns: dict[tuple[str, str], int] = {}
    for answer, row in _given(study, ratings):
        key = row.reader, row.item
        again = row.kind is ItemKind.TRAINING and turns.get(key) == answer.turn
        turns[key] = answer.turn
        counts[key] = replace(counts[key] if again else row, answers_given=row.answers_given)
    return sorted(counts.values(), key=lambda row: (row.reader, row.block, row.position))


def history_of(study: Study, ratings: Ratings) -> list[Row]:
    """Every answer ever given, in the order in which they came; of an item given again `answers_given` counts up.

    Raises:
        InputError: as `rows_of`.
    """
    return [row for _, row in _given(study, ratings)]


def _given(study: Study, ratings: Ratings) -> Iterator[tuple[ReaderAnswer, Row]]:
    times: Counter[tuple[str, str]] = Counter()
    for answer in ratings.history():
        if answer.item not in study.by_item:
            continue
        times[answer.reader, answer.item] += 1
        try:
            _check(study, answer)
            yield answer, _row(study, answer, times[answer.reader, answer.item])
        except (InputError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{ratings.path}: answer {answer.id}: not an answer to {answer.item} ({error})"
            ) from error


def _check(study: Study, answer: ReaderAnswer) -> None:
    """Raises InputError or what a wrong type raises: the value, or what was shown where, cannot be of this item."""
    block, item = study.by_item[answer.item]
    checked(block, item, study.by_case[item.case], answer.value)
    if answer.slots and sorted(answer.slots) != sorted(item.shown):
        raise ValueError(f"slots: {', '.join(item.shown) or 'none'} in some order")


def _row(study: Study, answer: ReaderAnswer, times: int) -> Row:
    block, item = study.by_item[answer.item]
    case = study.by_case[item.case]
    slots, value = list(answer.slots), answer.value
    judged = "cannot" not in value
    return Row(
        reader=answer.reader,
        block=block.id,
        task=block.task,
        item=item.id,
        kind=item.kind,
        repeats=item.of,
        case=case.id,
        source=case.source,
        stratum=case.stratum,
        cluster=case.cluster,
        modality=case.modality,
        finding=case.finding,
        direction=case.direction,
        position=answer.position,
        slots=tuple(slots),
        model=slots[0] if len(slots) == 1 else "",
        answer=meant(block, slots, value) if judged else "",
        truth=item.truth,
        right=is_right(block, item, slots, value),
        cannot=value.get("cannot", ""),
        codes=tuple(value.get("codes", ())),
        marks=tuple(value.get("marks", ())),
        comment=value.get("comment", ""),
        value=value,
        focus_s=answer.focus_ms / 1000,
        answers_given=times,
        at=answer.at,
    )


def as_table(study: Study, rows: list[Row]) -> list[dict[str, str | float | int | bool | None]]:
    """Rows as plain cells, by the columns of `DICTIONARY`."""
    return [
        {"study": study.digest[:16], **{f.name: _cell(getattr(row, f.name)) for f in fields(row)}}
        for row in rows
    ]


def as_csv(study: Study, rows: list[Row]) -> str:
    """The table as CSV; cells that spreadsheets would run are defused."""
    table = as_table(study, rows)
    return written_csv([list(DICTIONARY), *([row[name] for name in DICTIONARY] for row in table)])


def _cell(value: object) -> Any:
    if isinstance(value, (tuple, Mapping)):
        return orjson.dumps(value).decode()
    if isinstance(value, (ReaderTask, ItemKind)):
        return value.value
    return value
