"""Judges' cards as files: `cards/` in a run's folder, one JSON file for each judge, next to the journal.

A card is made by another run than the one that it describes, and may come while that one is being written: it is a
file of its own, replaced as a whole, without the journal's lock.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from plantain.files.opening import read_regular, replace_file
from plantain.journal.reader import JournalReader
from plantain.records import Figure, InputError, JudgeCard
from plantain.records.judging import NOT_VALIDATED, no_card

FOLDER = "cards"
LARGEST = 4 << 20
"""Bytes of a card at most."""
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
_OF_RATES = ("controls", "defects", "repeats", "agreement")


def as_json(card: JudgeCard) -> dict[str, object]:
    """Convert a card to JSON values, as `judge audit --json` prints it and `read_card` reads it.

    Each figure also has its `value` under its kind, e.g. "rate".
    """
    rates = {name: _figures(getattr(card, name)) for name in _OF_RATES}
    gaps = {modality: _figures(own) for modality, own in card.gaps.items()}
    gate = asdict(card.gate) | {"standing": card.gate.standing}
    return asdict(card) | {"gate": gate, "line": card.line, **rates, "gaps": gaps}


def _figures(figures: Mapping[str, Figure]) -> dict[str, dict[str, object]]:
    return {name: {**asdict(figure), figure.kind: figure.value} for name, figure in figures.items()}


def from_json(data: bytes, where: str) -> JudgeCard:
    """Parse a card from the JSON of `as_json`. Raise InputError, starting with `where`, if it is invalid."""
    try:
        return TypeAdapter(JudgeCard).validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            f"{where}: {'.'.join(map(str, first['loc'])) or 'card'}: {first['msg']}; expected the output "
            "of plantain judge audit --json"
        ) from error


def write_card(path: Path, card: JudgeCard) -> None:
    """Write a card's JSON file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, orjson.dumps(as_json(card), option=_OPTIONS))


def read_card(path: Path) -> JudgeCard:
    """Read a judge's card from its JSON file. Raise InputError, naming the file, if it is invalid."""
    return from_json(read_regular(path, str(path), LARGEST), str(path))


def keep_card(run: Path, card: JudgeCard) -> Path:
    """Store a card in a run's folder, replacing that of the same judge and rubric; return its path."""
    # Judges' names have slashes, and one judge has a card for each rubric.
    plain = re.sub(r"[^a-z0-9]+", "-", f"{card.judge} {card.rubric}".lower()).strip("-")[:80]
    digest = hashlib.sha256(f"{card.judge}\x1f{card.rubric}".encode()).hexdigest()[:8]
    path = run / FOLDER / f"{plain}-{digest}.json"
    write_card(path, card)
    return path


def cards_of(run: Path) -> list[JudgeCard]:
    """Return the judges' cards in a run's folder, sorted by file name. Raise InputError for an unreadable one."""
    return list(cards_by_path(run).values())


def cards_by_path(folder: Path) -> dict[str, JudgeCard]:
    """Return the cards in a run or a release by their path in it. Raise InputError for an unreadable card."""
    paths = sorted((folder / FOLDER).glob("*.json"))
    return {f"{FOLDER}/{path.name}": read_card(path) for path in paths}


def card_for(cards: Iterable[JudgeCard], judge: str, rubric: str, fingerprint: str = "") -> JudgeCard | None:
    """Find a judge's card for a rubric, and unless "" for a fingerprint (prompt and version); None if it has none."""
    for card in cards:
        if (card.judge, card.rubric) == (judge, rubric) and fingerprint in ("", card.fingerprint):
            return card
    return None


@dataclass(frozen=True, slots=True)
class Standing:
    """A judge's reliability: its card, if any, and the line that must accompany its numbers."""

    judge: str
    card: JudgeCard | None
    line: str

    @property
    def barred(self) -> bool:
        """True if the judge was not shown to be reliable, so that its scores must not rank models."""
        return self.card is not None and not self.card.gate.rank

    @property
    def qualifies(self) -> bool:
        """True if its accepted edits may be called qualified without the remark "judge not validated"."""
        return self.card is not None and self.card.gate.qualify


def standing_of(cards: Iterable[JudgeCard], judge: str, rubric: str, fingerprint: str = "") -> Standing:
    """Return a judge's reliability; if only a card for another prompt, version or rubric exists, the line names it."""
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
    """Return the reliability of a build's judges, in order; then that of the panel, if it has a card."""
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
    """Return " (judge not validated)", to follow a rate; "" if all judges were shown to be reliable."""
    return "" if judges and all(one.qualifies for one in judges) else f" ({NOT_VALIDATED})"
