"""Why edits fail, by where the editor looked: it looked at the right place and did not edit, or it looked elsewhere.

MedEBench (4.3) tells the two apart by the overlap of attention and region, among edits of low accuracy and high context
preservation, and gives no cut-offs. Here they are parameters, and what they change is shown beside the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from plantain.pixels.arrays import Floats


class FailureType(StrEnum):
    """What became of an edit."""

    EDITED = "edited"
    DAMAGED = "not accurate, surroundings damaged"
    LOOKED_THERE = "looked at the place, did not edit"
    LOOKED_ELSEWHERE = "looked elsewhere"


@dataclass(frozen=True, slots=True)
class CutOffs:
    """Where low ends and high begins.

    Attributes:
        ea: editing accuracy below this is low, in [0, 1].
        cp: context preservation from this on is high, in [-1, 1].
        iou: overlap from this on is high, in [0, 1].
    """

    ea: float = 0.4
    cp: float = 0.8
    iou: float = 0.2


STEP = 0.1
"""How far the sensitivity goes each way."""


@dataclass(frozen=True, slots=True)
class FailureShares:
    """How many edits are of each type under one choice of cut-offs; `unknown` lack one of the three scores."""

    cuts: CutOffs
    counts: dict[FailureType, int]
    unknown: int

    @property
    def known(self) -> int:
        return sum(self.counts.values())

    def share(self, kind: FailureType) -> float | None:
        """Share of the edits with all three scores; None without any."""
        return self.counts[kind] / self.known if self.known else None


def type_of(ea: float, cp: float, iou: float, cuts: CutOffs) -> FailureType:
    """The type of one edit.

    Example:
        >>> type_of(0.1, 0.95, 0.02, CutOffs()).value
        'looked elsewhere'
    """
    if ea >= cuts.ea:
        return FailureType.EDITED
    if cp < cuts.cp:
        return FailureType.DAMAGED
    return FailureType.LOOKED_THERE if iou >= cuts.iou else FailureType.LOOKED_ELSEWHERE


def failure_shares(ea: Floats, cp: Floats, iou: Floats, cuts: CutOffs) -> FailureShares:
    """Types of many edits; the arrays are of one length, NaN where unscored."""
    known = np.isfinite(ea) & np.isfinite(cp) & np.isfinite(iou)
    counts = dict.fromkeys(FailureType, 0)
    for one in zip(ea[known], cp[known], iou[known], strict=True):
        counts[type_of(float(one[0]), float(one[1]), float(one[2]), cuts)] += 1
    return FailureShares(cuts, counts, int((~known).sum()))


def sensitivity(ea: Floats, cp: Floats, iou: Floats, cuts: CutOffs) -> list[FailureShares]:
    """The same under every combination of lower, chosen and higher cut-offs, `STEP` each way."""
    return [failure_shares(ea, cp, iou, around) for around in _around(cuts)]


def _around(cuts: CutOffs) -> Iterator[CutOffs]:
    for ea in (-STEP, 0.0, STEP):
        for cp in (-STEP, 0.0, STEP):
            for iou in (-STEP, 0.0, STEP):
                yield replace(cuts, ea=max(0.0, cuts.ea + ea), cp=cuts.cp + cp, iou=max(0.0, cuts.iou + iou))
