"""What is learned from: an image, an instruction, and the image after; or two images after, of which one is better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Pixels


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """One supervised example.

    Attributes:
        id: unique in its source.
        task: what kind of edit it is; training sets are drawn per task.
        cluster: what it shares with dependent examples (source image, patient); never split.
        instruction: what was asked for.
        before, after: uint8 RGB (H, W, 3), same shape.
        region: bool (H, W), where the edit was made; None when nobody knows. Nothing is learned from it.
    """

    id: str
    task: str
    cluster: str
    instruction: str
    before: Pixels = field(repr=False)
    after: Pixels = field(repr=False)
    region: npt.NDArray[np.bool_] | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """One preference: of two edits of the same image for the same task, which is better.

    Attributes:
        id, task, cluster: as for `TrainingPair`.
        instruction: the winner's.
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
    """An example before its pixels are read.

    Attributes:
        id, task, cluster: as for `TrainingPair`.
        reserved: never learned from (a release's own validation and test split).
        final: of a release's own test split: nothing may be chosen by it either, such as when a training ends.
    """

    id: str
    task: str
    cluster: str
    reserved: bool = False
    final: bool = False


class PairSource(Protocol):
    """Where training pairs come from; pixels are read one pair at a time."""

    @property
    def name(self) -> str:
        """What a person calls it."""
        ...

    @property
    def digest(self) -> str:
        """Changes whenever what it holds does."""
        ...

    def listed(self) -> list[ListedExample]:
        """Every pair, without pixels, in a stable order."""
        ...

    def read(self, ids: Sequence[str]) -> Iterator[TrainingPair]:
        """The pairs of these ids, one at a time, in an order of the source's own that never changes."""
        ...
