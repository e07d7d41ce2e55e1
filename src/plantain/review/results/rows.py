"""Answers as rows, one for each reader and item, as in exports; and the agreement of readers computed from them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Any

import numpy as np
import orjson

from plantain.files.tables import written_csv
from plantain.metrics.statistics.agreement import Agreement, krippendorff_alpha
from plantain.metrics.statistics.ranks import spearman
from plantain.pixels.arrays import Floats
from plantain.review.answers import in_words
from plantain.review.ratings import Ratings, ReaderAnswer
from plantain.review.study import ReaderTask, Study


@dataclass(frozen=True, slots=True)
class Row:
    """One reader's answer to one item, as a row of exports; `DICTIONARY` describes the columns."""

    reader: str
    block: str
    task: ReaderTask
    dimension: str
    item: str
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
    comment: str
    value: Mapping[str, Any]
    focus_s: float
    at: str


GROUND_TRUTH = "ground truth"
"""Model of an answer about the real image after the procedure."""

DICTIONARY = {
    "study": "first 16 digits of the frozen study's hash",
    "reader": "code of the reader; exports contain no names",
    "block": "block of the study",
    "task": "the question, as in `plantain review new --task`",
    "dimension": "the ranked dimension: EA, CP or VQ; empty for other tasks",
    "item": "the question about this case",
    "case": "case of the study",
    "source": "task or sample of the run that the case was made from",
    "stratum": "from which cases were drawn in turn",
    "cluster": "patient or group: cases of one cluster are not independent",
    "modality": "of the image",
    "finding": "of the edit",
    "direction": "add, remove or change",
    "position": "in this reader's order, from 0",
    "slots": "whose images were shown, left to right (JSON)",
    "model": "whose image was judged, if it was a single one",
    "answer": "the answer in words that do not depend on positions",
    "truth": "the right answer, where one is known",
    "right": "True if the answer is the truth; empty where none is known",
    "cannot": "why the reader could not judge this; empty otherwise",
    "codes": "reasons from the rubric (JSON)",
    "comment": "free text",
    "value": "the whole answer (JSON); the mask of a region is a PNG in base64",
    "focus_s": "seconds for which the case had the reader's focus, until this answer",
    "at": "time, UTC",
}
"""Every column of an export, in order."""


def rows_of(study: Study, ratings: Ratings) -> list[Row]:
    """Return the answers that count, by reader, block and position: the newest to each item."""
    rows = [_row(study, answer) for answer in ratings.current()]
    return sorted(rows, key=lambda row: (row.reader, row.block, row.position))


def judged_rows(study: Study, *tasks: ReaderTask) -> list[Row]:
    """Return the counting answers to these tasks, without those that readers could not judge."""
    ratings = Ratings.open(study)
    try:
        rows = rows_of(study, ratings)
    finally:
        ratings.close()
    return [row for row in rows if row.task in tasks and not row.cannot]


def _row(study: Study, answer: ReaderAnswer) -> Row:
    block, item = study.by_item[answer.item]
    case, slots, value = study.by_case[item.case], answer.slots, answer.value
    words = "" if "cannot" in value else in_words(block, slots, value)
    return Row(
        reader=answer.reader,
        block=block.id,
        task=block.task,
        dimension=block.dimension,
        item=item.id,
        case=case.id,
        source=case.source,
        stratum=case.stratum,
        cluster=case.cluster,
        modality=case.modality,
        finding=case.finding,
        direction=case.direction,
        position=answer.position,
        slots=slots,
        model=slots[0] if len(slots) == 1 else GROUND_TRUTH if block.task is ReaderTask.DESCRIBE_OK else "",
        answer=words,
        truth=item.truth,
        right=words == item.truth if words and item.truth else None,
        cannot=value.get("cannot", ""),
        codes=tuple(value.get("codes", ())),
        comment=value.get("comment", ""),
        value=value,
        focus_s=answer.focus_ms / 1000,
        at=answer.at,
    )


def as_csv(study: Study, rows: Sequence[Row]) -> str:
    """Return rows as CSV with the columns of `DICTIONARY`; cells that a spreadsheet would execute are made harmless."""
    table = [[study.digest[:16], *(_cell(getattr(row, field.name)) for field in fields(row))] for row in rows]
    return written_csv([list(DICTIONARY), *table])


def _cell(value: object) -> Any:
    if isinstance(value, (tuple, Mapping)):
        return orjson.dumps(value).decode()
    return value.value if isinstance(value, ReaderTask) else value


def number_of(row: Row) -> float | None:
    """Convert an answer to a number: 1 for yes or right, 0 for no or wrong, the mean of ratings; else None."""
    if row.cannot:
        return None
    match row.task:
        case ReaderTask.ACCEPT:
            return float(all(row.value["criteria"].values()))
        case ReaderTask.RATE:
            return float(np.mean(list(row.value["scores"].values())))
        case ReaderTask.DESCRIBE_OK:
            return float(row.value["right"])
        case ReaderTask.REAL_OR_EDITED:
            return None if row.right is None else float(row.right)
    return None


def item_table(rows: Sequence[Row]) -> tuple[Floats, list[str]]:
    """Arrange answers as a table of numbers (readers, items), NaN if missing; also return each item's cluster.

    Answers that are not yes, no or ratings are numbered in order of appearance.
    """
    clusters = {row.item: row.cluster for row in sorted(rows, key=lambda row: row.item)}
    items = {item: i for i, item in enumerate(clusters)}
    readers = {name: i for i, name in enumerate(sorted({row.reader for row in rows}))}
    codes: dict[str, float] = {}
    table = np.full((len(readers), len(items)), np.nan)
    for row in rows:
        if not row.cannot:
            numeric = row.task in (ReaderTask.ACCEPT, ReaderTask.RATE, ReaderTask.DESCRIBE_OK)
            value = number_of(row) if numeric else codes.setdefault(row.answer, float(len(codes)))
            table[readers[row.reader], items[row.item]] = value
    return table, list(clusters.values())


def between_readers(rows: Sequence[Row]) -> Agreement:
    """Measure agreement between readers: Krippendorff's alpha over a block's items, clustered by patient."""
    table, clusters = item_table(rows)
    rated = any(row.task is ReaderTask.RATE for row in rows)
    return krippendorff_alpha(table, "interval" if rated else "nominal", clusters=clusters)


def of_ranks(rows: Sequence[Row]) -> Agreement:
    """Measure agreement of rankings: the mean Spearman correlation, corrected for ties, over cases and reader pairs."""
    ranks: dict[str, list[dict[str, int]]] = {}
    clusters = set()
    for row in rows:
        if not row.cannot:
            ranks.setdefault(row.item, []).append(dict(zip(row.slots, row.value["ranks"], strict=True)))
            clusters.add(row.cluster)
    found = []
    for given in ranks.values():
        for one, other in itertools.combinations(given, 2):
            if len(set(one.values())) > 1 and len(set(other.values())) > 1:
                value = spearman(list(one.values()), [other[model] for model in one]).value
                found += [] if value is None else [value]
    if not found:
        return Agreement(None, None, None, None, None, 0, 0, "no case was ranked by two readers")
    return Agreement(fmean(found), None, None, None, None, len(ranks), len(clusters))
