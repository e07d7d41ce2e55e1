"""Compares the table of known models with what a key can see today, and with what the installed SDKs name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib import import_module
from typing import Literal, get_args, get_origin

from plantain.models.hosted.known import SNAPSHOT, known_model, known_models, stale, today

OF_NO_USE = re.compile(
    r"audio|codex|computer-use|customtools|cyber|embedding|gpt-[34](\.5)?(-|$)|gpt-5\.1-mini|instruct|latest|live|moderation|native"
    r"|omni|realtime|robotics|rosalind|search|transcribe|tts"
)
"""Kinds of models that fill none of our roles, aliases that move, and generations that have ended."""

NAMED_IN = (
    ("openai", "openai.types.shared.chat_model", "ChatModel"),
    ("openai", "openai.types.image_model", "ImageModel"),
    ("gemini", "google.genai._gaos.types.interactions.model", "Model"),
)
"""Where the SDKs name the models that they were made for: provider, module, type."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One provider's differences.

    Attributes:
        provider: its name.
        gone: in the table as served, and not seen: retired early, or not for this key.
        risen: in the table as ended, and still seen.
        strange: seen and not in the table.
        ends: seen, with the day on which its provider says that it ends, where the table says another or none.
    """

    provider: str
    gone: tuple[str, ...]
    risen: tuple[str, ...]
    strange: tuple[str, ...]
    ends: dict[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """For a person; empty where the table agrees."""
        return [
            *(f"{name}: in our table, and this key does not see it" for name in self.gone),
            *(f"{name}: ended by our table, and this key still sees it" for name in self.risen),
            *(f"{name}: seen, and not in our table" for name in self.strange),
            *(
                f"{name}: ends on {end} by its provider, and not by our table"
                for name, end in self.ends.items()
            ),
        ]


def named_by_sdks() -> dict[str, set[str]]:
    """Provider -> the ids that its installed SDK names; none of one whose SDK is missing or names none."""
    found: dict[str, set[str]] = {}
    for provider, module, kind in NAMED_IN:
        try:
            ids = _literals(getattr(import_module(module), kind, None))
        except ModuleNotFoundError:
            continue
        if ids:
            found.setdefault(provider, set()).update(ids)
    return found


def _literals(kind: object) -> set[str]:
    """The strings of a Literal, also inside a Union."""
    if get_origin(kind) is Literal:
        return {value for value in get_args(kind) if isinstance(value, str)}
    return {value for inner in get_args(kind) for value in _literals(inner)}


def drift(provider: str, seen: Mapping[str, str], day: date | None = None) -> Drift:
    """Compares the table with the ids that a provider lists.

    Args:
        provider: "gemini" or "openai".
        seen: ids as listed, without "models/" -> the day on which each ends, ISO; "" where that is not announced.
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

    rows = {f"{provider}/{id}": end for id, end in sorted(seen.items()) if end}
    ends = {name: end for name, end in rows.items() if (row := known_model(name)) and row.retired != end}
    return Drift(provider, named(ours.keys() - ended - ids), named(ended & ids), named(strange), ends)


if __name__ == "__main__":
    unlisted = [
        f"{name}: named by the installed SDK, and not in our table"
        for provider, ids in named_by_sdks().items()
        for name in drift(provider, dict.fromkeys(ids, "")).strange
    ]
    print("\n".join(stale() + unlisted) or "nothing has aged")
