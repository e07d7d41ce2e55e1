"""A probe's causal controls: pictures made so that the right answer is known from how they were made.

AUC on held-out pictures is no evidence: a network that learned where pictures come from has it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.areas import clustered_area
from plantain.metrics.statistics.clusters import clustered_rate
from plantain.metrics.statistics.gap import shares
from plantain.models.probe.card import Area, ControlRate, needs
from plantain.models.probe.frame import SIDE, Frame
from plantain.train.probe.changes import (
    blended,
    blurred,
    core,
    covered,
    mirrored,
    recoded,
    rough_mass,
    with_border_of,
    with_tones_of,
)
from plantain.train.probe.pictures import LabelledFrames

FindingLogits = Callable[[list[Frame]], npt.NDArray[np.float64]]
"""Calibrated logits (N, findings) of frames."""

Seen = Callable[[LabelledFrames], npt.NDArray[np.float32]]
"""Where a probe sees each finding, (N, findings, 2)."""

DEPTH, SOFT = 0.07, 2.0
"""How far inside the outline the exchanged inside ends, as a share of the side, and the sigma of its edge in pixels."""

COVER, ELSEWHERE = 0.28, 0.12
"""Radius of a cover where the finding was seen, and of one elsewhere, as a share of the side."""

ControlRates = dict[str, dict[str, ControlRate]]


def control_rates(
    pictures: LabelledFrames,
    asked: FindingLogits,
    seen: Seen,
    margins: Sequence[float],
    seed: int,
    most: int = 200,
) -> ControlRates:
    """How often a probe is right, by control and finding.

    Args:
        pictures: that it has not learned from.
        asked, seen: the probe.
        margins: of its verdicts, by finding.
        seed: of the draws.
        most: pictures of each finding for each control.

    Returns:
        Rates with intervals over groups.
    """
    rng = np.random.default_rng(seed)
    healthy = np.flatnonzero(pictures.healthy)
    rates: ControlRates = {}
    for column, name in enumerate(pictures.findings):
        cases = rng.permutation(np.flatnonzero(pictures.labels[:, column]))[:most]
        others = rng.choice(healthy, len(cases), replace=len(healthy) < len(cases))
        case = _Cases(pictures, column, cases, others, asked, float(margins[column]))
        for what, right in (*_inside(case), *_removed(case), *_covered(case, seen, rng)):
            own = pictures.groups[cases].tolist()
            rates.setdefault(what, {})[name] = rate_of(list(zip(own, right.tolist(), strict=True)), what)
    masses = rng.permutation(healthy)[:most]
    above = asked([rough_mass(pictures.frames[k], rng) for k in masses]) >= 0
    halves = [asked([mirrored(pictures.frames[k], side) for k in masses]) < 0 for side in (0, 1)]
    own = pictures.groups[masses].tolist()
    for column, name in enumerate(pictures.findings):
        answers = {
            "independent masses on healthy pictures": ~above[:, column],
            "healthy halves mirrored": halves[0][:, column] & halves[1][:, column],
        }
        for what, good in answers.items():
            rates.setdefault(what, {})[name] = rate_of(list(zip(own, good.tolist(), strict=True)), what)
    return rates


@dataclass(frozen=True, slots=True)
class _Cases:
    """Pictures with one finding, and beside each a healthy one."""

    pictures: LabelledFrames
    column: int
    cases: npt.NDArray[np.intp]
    others: npt.NDArray[np.intp]
    asked: FindingLogits
    margin: float

    @property
    def pairs(self) -> list[tuple[Frame, Frame]]:
        return [
            (self.pictures.frames[case], self.pictures.frames[other])
            for case, other in zip(self.cases, self.others, strict=True)
        ]

    def logits(self, made: list[Frame]) -> npt.NDArray[np.float64]:
        return np.asarray(self.asked(made)[:, self.column])

    def certified(self, made: list[Frame]) -> npt.NDArray[np.bool_]:
        """Whether a verdict would call the finding removed in what was made of the cases."""
        before, after = self.logits([case for case, _ in self.pairs]), self.logits(made)
        return np.asarray((after < 0) & (before - after > self.margin))


_Answers = Iterator[tuple[str, npt.NDArray[np.bool_]]]


def _inside(case: _Cases) -> _Answers:
    there = [blended(h, c, core(h, c, DEPTH, SOFT), matched=False) for c, h in case.pairs]
    yield "a case's inside in a healthy rim", case.logits(there) >= 0
    gone = [blended(c, h, core(c, h, DEPTH, SOFT), matched=False) for c, h in case.pairs]
    yield "a healthy inside in a case's rim", case.logits(gone) < 0
    yield "good removals certified", case.certified(gone)


def _removed(case: _Cases) -> _Answers:
    """Of the two mirrored halves at least one shows the finding, nobody knows which: not both may be certified."""
    halves = [case.certified([mirrored(c, side) for c, _ in case.pairs]) for side in (0, 1)]
    yield "mirrored removals that show it twice", ~(halves[0] & halves[1])


def _covered(case: _Cases, seen: Seen, rng: np.random.Generator) -> _Answers:
    places = seen(case.pictures.chosen(case.cases))[:, case.column]
    both = list(zip(case.pairs, places, strict=True))
    here = [covered(c, h, (float(p[0]), float(p[1])), COVER * SIDE) for (c, h), p in both]
    yield "the finding's place covered", case.logits(here) < 0
    away = [covered(c, h, _away(p, rng), ELSEWHERE * SIDE) for (c, h), p in both]
    yield "another place covered", case.logits(away) >= 0


def exchanged_areas(pictures: LabelledFrames, asked: FindingLogits, seed: int) -> dict[str, dict[str, Area]]:
    """AUC by finding after borders, codec, sharpness or tones were exchanged between cases and others."""
    rng = np.random.default_rng(seed)
    healthy, cases = np.flatnonzero(pictures.healthy), np.flatnonzero(~pictures.healthy)
    ill = ~pictures.healthy
    other = [pictures.frames[int(rng.choice(healthy if case else cases))] for case in ill]
    changes: Mapping[str, Callable[[int], Frame]] = {
        "borders exchanged": lambda k: with_border_of(pictures.frames[k], other[k]),
        "histograms exchanged": lambda k: with_tones_of(pictures.frames[k], other[k]),
        "cases encoded at 30, others at 95": lambda k: recoded(pictures.frames[k], 30 if ill[k] else 95),
        "cases encoded at 95, others at 30": lambda k: recoded(pictures.frames[k], 95 if ill[k] else 30),
        "cases blurred": lambda k: blurred(pictures.frames[k], 0.9) if ill[k] else pictures.frames[k],
        "others blurred": lambda k: pictures.frames[k] if ill[k] else blurred(pictures.frames[k], 0.9),
    }
    return {
        what: areas_of(pictures, asked([change(k) for k in range(len(pictures))]))
        for what, change in changes.items()
    }


def areas_of(pictures: LabelledFrames, logits: npt.NDArray[np.float64]) -> dict[str, Area]:
    """AUC by finding of logits (N, findings) against the labels, with intervals over groups."""
    found = {}
    for column, name in enumerate(pictures.findings):
        area = clustered_area(logits[:, column], pictures.labels[:, column], pictures.groups)
        found[name] = Area(*area, len(pictures), len(set(pictures.groups.tolist())))
    return found


def rate_of(right: list[tuple[str, bool]], what: str) -> ControlRate:
    """The share of right answers, each with its group, and what the gate asks of this control."""
    rate = clustered_rate(shares([(group, float(answer)) for group, answer in right]))
    return ControlRate(rate.value, rate.low, rate.high, rate.n, needs()["control"].get(what))


def _away(place: npt.NDArray[np.float32], rng: np.random.Generator) -> tuple[float, float]:
    some = rng.uniform(0.25, 0.75, (32, 2)) * SIDE
    x, y = some[int(np.argmax(np.hypot(*(some - place).T)))]
    return float(x), float(y)
