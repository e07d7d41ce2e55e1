"""How far readers agree with each other and with themselves."""

from __future__ import annotations

import numpy as np

from plantain.metrics.statistics.agreement import Agreement, Level, cohen_kappa, icc, krippendorff_alpha
from plantain.pixels.arrays import Floats
from plantain.review.results.rows import Row
from plantain.review.study import Block, ItemKind, ReaderTask

LEVELS: dict[ReaderTask, Level] = {ReaderTask.RATE: "interval", ReaderTask.PAIR: "nominal"}


def number_of(row: Row) -> float | None:
    """An answer as a number: 1 for yes, the mean of ratings; None where it is not one."""
    if row.cannot:
        return None
    match row.task:
        case ReaderTask.ACCEPT:
            return float(all(row.value["criteria"].values()))
        case ReaderTask.RATE:
            return float(np.mean(list(row.value["scores"].values())))
        case ReaderTask.DESCRIBE_OK:
            return float(row.value["right"])
        case ReaderTask.REAL_OR_EDITED | ReaderTask.TWO_CHOICES:
            return None if row.right is None else float(row.right)
    return None


def table_of(rows: list[Row], items: list[str], readers: list[str]) -> Floats:
    """(readers, items): answers as numbers; categories numbered in order of appearance; NaN: none."""
    codes: dict[str, float] = {}
    table = np.full((len(readers), len(items)), np.nan)
    place, who = {item: i for i, item in enumerate(items)}, {name: i for i, name in enumerate(readers)}
    for row in rows:
        if row.item in place and not row.cannot:
            numeric = (
                number_of(row)
                if row.task in (ReaderTask.ACCEPT, ReaderTask.RATE, ReaderTask.DESCRIBE_OK)
                else None
            )
            value = numeric if numeric is not None else codes.setdefault(row.answer, float(len(codes)))
            table[who[row.reader], place[row.item]] = value
    return table


def between_readers(block: Block, rows: list[Row]) -> Agreement:
    """Krippendorff's alpha over the main items of a block, cases of a patient together."""
    mine = [row for row in rows if row.block == block.id and row.kind is ItemKind.MAIN]
    items = sorted({row.item for row in mine})
    clusters = {row.item: row.cluster for row in mine}
    table = table_of(mine, items, sorted({row.reader for row in mine}))
    level = LEVELS.get(block.task, "nominal")
    return krippendorff_alpha(table, level, clusters=[clusters[item] for item in items])


def of_scores(block: Block, rows: list[Row]) -> Agreement | None:
    """ICC(2,1) of ratings; None for other tasks."""
    if block.task is not ReaderTask.RATE:
        return None
    mine = [row for row in rows if row.block == block.id and row.kind is ItemKind.MAIN]
    items = sorted({row.item for row in mine})
    return icc(table_of(mine, items, sorted({row.reader for row in mine})))


def with_themselves(block: Block, rows: list[Row]) -> Agreement:
    """Cohen's kappa of first answers with repeats, over all readers; of ratings ICC(2,1)."""
    first = {
        (row.reader, row.item): row for row in rows if row.block == block.id and row.kind is ItemKind.MAIN
    }
    pairs = [
        (first[row.reader, row.repeats], row)
        for row in rows
        if row.block == block.id and row.kind is ItemKind.REPEAT and (row.reader, row.repeats) in first
    ]
    pairs = [(one, two) for one, two in pairs if not one.cannot and not two.cannot]
    if block.task is ReaderTask.RATE:
        numbers = (
            [[number_of(row) or 0.0 for row in side] for side in zip(*pairs, strict=True)] if pairs else []
        )
        if numbers:
            return icc(numbers)
    if not pairs:
        return Agreement(None, None, None, None, None, 0, 0, "nothing was read twice")
    return cohen_kappa(
        [one.answer for one, _ in pairs],
        [two.answer for _, two in pairs],
        clusters=[one.cluster for one, _ in pairs],
    )
