"""Judges and readers of a run's edits: the cards of the judges, and the ratings of reader studies in an export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import orjson
import pyarrow as pa

from plantain.journal.cards import FOLDER, as_json, cards_of, from_json
from plantain.journal.verdicts import PERSON
from plantain.records import JudgeCard
from plantain.records.card import no_card
from plantain.release.plan import CriterionRating, EditRating, ReleaseFile, RunFacts
from plantain.release.staging import HashingFile, Staging
from plantain.release.task_record import AttemptRecord, TaskRecord
from plantain.rubrics import recorded

_KEPT = "cards"
"""In the plan: cards as they were when the export began."""


def run_cards(run: Path) -> dict[str, JudgeCard]:
    """The cards that lie beside a run's journal, by the path that they get in a release."""
    return {f"{FOLDER}/{path.name}": card for path, card in zip(_paths(run), cards_of(run), strict=True)}


def keep_cards(staging: Staging, cards: Mapping[str, JudgeCard]) -> None:
    """Remembers the cards with the plan."""
    recorded = {path: as_json(card) for path, card in cards.items()}
    staging.set_meta(_KEPT, orjson.dumps(recorded).decode())


def kept_cards(staging: Staging) -> dict[str, JudgeCard]:
    """What `keep_cards` remembered."""
    recorded = orjson.loads(staging.meta(_KEPT) or "{}")
    return {path: from_json(orjson.dumps(card), path) for path, card in recorded.items()}


def write_cards(staging: Staging, cards: Mapping[str, JudgeCard]) -> None:
    """Writes each card as the file that it is beside the journal."""
    for path, card in cards.items():

        def fill(file: HashingFile, card: JudgeCard = card) -> Iterator[ReleaseFile]:
            file.write(orjson.dumps(as_json(card), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
            return iter(())

        staging.write(path, "record", fill)


def who_judged(facts: RunFacts, cards: Mapping[str, JudgeCard]) -> list[str]:
    """A line for each judge: its card's own, or that it has none, and how many verdicts are its."""
    rubric = recorded(facts.frozen).name
    lines = {card.judge: card.line for card in cards.values() if card.rubric == rubric}
    asked = {judge: n for judge, n in facts.judges.items() if not judge.startswith(PERSON)}
    return [f"{lines.get(judge, no_card(judge, rubric))} [{n:,} verdicts]" for judge, n in asked.items()]


def _paths(run: Path) -> list[Path]:
    folder = run / FOLDER
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


# --- readers ----------------------------------------------------------------------------------------

_RATINGS = "people"

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
    staging.set_meta(_RATINGS, orjson.dumps([asdict(one) for one in ratings]).decode())


def kept_ratings(staging: Staging) -> Ratings:
    """What `keep_ratings` remembered, by task and round; of several studies of one edit the first named."""
    found: dict[tuple[str, int], EditRating] = {}
    for row in orjson.loads(staging.meta(_RATINGS) or "[]"):
        criteria = tuple(CriterionRating(**one) for one in row.pop("criteria"))
        one = EditRating(**row, criteria=criteria)
        found.setdefault((one.task, one.round), one)
    return found


def rating_of(ratings: Ratings, record: TaskRecord, attempt: AttemptRecord) -> EditRating | None:
    """What people said of an attempt; None of one that a retry superseded, and where nobody was asked."""
    if attempt.superseded or attempt.round is None:
        return None
    return ratings.get((record.task_id, attempt.round))
