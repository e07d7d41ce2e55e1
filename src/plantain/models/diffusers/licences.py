"""The terms under which weights come, and the gate before those that have conditions."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from plantain.models.diffusers.weights import (
    NotReady,
    hub_name,
    is_hub_id,
)
from plantain.models.registry import known_weights

CONDITIONS = re.compile(
    r"non-?commercial|\bnc\b|-nc-|research|gated|llama|gemma|^other$|community", re.IGNORECASE
)
"""Words in a licence's name that indicate restricted use."""

UNKNOWN = "unknown"

_HEADER = re.compile(r"\A---\s*\n(.*?)\n---", re.DOTALL)
_FIELD = re.compile(
    r"^(license|license_name|extra_gated_prompt|extra_gated_fields)\s*:[ \t]*(.*)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class WeightsTerms:
    """A licence's name, and True if it has conditions that a user must accept."""

    licence: str
    conditions: bool


def terms_of(name: str, folder: Path | None, by_class: str = "") -> WeightsTerms:
    """Return the licence terms of weights: from their model card, else plantain's table, else their class.

    Args:
        name: hub id or folder.
        folder: folder of the weights; None if they are not on disk.
        by_class: the licence of all weights of their pipeline class; "" if it differs.
    """
    known = known_weights().get(name) or known_weights().get(hub_name(folder) if folder is not None else "")
    card = _card(folder) if folder is not None else None
    if card is not None:
        gated = known.conditions if known is not None else False
        return WeightsTerms(card.licence, card.conditions or gated)
    if known is not None:
        return WeightsTerms(known.licence, known.conditions or known.licence == UNKNOWN)
    if by_class:
        return WeightsTerms(by_class, bool(CONDITIONS.search(by_class)))
    return WeightsTerms(UNKNOWN, is_hub_id(name) or (folder is not None and bool(hub_name(folder))))


def check_terms(name: str, terms: WeightsTerms, accepted: Collection[str]) -> None:
    """Check that a licence has no conditions, or that the user accepted it by name.

    Args:
        name: name of the weights; `terms`: their terms.
        accepted: names of the licences that the user accepted.

    Raises:
        NotReady: it was not accepted; the message names the licence and the option that accepts it.
    """
    if not terms.conditions or terms.licence in accepted:
        return
    if terms.licence == UNKNOWN:
        raise NotReady(
            f"{name}: the licence of these weights is unknown; check where "
            f'they are from, and if you may use them write [providers.diffusers] accept_licence = ["{UNKNOWN}"]'
        )
    raise NotReady(
        f"{name}: these weights come under {terms.licence!r}, which is not free for every use; read it, and if you "
        f'may use them write [providers.diffusers] accept_licence = ["{terms.licence}"]'
    )


def _card(folder: Path) -> WeightsTerms | None:
    """Return the licence in the header of the weights' README; None if absent."""
    path = (folder if folder.is_dir() else folder.parent) / "README.md"
    try:
        header = _HEADER.match(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    fields = dict(_FIELD.findall(header.group(1))) if header else {}
    licence = (fields.get("license_name") or fields.get("license") or "").strip(" \"'").lower()
    if not licence:
        return None
    gated = "extra_gated_prompt" in fields or "extra_gated_fields" in fields
    return WeightsTerms(licence, gated or bool(CONDITIONS.search(licence)))
