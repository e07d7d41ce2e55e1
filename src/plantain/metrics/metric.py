"""What every metric is: one class that measures an output, says of itself what tables need, and gives means."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from plantain.pixels.arrays import Image, Mask, Pixels
from plantain.records import Score

if TYPE_CHECKING:
    from plantain.metrics.networks.at_hand import Networks


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


class MetricSample(Protocol):
    """What a metric is handed of a sample; each picture is read when it is first asked for."""

    @property
    def before(self) -> Pixels:
        """The image before, uint8 (H, W, 3)."""
        ...

    @property
    def truth(self) -> Pixels | None:
        """The real image after, of the same size; None where there is none."""
        ...

    @property
    def roi(self) -> Mask | None:
        """The region of interest, bool (H, W)."""
        ...

    @property
    def roi_grey(self) -> Image | None:
        """The region as the grey levels of its file, uint8 (H, W)."""
        ...

    @property
    def field(self) -> Mask:
        """What of the image before is picture rather than background, bool (H, W)."""
        ...

    @property
    def prompt(self) -> str:
        """The instruction."""
        ...

    @property
    def detailed(self) -> str:
        """The description of the change; "" where there is none."""
        ...


NEEDS = ("truth", "roi", "prompt", "detailed")
"""What a metric can need of a sample that not every sample has."""

Measured = Score | tuple[Score, Mapping[str, Any]]
"""A score, or one with whatever a reader should know of the number."""


class Metric:
    """A measure of one output against its sample, with all that tables say of it; it also accumulates samples.

    A subclass sets the attributes and `measure`. Ours have an `update` too, which scores one sample through the
    function of the same name and keeps the score for `compute`.

    Attributes:
        name: in the journal and on the command line; of one that uses a network, followed by that one's name unless it
            has the published weights.
        label, unit: for a reader; the unit is "" for a bare number.
        version: raised whenever a number could change; what another version scored is scored again.
        higher_is_better: which way is up.
        low, high: the range, where it is bounded.
        digits: after the decimal point, in tables.
        needs: out of `NEEDS`; where a sample lacks one the output is unscored, and `measure` is not called.
        column: its heading in tables; "" for its name.
        uses: what of this machine it is made with: a field of `Networks`; "" for nothing.
        alone: one measurement at a time, for it keeps a network that uses all cores by itself.
    """

    name: str
    label: ClassVar[str]
    unit: ClassVar[str] = ""
    version: str = "1"
    higher_is_better: ClassVar[bool] = True
    low: ClassVar[float | None] = None
    high: ClassVar[float | None] = None
    digits: ClassVar[int] = 2
    needs: ClassVar[tuple[str, ...]] = ()
    column: ClassVar[str] = ""
    uses: ClassVar[str] = ""
    alone: ClassVar[bool] = False

    @classmethod
    def open(cls, networks: Networks) -> Metric | str:
        """The metric, made with what this machine has; or why it cannot be, "" where `networks` says so."""
        return cls()

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        """The score of an output.

        Args:
            sample: what it is an edit of.
            output: uint8 (H, W, 3), of the sample's size.

        Raises:
            ValueError: an image that this cannot take; the output is then unscored with that reason.
        """
        raise NotImplementedError

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
