"""Statistics of a study's answers, with readers and cases random."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from plantain.metrics.statistics.agreement import Agreement, icc
from plantain.metrics.statistics.bradley_terry import (
    LEFT,
    RIGHT,
    TIE,
    Comparison,
    Value,
    bradley_terry,
)
from plantain.metrics.statistics.paired import holm
from plantain.metrics.statistics.readers import over_readers
from plantain.pixels.arrays import Floats
from plantain.review.results.rows import (
    Row,
    between_readers,
    item_table,
    number_of,
    of_ranks,
)
from plantain.review.study import ORIGINAL, Block, ReaderTask, Study

Found = dict[str, Any]
Number = Callable[[Row], float | None]


def analyse(study: Study, rows: Sequence[Row]) -> Found:
    """Compute all results of a study, for page and JSON, from the rows of `rows_of`."""
    return {
        "study": study.name,
        "hash": study.digest,
        "sources": list(study.sources),
        "readers": sorted({row.reader for row in rows}),
        "cases": len(study.cases),
        "blocks": [
            _block(study, block, [row for row in rows if row.block == block.id]) for block in study.blocks
        ],
    }


def _block(study: Study, block: Block, rows: list[Row]) -> Found:
    judged = [row for row in rows if not row.cannot]
    names = ("models", "differences", "criteria", "strengths", "position", "accuracy", "by_model")
    found: Found = {
        **dict.fromkeys((*names, "judge")),
        "block": block.id,
        "task": block.task.value,
        "dimension": block.dimension,
        "title": block.title,
        "answers": len(rows),
        "judged": len(judged),
        "cannot": len(rows) - len(judged),
        "readers": len({row.reader for row in rows}),
        "agreement": _agreement(block, rows),
    }
    match block.task:
        case ReaderTask.ACCEPT | ReaderTask.RATE:
            accept = block.task is ReaderTask.ACCEPT
            field, ends = ("criteria", (0.0, 1.0)) if accept else ("scores", tuple(map(float, block.scale)))
            found |= _by_model(judged, number_of, ends)
            found["criteria"] = {
                name: _by_model(judged, _criterion(field, name), ends)["models"] for name, _ in block.criteria
            }
            found["codes"] = dict(Counter(code for row in judged for code in row.codes).most_common())
            found["judge"] = with_judge(study, judged) if accept else None
        case ReaderTask.DESCRIBE_OK:
            found |= _by_model(judged, number_of, (0.0, 1.0))
        case ReaderTask.PAIR | ReaderTask.RANK:
            found |= _strengths(judged)
        case ReaderTask.REAL_OR_EDITED:
            found |= _accuracy(judged)
    return found


def mean_over_readers(table: Floats, *, null: float = 0.0, ends: tuple[float, ...] = ()) -> Found:
    """Return the mean of a table (readers, cases) with its interval, or with the reason for a missing one.

    Args:
        table: answers, NaN where missing.
        null: mean of the null hypothesis, for the p value.
        ends: lowest and highest possible answer; () if unbounded.
    """
    low, high = (ends[0], ends[1]) if ends else (None, None)
    try:
        found = over_readers(table, null=null, low=low, high=high)
    except ValueError as error:
        known = table[np.isfinite(table)]
        value = float(known.mean()) if known.size else None
        return {
            "value": value,
            "low": None,
            "high": None,
            "p": None,
            "n": int(known.size),
            "reason": str(error),
        }
    unbiased = found.unbiased if np.isfinite(found.unbiased) else None  # no two answers share neither
    return asdict(found) | {"unbiased": unbiased, "reason": found.how if found.low is None else ""}


def tables_of(parts: Sequence[Sequence[Row]], value: Number) -> list[Floats]:
    """Make a table (readers, clusters) for each part, with a reader's mean answer to each patient's cases.

    All tables have the readers and patients of all parts; NaN without an answer.
    """
    readers = {name: i for i, name in enumerate(sorted({row.reader for rows in parts for row in rows}))}
    clusters = {name: i for i, name in enumerate(sorted({row.cluster for rows in parts for row in rows}))}
    tables: list[Floats] = []
    for rows in parts:
        total, count = np.zeros((2, len(readers), len(clusters)))
        for row in rows:
            if (number := value(row)) is not None:
                total[readers[row.reader], clusters[row.cluster]] += number
                count[readers[row.reader], clusters[row.cluster]] += 1
        with np.errstate(invalid="ignore"):
            tables.append(np.where(count > 0, total / count, np.nan))
    return tables


# --- accept, rate, describe -------------------------------------------------------------------------


def _by_model(rows: Sequence[Row], value: Number, ends: tuple[float, ...]) -> Found:
    """Return the mean of each model, and the differences of all pairs on common cases, corrected by Holm."""
    models = sorted({row.model for row in rows})
    tables = dict(
        zip(
            models,
            tables_of([[row for row in rows if row.model == one] for one in models], value),
            strict=True,
        )
    )
    pairs = [
        {"first": a, "second": b, "how": "", "p_holm": None, **mean_over_readers(tables[a] - tables[b])}
        for a, b in itertools.combinations(models, 2)
    ]
    for pair, corrected in zip(pairs, holm([pair["p"] for pair in pairs]), strict=True):
        pair["p_holm"] = corrected
    return {
        "models": {model: mean_over_readers(tables[model], ends=ends) for model in models},
        "differences": pairs,
    }


def _criterion(field: str, name: str) -> Number:
    return lambda row: float(row.value[field][name])


def with_judge(study: Study, rows: Sequence[Row]) -> Found | None:
    """Compare readers' acceptance with the run's own decisions, as in Med-Banana 4.3 (human validation).

    Returns:
        `agreement`: share of readings in which reader and judge decide alike; `strict`: share in which only the reader
        accepts; `lenient`: share in which only the judge does. None without decisions.
    """
    decided: list[tuple[Row, bool, bool]] = []
    for row in rows:
        verdict = (study.by_case[row.case].verdicts or {}).get(row.model)
        if verdict is not None:
            decided.append((row, bool(number_of(row)), verdict))
    if not decided:
        return None

    def share(of: Callable[[bool, bool], bool]) -> Found:
        shares = {id(row): float(of(reader, judge)) for row, reader, judge in decided}
        (table,) = tables_of([[row for row, _, _ in decided]], lambda row: shares[id(row)])
        return mean_over_readers(table, ends=(0.0, 1.0))

    return {
        "agreement": share(lambda reader, judge: reader == judge),
        "strict": share(lambda reader, judge: reader and not judge),
        "lenient": share(lambda reader, judge: judge and not reader),
    }


# --- real or edited ---------------------------------------------------------------------------------


def _accuracy(rows: Sequence[Row]) -> Found:
    """Return how often readers distinguish edited from real images, overall and by model: 0.5 is guessing.

    Of images shown one at a time it is the mean of the rates on edited and on real ones (balanced accuracy): with
    several models most images are edited, and a reader who always answers "edited" must not come out above chance.
    """

    def rate(mine: Sequence[Row]) -> Found:
        real = [row for row in mine if row.slots == (ORIGINAL,)]
        edited = [row for row in mine if row.slots != (ORIGINAL,)]
        tables = tables_of([edited, real] if real else [edited], number_of)
        return mean_over_readers(np.mean(tables, axis=0), null=0.5, ends=(0.0, 1.0))

    models = sorted({slot for row in rows for slot in row.slots} - {ORIGINAL})
    return {
        "accuracy": rate(rows),
        "by_model": {
            model: rate([row for row in rows if model in row.slots or row.slots == (ORIGINAL,)])
            for model in models
        },
    }


# --- comparisons ------------------------------------------------------------------------------------


def comparisons_of(rows: Sequence[Row]) -> list[Comparison]:
    """Convert answers to comparisons in pairs: compared pairs as they are, rankings as all pairs that they imply."""
    found = []
    for row in rows:
        if row.cannot:
            continue
        if row.task is ReaderTask.PAIR:
            outcome = {"left": LEFT, "tie": TIE, "right": RIGHT}[row.value["better"]]
            found.append(Comparison(row.slots[0], row.slots[1], outcome, row.reader, row.cluster))
        elif row.task is ReaderTask.RANK:
            for i, j in itertools.combinations(range(len(row.slots)), 2):
                outcome = int(np.sign(row.value["ranks"][j] - row.value["ranks"][i]))
                found.append(Comparison(row.slots[i], row.slots[j], outcome, row.reader, row.cluster))
    return found


def _strengths(rows: Sequence[Row]) -> Found:
    comparisons = comparisons_of(rows)
    try:
        found = bradley_terry(comparisons)
    except ValueError as error:
        return {"strengths": None, "reason": str(error)}
    return {
        "strengths": {
            model: _parameter(strength) | {"ranks": list(ranks)}
            for model, strength, ranks in zip(found.models, found.strength, found.ranks, strict=True)
        },
        "position": _parameter(found.position),
        "ties": None if found.ties is None else _parameter(found.ties),
        "comparisons": found.comparisons,
        "reason": "",
    }


def _parameter(found: Value) -> Found:
    return asdict(found) | {"reason": "too few readers or cases" if found.low is None else ""}


# --- agreement --------------------------------------------------------------------------------------


def _agreement(block: Block, rows: Sequence[Row]) -> Found:
    found: dict[str, Agreement | None] = {"between readers": None, "icc": None, "spearman": None}
    if block.task is ReaderTask.RANK:
        found["spearman"] = of_ranks(rows)
    elif block.task is not ReaderTask.CHOOSE_ROI:
        found["between readers"] = between_readers(rows)
    if block.task is ReaderTask.RATE:
        found["icc"] = icc(item_table(rows)[0])
    return {name: None if one is None else asdict(one) for name, one in found.items()}
