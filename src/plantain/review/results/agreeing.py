"""Agreement of readers with each other and with themselves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from plantain.metrics.statistics.agreement import Agreement, cohen_kappa, icc, krippendorff_alpha
from plantain.metrics.statistics.ranks import spearman
from plantain.pixels.arrays import Floats
from plantain.review.results.rows import Row
from plantain.review.study import ItemKind, ReaderTask


def number_of(row: Row) -> float | None:
    """Return an answer as a number: 1 for yes or right, the mean of ratings; None if it is not one."""
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


def main_items(rows: Sequence[Row]) -> tuple[Floats, list[str]]:
    """Return main answers as numbers, (readers, items), NaN without one, and the cluster of each item.

    Answers that are not yes, no or ratings are numbered in order of appearance.
    """
    mine = [row for row in rows if row.kind is ItemKind.MAIN]
    clusters = {row.item: row.cluster for row in sorted(mine, key=lambda row: row.item)}
    items = {item: i for i, item in enumerate(clusters)}
    readers = {name: i for i, name in enumerate(sorted({row.reader for row in mine}))}
    codes: dict[str, float] = {}
    table = np.full((len(readers), len(items)), np.nan)
    for row in mine:
        if not row.cannot:
            numeric = row.task in (ReaderTask.ACCEPT, ReaderTask.RATE, ReaderTask.DESCRIBE_OK)
            value = number_of(row) if numeric else codes.setdefault(row.answer, float(len(codes)))
            table[readers[row.reader], items[row.item]] = value
    return table, list(clusters.values())


def between_readers(rows: Sequence[Row]) -> Agreement:
    """Return Krippendorff's alpha over the main items of a block's rows, cases of a patient together."""
    table, clusters = main_items(rows)
    rated = any(row.task is ReaderTask.RATE for row in rows)
    return krippendorff_alpha(table, "interval" if rated else "nominal", clusters=clusters)


def with_themselves(rows: Sequence[Row]) -> Agreement:
    """Return Cohen's kappa of first answers with repeats, over all readers of a block; ICC(2,1) of ratings."""
    first = {(row.reader, row.item): row for row in rows if row.kind is ItemKind.MAIN}
    again = [row for row in rows if row.kind is ItemKind.REPEAT and (row.reader, row.repeats) in first]
    pairs = [(first[row.reader, row.repeats], row) for row in again]
    pairs = [(one, two) for one, two in pairs if not one.cannot and not two.cannot]
    if not pairs:
        return Agreement(None, None, None, None, None, 0, 0, "nothing was read twice")
    if pairs[0][0].task is ReaderTask.RATE:
        return icc([[number_of(row) or 0.0 for row in side] for side in zip(*pairs, strict=True)])
    return cohen_kappa(
        [one.answer for one, _ in pairs],
        [two.answer for _, two in pairs],
        clusters=[one.cluster for one, _ in pairs],
    )


def of_ranks(rows: Sequence[Row]) -> Agreement:
    """Return Spearman's correlation of two readers' ranks, tie-corrected: its mean over cases and pairs of readers."""
    ranks: dict[str, list[dict[str, int]]] = {}
    clusters = set()
    for row in rows:
        if row.kind is ItemKind.MAIN and not row.cannot:
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
