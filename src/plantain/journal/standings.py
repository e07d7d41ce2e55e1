"""How far judges can be relied on: the card of a judge, and the lines that tables and pages print of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from plantain.journal.cards import cards_of
from plantain.journal.reader import JournalReader
from plantain.records import JudgeCard
from plantain.records.judging import SELF_CONSISTENCY, no_card


def card_for(cards: Iterable[JudgeCard], judge: str, rubric: str, fingerprint: str = "") -> JudgeCard | None:
    """Return the card of a judge by a rubric, and if a fingerprint is given, of that prompt and version."""
    for card in cards:
        if (card.judge, card.rubric) == (judge, rubric) and fingerprint in ("", card.fingerprint):
            return card
    return None


@dataclass(frozen=True, slots=True)
class Standing:
    """A judge with its card, if any, and the line that accompanies its numbers."""

    judge: str
    card: JudgeCard | None
    line: str

    @property
    def barred(self) -> bool:
        """Return True if the judge has failed its gate: then it marks no best and ranks nothing."""
        return self.card is not None and not self.card.gate.rank

    @property
    def qualifies(self) -> bool:
        """Return True if its yes may be called qualified without the remark on self-consistency."""
        return self.card is not None and self.card.gate.qualify


def standing_of(cards: Iterable[JudgeCard], judge: str, rubric: str, fingerprint: str = "") -> Standing:
    """Return the standing of a judge; a card of another prompt, version or rubric is named, and not used."""
    known = list(cards)
    card = card_for(known, judge, rubric, fingerprint)
    if card is not None:
        return Standing(judge, card, card.line)
    others = sorted({one.rubric for one in known if one.judge == judge})
    why = no_card(judge, rubric)
    if rubric in others:
        why += "; there is one of another prompt or version"
    elif others:
        why += f"; there is one by another rubric, {' and '.join(others)}"
    return Standing(judge, None, why)


def standings_of(reader: JournalReader) -> list[Standing]:
    """Return the standings of a build's judges, in the order of the panel; then that of the panel if it has a card."""
    frozen, cards = reader.header.frozen, cards_of(reader.run)
    models, rubric = frozen.get("models"), frozen.get("rubric")
    judges = models.get("judge") if isinstance(models, dict) else None
    names = [str(name) for name in judges] if isinstance(judges, list) else []
    by = str(rubric.get("name", "")) if isinstance(rubric, dict) else "med-banana"  # an import may name none
    method: dict[str, str] = orjson.loads(reader.meta("method") or "{}")
    prints = dict(line.split(": ", 1) for role, line in method.items() if role.startswith("judge "))
    found = [standing_of(cards, name, by, prints.get(name, "")) for name in dict.fromkeys(names)]
    panel = card_for(cards, ",".join(names), by) if len(names) > 1 else None
    return found + ([Standing(panel.judge, panel, panel.line)] if panel else [])


def consistency(judges: Sequence[Standing]) -> str:
    """Return the remark behind "qualified": that this is self-consistency, unless every judge has passed its gate."""
    return "" if judges and all(one.qualifies for one in judges) else f" ({SELF_CONSISTENCY})"
