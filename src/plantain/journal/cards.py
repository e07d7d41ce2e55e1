"""Judges' cards as files: `cards/` in a run's folder, one JSON file for each judge, beside the journal.

A card is made by another run than the one that it speaks about, and may come while that one is being written: so it is
a file of its own, replaced whole, and the journal's lock is not needed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from plantain.files.opening import read_regular
from plantain.files.writing import replace_file
from plantain.journal.reader import JournalReader
from plantain.records import Figure, InputError, JudgeCard
from plantain.records.card import SELF_CONSISTENCY, no_card

FOLDER = "cards"
LARGEST = 4 << 20
"""Bytes of a card at most."""
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
_OF_RATES = ("controls", "defects", "repeats", "agreement")


def as_json(card: JudgeCard) -> dict[str, object]:
    """The card as `judge audit --json` prints it; `read_card` reads it back."""
    gate = card.gate
    return {
        "judge": card.judge,
        "fingerprint": card.fingerprint,
        "rubric": card.rubric,
        "gate": {
            "qualify": gate.qualify,
            "rank": gate.rank,
            "standing": gate.standing,
            "why": list(gate.why),
            "cells": {modality: dict(cells) for modality, cells in gate.cells.items()},
        },
        "line": card.line,
        "set": card.set,
        "pictures": dict(card.pictures),
        **{name: {k: _figure(f) for k, f in getattr(card, name).items()} for name in _OF_RATES},
        "gaps": {m: {k: _figure(f) for k, f in own.items()} for m, own in card.gaps.items()},
        "cost_usd": card.cost_usd,
        "seconds": card.seconds,
        "verdicts": card.verdicts,
        "unanswered": card.unanswered,
        "left_out": dict(card.left_out),
    }


def _figure(figure: Figure) -> dict[str, object]:
    record: dict[str, object] = {
        "n": figure.n,
        figure.kind: _rounded(figure.value),
        "low": _rounded(figure.low),
        "high": _rounded(figure.high),
        "pictures": figure.pictures,
    }
    return record | ({"reason": figure.reason} if figure.reason else {})


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def from_json(data: bytes, where: str) -> JudgeCard:
    """The inverse of `as_json`, every field checked. Raises InputError, which begins with `where`."""
    try:
        record = orjson.loads(data)
        if not isinstance(record, dict) or not isinstance(record.get("gate"), dict):
            raise ValueError("a card is an object with judge and gate")
        fields = {name: value for name, value in record.items() if name != "line"}
        fields["gate"] = {name: value for name, value in record["gate"].items() if name != "standing"}
        for name in _OF_RATES:
            fields[name] = _figures(record.get(name, {}))
        fields["gaps"] = {m: _figures(own) for m, own in dict(record.get("gaps", {})).items()}
        return _cards().validate_python(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            f"{where}: {'.'.join(map(str, first['loc'])) or 'card'}: {first['msg']}; expected the output "
            "of plantain judge audit --json"
        ) from error
    except (orjson.JSONDecodeError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{where}: not a judge's card ({error}); plantain judge audit makes one") from error


def _figures(records: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, object]]:
    known = {"n", "low", "high", "pictures", "reason"}
    found = {}
    for name, figure in records.items():
        (kind,) = figure.keys() - known
        found[name] = {
            **{key: figure[key] for key in figure.keys() & known},
            "kind": kind,
            "value": figure[kind],
        }
    return found


@cache
def _cards() -> TypeAdapter[JudgeCard]:
    return TypeAdapter(JudgeCard)


def write_card(path: Path, card: JudgeCard) -> None:
    """Writes a card's JSON file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, orjson.dumps(as_json(card), option=_OPTIONS))


def read_card(path: Path) -> JudgeCard:
    """Raises InputError, in one line that names the file."""
    return from_json(read_regular(path, str(path), LARGEST), str(path))


