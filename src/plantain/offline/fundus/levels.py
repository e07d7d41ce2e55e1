"""How much of a finding to draw: the words of an instruction as numbers, chosen by the rng when nothing was said."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plantain.offline.language import Intent

EXTENTS = ("small", "moderate", "large")
CONSPICUITIES = ("subtle", "moderate", "marked")
SOFTNESSES = ("crisp", "medium", "soft")


@dataclass(frozen=True, slots=True)
class Levels:
    """Each word as an index 0, 1 or 2 in the order of the tuples above."""

    extent: int
    conspicuity: int
    softness: int

    def words(self) -> str:
        """The levels as they are said in a note."""
        return f"{EXTENTS[self.extent]}, {CONSPICUITIES[self.conspicuity]}"


def choose_levels(intent: Intent, rng: np.random.Generator) -> Levels:
    """Reads extent, conspicuity and softness; draws what was not said, avoiding the barely visible."""
    drawn = rng.random(2)
    return Levels(
        _index(EXTENTS, intent.extent, 1 if drawn[0] < 0.6 else 2),
        _index(CONSPICUITIES, intent.conspicuity, 1 if drawn[1] < 0.6 else 2),
        _index(SOFTNESSES, intent.softness, 1),
    )


def _index(words: tuple[str, ...], word: str | None, default: int) -> int:
    return words.index(word) if word in words else default
