"""What people said of edits, as columns of a release's tables: of reader studies that come along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import orjson
import pyarrow as pa

from plantain.release.plan import CriterionRating, EditRating
from plantain.release.staging import Staging
from plantain.release.task_record import AttemptRecord, TaskRecord

_KEPT = "people"
"""In the plan: ratings as they were when the export began."""

PEOPLE: Mapping[str, pa.DataType] = {
    "people_study": pa.string(),
    "people_readers": pa.int16(),
    "people_accepted": pa.float64(),
    "people_criteria": pa.list_(
        pa.struct([("criterion", pa.string()), ("held", pa.float64()), ("rating", pa.float64())])
    ),
}
"""Of an edit that a study's readers saw: the study's folder below `studies/`, how many judged it, the share of them for
whom every criterion held, and by criterion that share and the mean rating. Null where nobody was asked."""


Ratings = Mapping[tuple[str, int], EditRating]


def keep_ratings(staging: Staging, ratings: tuple[EditRating, ...]) -> None:
    """Remembers the ratings with the plan."""
    staging.set_meta(_KEPT, orjson.dumps([asdict(one) for one in ratings]).decode())


def kept_ratings(staging: Staging) -> Ratings:
    """What `keep_ratings` remembered, by task and round; of several studies of one edit the first named."""
    found: dict[tuple[str, int], EditRating] = {}
    for row in orjson.loads(staging.meta(_KEPT) or "[]"):
        criteria = tuple(CriterionRating(**one) for one in row.pop("criteria"))
        one = EditRating(**row, criteria=criteria)
        found.setdefault((one.task, one.round), one)
    return found


def rating_of(ratings: Ratings, record: TaskRecord, attempt: AttemptRecord) -> EditRating | None:
    """What people said of an attempt; None of one that a retry superseded, and where nobody was asked."""
    if attempt.superseded or attempt.round is None:
        return None
    return ratings.get((record.task_id, attempt.round))
