"""The cards of a run's judges in a release: the reliability of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from plantain.journal.cards import FOLDER, as_json, cards_of
from plantain.journal.verdicts import PERSON
from plantain.records import JudgeCard
from plantain.records.card import no_card
from plantain.release.plan import RunFacts
from plantain.release.staging import Staging
from plantain.rubrics import recorded


def cards_by_path(folder: Path) -> dict[str, JudgeCard]:
    """Return the cards of a run or a release, by their path in it."""
    paths = sorted((folder / FOLDER).glob("*.json"))
    return {f"{FOLDER}/{path.name}": card for path, card in zip(paths, cards_of(folder), strict=True)}


def write_cards(staging: Staging, cards: Mapping[str, JudgeCard]) -> None:
    """Write each card as a file."""
    for path, card in cards.items():
        data = orjson.dumps(as_json(card), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        staging.write_chunks(path, lambda data=data: (data,))  # type: ignore[misc]


def who_judged(facts: RunFacts, cards: Mapping[str, JudgeCard]) -> list[str]:
    """Return a line for each judge: its card's line, or that it has none, and its number of verdicts."""
    rubric = recorded(facts.frozen).name
    lines = {card.judge: card.line for card in cards.values() if card.rubric == rubric}
    asked = {judge: n for judge, n in facts.judges.items() if not judge.startswith(PERSON)}
    return [f"{lines.get(judge, no_card(judge, rubric))} [{n:,} verdicts]" for judge, n in asked.items()]
