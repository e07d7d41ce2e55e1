"""Compares the table of known models with what a key can see today."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from plantain.models.hosted.known import known_models, today

OF_NO_USE = re.compile(
    r"audio|codex|computer-use|embedding|instruct|live|moderation|native|realtime|robotics|search|transcribe|tts"
)
"""Kinds of models that fill none of our roles."""

SNAPSHOT = re.compile(r"-(\d{4}-\d\d-\d\d|\d{3}|\d\d-\d{4})\Z")
"""A dated form of another id."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One provider's differences.

    Attributes:
        provider: its name.
        gone: in the table as served, and not seen: retired early, or not for this key.
        risen: in the table as ended, and still seen.
        strange: seen and not in the table.
    """

    provider: str
    gone: tuple[str, ...]
    risen: tuple[str, ...]
    strange: tuple[str, ...]

    def lines(self) -> list[str]:
        """For a person; empty where the table agrees."""
        return [
            *(f"{name}: in our table, and this key does not see it" for name in self.gone),
            *(f"{name}: ended by our table, and this key still sees it" for name in self.risen),
            *(f"{name}: seen, and not in our table" for name in self.strange),
        ]


def drift(provider: str, seen: Iterable[str], day: date | None = None) -> Drift:
    """Compares the table with the ids that a provider lists.

    Args:
        provider: "gemini" or "openai".
        seen: ids as listed, without "models/".
        day: by which a model has ended; today by default.
    """
    now = (day or today()).isoformat()
    ids = set(seen)
    ours = {
        name.partition("/")[2]: model
        for name, model in known_models().items()
        if name.startswith(f"{provider}/")
    }
    ended = {id for id, model in ours.items() if model.retired and model.retired <= now}
    strange = {
        id
        for id in ids - ours.keys()
        if id.startswith(("gemini-", "gpt-"))
        and not OF_NO_USE.search(id)
        and SNAPSHOT.sub("", id) not in ours
    }

    def named(some: set[str]) -> tuple[str, ...]:
        return tuple(f"{provider}/{id}" for id in sorted(some))

    return Drift(provider, named(ours.keys() - ended - ids), named(ended & ids), named(strange))
