"""What every metric class shares: it keeps the score of each sample and gives their mean, with what is missing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from plantain.records import Score


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean over scored samples.

    Attributes:
        value: the mean; None when nothing was scored.
        n: samples behind it.
        unscored: how many samples have no score, by reason.
    """

    value: float | None
    n: int
    unscored: Mapping[str, int]

    @property
    def coverage(self) -> float | None:
        """The share of samples that have a score, in [0, 1]; None without samples."""
        total = self.n + sum(self.unscored.values())
        return self.n / total if total else None


class Metric:
    """A measure of one sample, accumulated over samples.

    A subclass sets `name` and `higher_is_better`, and has an `update` that scores one sample through the
    function of the same name and keeps it.
    """

    name: ClassVar[str]
    higher_is_better: ClassVar[bool]

    def __init__(self) -> None:
        self.scores: list[Score] = []

    def keep(self, score: Score) -> Score:
        """Adds one sample's score and returns it.

        Raises:
            ValueError: the score is NaN or infinite; whoever cannot measure says `unscored`.
        """
        if score.value is not None and not math.isfinite(score.value):
            raise ValueError(f"{self.name}: a score must be finite or unscored, not {score.value!r}")
        self.scores.append(score)
        return score

    def compute(self) -> Mean:
        """The mean of the scores so far; what is unscored counts in the coverage, never in the mean."""
        values = [score.value for score in self.scores if score.value is not None]
        reasons = Counter(score.reason for score in self.scores if score.value is None)
        value = math.fsum(values) / len(values) if values else None
        return Mean(value, len(values), dict(sorted(reasons.items())))
