"""Training examples: an image, an instruction and the edited image; or two edited images, one of them better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from plantain.pixels.arrays import Pixels


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """One supervised example.

    Attributes:
        id: unique in its source.
        task: kind of edit; training sets are drawn per task.
        cluster: name shared by dependent examples (same source image or patient), which are never split.
        instruction: the instruction of the edit.
        before, after: uint8 RGB (H, W, 3), same shape.
    """

    id: str
    task: str
    cluster: str
    instruction: str
    before: Pixels = field(repr=False)
    after: Pixels = field(repr=False)


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Two edits of the same image for the same task; other attributes as for `TrainingPair`.

    Attributes:
        instruction: the winner's instruction.
        before, winner, loser: uint8 RGB (H, W, 3), same shape.
    """

    id: str
    task: str
    cluster: str
    instruction: str
    before: Pixels = field(repr=False)
    winner: Pixels = field(repr=False)
    loser: Pixels = field(repr=False)


@dataclass(frozen=True, slots=True)
class ListedExample:
    """An example whose pixels have not been read.

    Attributes:
        id, task, cluster: as for `TrainingPair`.
        reserved: True if never trained on (the validation and test splits of a release).
        final: True if of the test split, and not used for decisions such as when to stop training.
    """

    id: str
    task: str
    cluster: str
    reserved: bool = False
    final: bool = False


class PairSource(Protocol):
    """A source of training pairs.

    Attributes:
        name: readable name.
        digest: hash that changes with the data.
    """

    name: str
    digest: str

    def listed(self) -> list[ListedExample]:
        """Return every pair without pixels, in a stable order."""
        ...

    def read(self, ids: Sequence[str]) -> Iterator[TrainingPair]:
        """Yield the pairs of these ids one at a time, in the source's order."""
        ...
