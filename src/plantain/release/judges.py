"""The cards of a run's judges in a release: the reliability of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from plantain.journal.cards import FOLDER, as_json, cards_of, from_json
from plantain.journal.verdicts import PERSON
from plantain.records import JudgeCard
from plantain.records.card import no_card
from plantain.release.plan import RunFacts
from plantain.release.staging import Staging
from plantain.rubrics import recorded

_KEPT = "cards"
"""In the plan: the cards when the export started."""


def run_cards(run: Path) -> dict[str, JudgeCard]:
    """Return the cards of a run, by their path in a release."""
    paths = sorted((run / FOLDER).glob("*.json"))
    return {f"{FOLDER}/{path.name}": card for path, card in zip(paths, cards_of(run), strict=True)}


def keep_cards(staging: Staging, cards: Mapping[str, JudgeCard]) -> None:
    """Store the cards in the plan."""
    recorded = {path: as_json(card) for path, card in cards.items()}
    staging.set_meta(_KEPT, orjson.dumps(recorded).decode())


def kept_cards(staging: Staging) -> dict[str, JudgeCard]:
    """Return the cards that `keep_cards` stored."""
    recorded = orjson.loads(staging.meta(_KEPT) or "{}")
    return {path: from_json(orjson.dumps(card), path) for path, card in recorded.items()}


def write_cards(staging: Staging) -> None:
    """Write each card as a file."""
    for path, card in kept_cards(staging).items():
        data = orjson.dumps(as_json(card), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        staging.write_chunks(path, lambda data=data: (data,))  # type: ignore[misc]


def who_judged(facts: RunFacts, cards: Mapping[str, JudgeCard]) -> list[str]:
    """Return a line for each judge: its card's line, or that it has none, and its number of verdicts."""
    rubric = recorded(facts.frozen).name
    lines = {card.judge: card.line for card in cards.values() if card.rubric == rubric}
    asked = {judge: n for judge, n in facts.judges.items() if not judge.startswith(PERSON)}
    return [f"{lines.get(judge, no_card(judge, rubric))} [{n:,} verdicts]" for judge, n in asked.items()]
