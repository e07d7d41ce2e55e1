"""What the administrator sees: who is how far, how long cases take, checks; agreement only on request."""

from __future__ import annotations

import statistics
from typing import Any

from plantain.review.orders import reader_items
from plantain.review.ratings import IMPORTED, Ratings
from plantain.review.results.rows import Row, rows_of
from plantain.review.study import ItemKind, Study


def study_progress(study: Study, ratings: Ratings, *, agreement: bool = False) -> dict[str, Any]:
    """One entry a reader; agreement so far only where it is asked for, since peeking bends a study."""
    rows = rows_of(study, ratings)
    readers = []
    for reader in ratings.readers():
        if reader.role == IMPORTED:
            continue
        mine = [row for row in rows if row.reader == reader.code]
        items = sum(len(reader_items(study, block, reader.number)) for block in study.blocks)
        checks = [row for row in mine if row.kind is ItemKind.ATTENTION]
        readers.append(
            {
                "reader": reader.code,
                "confirmed": bool(reader.confirmed_name),
                "display_checked": bool(reader.display),
                "answered": len(mine),
                "items": items,
                "blocks_closed": len(ratings.closed(reader.code)),
                "median_s": statistics.median(row.focus_s for row in mine) if mine else None,
                "attention_right": sum(row.right is True for row in checks),
                "attention": len(checks),
                "cannot": sum(bool(row.cannot) for row in mine),
                "last": max((row.at for row in mine), default=""),
            }
        )
    found: dict[str, Any] = {"study": study.name, "blocks": len(study.blocks), "readers": readers}
    if agreement:
        found["agreement"] = _agreement(study, rows)
    return found


def _agreement(study: Study, rows: list[Row]) -> list[dict[str, Any]]:
    from plantain.review.results.agreeing import between_readers

    return [
        {"block": block.id, "title": block.title, "items": found.items, "alpha": found.value}
        for block in study.blocks
        for found in [between_readers(block, rows)]
    ]
