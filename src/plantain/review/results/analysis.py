"""`plantain review results`: what a study's main answers say, readers and cases random."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from plantain.metrics.statistics.agreement import Agreement
from plantain.metrics.statistics.bradley_terry import (
    LEFT,
    RIGHT,
    TIE,
    Comparison,
    Value,
    bradley_terry,
    reader_effects,
)
from plantain.metrics.statistics.readers import OverReaders, over_readers
from plantain.metrics.statistics.regions import FEWEST, dice, majority, staple
from plantain.pixels.arrays import Floats
from plantain.review.answers import region_of
from plantain.review.results.agreeing import between_readers, number_of, of_scores, with_themselves
from plantain.review.results.rows import Row
from plantain.review.study import ORIGINAL, Block, ItemKind, ReaderTask, Study

Found = dict[str, Any]


def analyse(study: Study, rows: Sequence[Row]) -> Found:
    """Everything that the page, the JSON and the LaTeX show.

    Args:
        rows: as `rows_of` gives them; training, repeats, anchors and attention checks are left out of main figures.
    """
    return {
        "study": study.name,
        "hash": study.digest,
        "sources": list(study.sources),
        "readers": sorted({row.reader for row in rows}),
        "cases": len(study.cases),
        "blocks": [_block(block, [row for row in rows if row.block == block.id]) for block in study.blocks],
    }


def _block(block: Block, rows: list[Row]) -> Found:
    main = [row for row in rows if row.kind is ItemKind.MAIN]
    judged = [row for row in main if not row.cannot]
    found: Found = {
        **dict.fromkeys(
            ("models", "differences", "criteria", "strengths", "position", "accuracy", "by_model")
        ),
        **dict.fromkeys(("confusion", "regions")),
        "block": block.id,
        "task": block.task.value,
        "title": block.title,
        "answers": len(main),
        "judged": len(judged),
        "cannot": len(main) - len(judged),
        "readers": len({row.reader for row in main}),
        "agreement": {
            "between readers": _agreement(between_readers(block, rows))
            if block.task is not ReaderTask.CHOOSE_ROI
            else None,
            "icc": _agreement(of_scores(block, rows)),
            "with themselves": _agreement(with_themselves(block, rows)),
        },
        "checks": _checks(rows),
        "times": _times(main),
    }
    match block.task:
        case ReaderTask.ACCEPT | ReaderTask.RATE | ReaderTask.DESCRIBE_OK:
            ends = (0.0, 1.0) if block.task is not ReaderTask.RATE else tuple(map(float, block.scale))
            found |= _by_model(judged, number_of, ends)
            if block.task in (ReaderTask.ACCEPT, ReaderTask.RATE):
                field = "criteria" if block.task is ReaderTask.ACCEPT else "scores"
                found["criteria"] = {
                    name: _by_model(judged, lambda row, n=name: float(row.value[field][n]), ends)["models"]
                    for name, _ in block.criteria
                }
            found["codes"] = dict(Counter(code for row in judged for code in row.codes).most_common())
        case ReaderTask.PAIR | ReaderTask.RANK:
            found |= _strengths(judged)
        case ReaderTask.REAL_OR_EDITED | ReaderTask.TWO_CHOICES:
            found |= _told_apart(judged)
        case ReaderTask.WHICH_FINDING:
            found["confusion"] = _confusion(judged)
        case ReaderTask.CHOOSE_ROI:
            found["regions"] = _regions(judged)
    return found


def mean_over_readers(table: Floats, *, null: float = 0.0, ends: tuple[float, ...] = ()) -> Found:
    """A mean over readers and cases as a record; with the reason in place of an interval where there is none."""
    low, high = (ends[0], ends[1]) if ends else (None, None)
    try:
        found: OverReaders = over_readers(table, null=null, low=low, high=high)
    except ValueError as error:
        known = table[np.isfinite(table)]
        return {"value": float(known.mean()) if known.size else None, "low": None, "high": None, "p": None,
                "n": int(known.size), "reason": str(error)}  # fmt: skip
    unbiased = found.unbiased if np.isfinite(found.unbiased) else None  # where no two answers share neither
    return asdict(found) | {"unbiased": unbiased, "reason": found.how if found.low is None else ""}


def _tables(parts: Sequence[Sequence[Row]], value: Any) -> list[Floats]:
    """Of each part, (readers, clusters): a reader's mean answer to the cases of each patient, who count as one.

    All are over the readers and patients of all parts; NaN where there is no answer.
    """
    readers = {name: i for i, name in enumerate(sorted({row.reader for rows in parts for row in rows}))}
    clusters = {name: i for i, name in enumerate(sorted({row.cluster for rows in parts for row in rows}))}
    tables: list[Floats] = []
    for rows in parts:
        total, count = np.zeros((len(readers), len(clusters))), np.zeros((len(readers), len(clusters)))
        for row in rows:
            number = value(row)
            if number is not None:
                total[readers[row.reader], clusters[row.cluster]] += number
                count[readers[row.reader], clusters[row.cluster]] += 1
        with np.errstate(invalid="ignore"):
            tables.append(np.where(count > 0, total / count, np.nan))
    return tables


def _told_apart(rows: Sequence[Row]) -> Found:
    """How often edited pictures were told from real ones, of all models and of each: 0.5 is guessing.

    Of pictures shown one at a time it is the mean of the rates on edited and on real ones (balanced accuracy): with
    several models most pictures are edited, and who always says "edited" must not come out above chance.
    """

    def rate(mine: Sequence[Row]) -> Found:
        real = [row for row in mine if row.slots == (ORIGINAL,)]
        edited = [row for row in mine if row.slots != (ORIGINAL,)]
        tables = _tables([edited, real] if real else [edited], number_of)
        return mean_over_readers(np.mean(tables, axis=0), null=0.5, ends=(0.0, 1.0))

    models = sorted({slot for row in rows for slot in row.slots} - {ORIGINAL})
    return {
        "accuracy": rate(rows),
        "by_model": {
            model: rate([row for row in rows if model in row.slots or row.slots == (ORIGINAL,)])
            for model in models
        },
    }


def _by_model(rows: Sequence[Row], value: Any, ends: tuple[float, ...]) -> Found:
    """Means of each model, and differences of all pairs on what readers saw of both, corrected by Holm."""
    models = sorted({row.model for row in rows})
    parts = [[row for row in rows if row.model == model] for model in models]
    tables = dict(zip(models, _tables(parts, value), strict=True))
    pairs = [
        {"first": a, "second": b, "how": "", "p_holm": None, **mean_over_readers(tables[a] - tables[b])}
        for a, b in itertools.combinations(models, 2)
    ]
    tested = sorted((pair for pair in pairs if pair["p"] is not None), key=lambda pair: pair["p"])
    worst = 0.0
    for place, pair in enumerate(tested):
        worst = max(worst, min(1.0, pair["p"] * (len(tested) - place)))
        pair["p_holm"] = worst
    return {
        "models": {model: mean_over_readers(tables[model], ends=ends) for model in models},
        "differences": pairs,
    }


def comparisons_of(rows: Sequence[Row]) -> list[Comparison]:
    """Pairs as they were answered, and rankings as the pairs that they imply."""
    found = []
    for row in rows:
        if row.cannot:
            continue
        if row.task is ReaderTask.PAIR:
            outcome = {"left": LEFT, "tie": TIE, "right": RIGHT}[row.value["better"]]
            found.append(Comparison(row.slots[0], row.slots[1], outcome, row.reader, row.cluster))
        elif row.task is ReaderTask.RANK:
            for i, j in itertools.combinations(range(len(row.slots)), 2):
                apart = row.value["ranks"][j] - row.value["ranks"][i]
                found.append(
                    Comparison(row.slots[i], row.slots[j], int(np.sign(apart)), row.reader, row.cluster)
                )
    return found


def _strengths(rows: Sequence[Row]) -> Found:
    comparisons = comparisons_of(rows)
    try:
        found, effects = bradley_terry(comparisons), reader_effects(comparisons)
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
        "reader_effects": {
            reader: dict(zip(effects.models, map(float, line), strict=True))
            for reader, line in zip(effects.readers, effects.effects, strict=True)
        },
        "reader_spread": effects.spread,
        "reason": "",
    }


def _parameter(found: Value) -> Found:
    return asdict(found) | {"reason": "too few readers or cases to tell" if found.low is None else ""}


def _confusion(rows: Sequence[Row]) -> Found:
    """Asked-for finding -> answered finding -> how often; removals are asked-for "none"."""
    table: dict[str, Counter[str]] = {}
    for row in rows:
        asked = row.finding if row.direction == "add" else f"{row.finding}, removed"
        table.setdefault(asked, Counter())[row.answer] += 1
    return {asked: dict(sorted(counts.items())) for asked, counts in sorted(table.items())}


def _regions(rows: Sequence[Row]) -> list[Found]:
    """Of each case: Dice of all pairs of readers, the majority's area, and STAPLE from three readers on."""
    found = []
    for case in sorted({row.case for row in rows}):
        mine = [row for row in rows if row.case == case]
        drawn = [region_of(row.value) for row in mine if row.value.get("mask")]
        overlaps = [one for a, b in itertools.combinations(drawn, 2) if (one := dice(a, b)) is not None]
        entry: Found = {
            "case": case,
            "source": mine[0].source,
            "drawn": len(drawn),
            "chosen": dict(Counter(row.answer for row in mine if not row.value.get("mask"))),
            "dice": statistics.mean(overlaps) if overlaps else None,
            "majority_pixels": int(majority(drawn).sum()) if len(drawn) >= FEWEST else None,
            "staple": None,
        }
        if len(drawn) >= FEWEST:
            made = staple(drawn)
            entry["staple"] = {
                "pixels": int(made.region.sum()),
                "sensitivity": dict(
                    zip((r.reader for r in mine if r.value.get("mask")), made.sensitivity, strict=True)
                ),
                "specificity": dict(
                    zip((r.reader for r in mine if r.value.get("mask")), made.specificity, strict=True)
                ),
            }
        found.append(entry)
    return found


def _checks(rows: Sequence[Row]) -> Found:
    """Of anchors and attention checks: how many were answered right."""
    found = {}
    for kind in (ItemKind.ATTENTION, ItemKind.ANCHOR, ItemKind.TRAINING):
        known = [row.right for row in rows if row.kind is kind and row.right is not None]
        found[kind.value] = {"right": sum(known), "of": len(known)}
    return found


def _times(rows: Sequence[Row]) -> Found:
    """Seconds of focus a case, by reader: median and quartiles."""
    found = {}
    for reader in sorted({row.reader for row in rows}):
        seconds = [row.focus_s for row in rows if row.reader == reader]
        low, middle, high = np.percentile(seconds, [25, 50, 75])
        found[reader] = {"median": float(middle), "low": float(low), "high": float(high), "n": len(seconds)}
    return found


def _agreement(found: Agreement | None) -> Found | None:
    return None if found is None else asdict(found)
