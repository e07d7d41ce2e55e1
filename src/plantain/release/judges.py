"""The cards of the judges of a run, as a release carries them: whose yes it was, and what that yes is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson

from plantain.journal.cards import FOLDER, as_json, cards_of, from_json
from plantain.journal.verdicts import PERSON
from plantain.records import JudgeCard
from plantain.records.card import no_card
from plantain.release.plan import ReleaseFile, RunFacts
from plantain.release.staging import HashingFile, Staging
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