def keep_card(run: Path, card: JudgeCard) -> Path:
    """Puts a card beside a run's journal, in place of an older one of the same judge and rubric; returns its path."""
    path = run / FOLDER / f"{_file_name(card)}.json"
    write_card(path, card)
    return path


def keep_cards(run: Path, files: Iterable[Path]) -> None:
    """Puts cards that were made elsewhere beside a run's journal; all are read before any is kept.

    Raises:
        InputError: a file is no card, or the folder is no run.
    """
    cards = [read_card(path) for path in files]
    if cards:
        JournalReader.open(run).close()
    for card in cards:
        keep_card(run, card)


def cards_of(run: Path) -> list[JudgeCard]:
    """The cards that lie beside a run's journal, by file name. Raises InputError for one that cannot be read."""
    folder = run / FOLDER
    return [read_card(path) for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []


def card_for(cards: Iterable[JudgeCard], judge: str, rubric: str, fingerprint: str = "") -> JudgeCard | None:
    """The card of a judge by a rubric; not that of another prompt or version, where a fingerprint is given."""
    return next(
        (
            card
            for card in cards
            if (card.judge, card.rubric) == (judge, rubric) and fingerprint in ("", card.fingerprint)
        ),
        None,
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands beside the numbers of one judge.

    Attributes:
        judge: its name; card: None where nobody has measured it.
        line: the card's, or that there is none.
    """

    judge: str
    card: JudgeCard | None
    line: str

    @property
    def barred(self) -> bool:
        """Whether the judge has failed its gate: then it marks no best and ranks nothing."""
        return self.card is not None and not self.card.gate.rank

    @property
    def qualifies(self) -> bool:
        """Whether its yes may be called qualified without saying that this is self-consistency."""
        return self.card is not None and self.card.gate.qualify


def standing_of(cards: Iterable[JudgeCard], judge: str, rubric: str, fingerprint: str = "") -> Standing:
    """What a judge's numbers rest on; a card of another prompt, version or rubric is named, and does not count."""
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
    """What the judges of a build rest on, in the order of the panel; of a panel also what it rests on together."""
    begun: dict[str, str] = orjson.loads(reader.meta("method") or "{}")
    frozen = reader.header.frozen
    models = frozen.get("models")
    judges = models.get("judge") if isinstance(models, dict) else None
    names = list(dict.fromkeys(map(str, judges))) if isinstance(judges, list) else []
    rubric, cards = _rubric_name(frozen), cards_of(reader.run)
    prints = dict(
        fingerprint.split(": ", 1)
        for role, fingerprint in begun.items()
        if role.startswith("judge ") and ": " in fingerprint
    )
    found = [standing_of(cards, name, rubric, prints.get(name, "")) for name in names]
    panel = (
        card_for(cards, ",".join(map(str, judges)), rubric)
        if isinstance(judges, list) and len(judges) > 1
        else None
    )
    return found + ([Standing(panel.judge, panel, panel.line)] if panel else [])


def _rubric_name(frozen: Mapping[str, object]) -> str:
    """A run that says nothing of its rubric judged by Med-Banana's."""
    rubric = frozen.get("rubric")
    return str(rubric.get("name", "")) if isinstance(rubric, Mapping) else "med-banana"


def consistency(judges: Sequence[Standing]) -> str:
    """What stands behind "qualified": that this is self-consistency, unless every judge has passed its gate."""
    return "" if judges and all(one.qualifies for one in judges) else f" ({SELF_CONSISTENCY})"


def _file_name(card: JudgeCard) -> str:
    """Letters, digits and a hash: judges' names hold slashes, and one judge has a card for each rubric."""
    plain = re.sub(r"[^a-z0-9]+", "-", f"{card.judge} {card.rubric}".lower()).strip("-")[:80]
    digest = hashlib.sha256(f"{card.judge}\x1f{card.rubric}".encode()).hexdigest()[:8]
    return f"{plain}-{digest}"
