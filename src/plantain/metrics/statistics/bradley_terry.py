"""Strengths of models from comparisons in pairs: Bradley and Terry with ties, position bias and readers who differ.

A comparison ends left : tie : right as exp(strength of left + position) : exp(ties + mean of both) : exp(strength of
right) (Davidson 1970; order effect: Davidson and Beaver 1977). Readers and cases are samples: the error is that of the
one-step jackknife over both, with Hillis' degrees of freedom as in `readers.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.intervals import Sampling
from plantain.metrics.statistics.readers import careful
from plantain.pixels.arrays import Floats

LEFT, TIE, RIGHT = 1, 0, -1

HOLD = 0.01
"""Ridge penalty, a hundredth of an answer: a model that never lost has a finite strength."""

STEPS = 60


@dataclass(frozen=True, slots=True)
class Value:
    """A fitted parameter with its 95 % interval; None if there are too few readers or cases."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Strengths:
    """Strengths of models fitted to comparisons in pairs.

    Attributes:
        models: names in alphabetical order.
        strength: strength of each model in logits, their mean 0; exp of a difference is the odds of winning.
        ranks: (best, worst) possible rank of each model by the significant differences, corrected for all pairs
            (Bonferroni).
        position: logits that the left position adds; 0: none.
        ties: logits of a tie between equal models; None without ties.
        comparisons, readers, cases: counts.
    """

    models: tuple[str, ...]
    strength: tuple[Value, ...]
    ranks: tuple[tuple[int, int], ...]
    position: Value
    ties: Value | None
    comparisons: int
    readers: int
    cases: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """One reader's answer on one case: `outcome` is LEFT, TIE or RIGHT."""

    left: str
    right: str
    outcome: int
    reader: str
    case: str


def bradley_terry(comparisons: Sequence[Comparison]) -> Strengths:
    """Fit the strengths of models to comparisons in pairs, allowing for ties and an advantage of the left side.

    Raises:
        ValueError: no comparisons, only one model, a model compared with itself, or an unknown outcome.

    Example:
        Of ten comparisons, five of them mirrored, a won eight: the odds are 4, the log odds 1.39.

        >>> answers = [Comparison("a", "b", LEFT if n < 4 else RIGHT, f"r{n}", "c") for n in range(5)]
        >>> answers += [Comparison("b", "a", RIGHT if n < 4 else LEFT, f"r{n}", "d") for n in range(5)]
        >>> found = bradley_terry(answers)
        >>> round(found.strength[0].value - found.strength[1].value, 1)
        1.4
    """
    coded = _Coded(comparisons)
    m = len(coded.models)
    beta = _fit(coded.design, coded.chosen, coded.hold)
    beta[:m] -= beta[:m].mean()
    beta = np.round(beta, 9)  # the fit leaves noise of a strength of 0
    jackknife = _Jackknife(coded, beta)
    unit = np.eye(beta.size)
    centred = unit[:m] - unit[:m].mean(axis=0)
    better = np.zeros((m, m), bool)
    for i, j in np.argwhere(beta[:m, None] > beta[None, :m]):
        found = jackknife.sampling(unit[i] - unit[j])
        better[i, j] = found is not None and found.p_zero() * m * (m - 1) / 2 < 0.05
    return Strengths(
        coded.models,
        tuple(map(jackknife.value, centred)),
        tuple((1 + int(better[:, i].sum()), m - int(better[i].sum())) for i in range(m)),
        jackknife.value(unit[m]),
        jackknife.value(unit[m + 1]) if coded.tied else None,
        len(comparisons),
        jackknife.readers,
        jackknife.cases,
    )


class _Coded:
    """Comparisons as numbers: the design (comparisons, outcomes, parameters), and the index of each outcome."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        for one in comparisons:
            if one.left == one.right or one.outcome not in (LEFT, TIE, RIGHT):
                raise ValueError(f"not a comparison of two models: {one}")
        self.models = tuple(sorted({name for one in comparisons for name in (one.left, one.right)}))
        if len(self.models) < 2:
            raise ValueError("comparisons of at least two models are needed")
        self.readers = tuple(sorted({one.reader for one in comparisons}))
        self.reader = np.array([self.readers.index(one.reader) for one in comparisons])
        self.case = np.unique([one.case for one in comparisons], return_inverse=True)[1]
        self.tied = any(one.outcome == TIE for one in comparisons)
        order = (LEFT, TIE, RIGHT) if self.tied else (LEFT, RIGHT)
        self.chosen = np.array([order.index(one.outcome) for one in comparisons])
        m, rows = len(self.models), np.arange(len(comparisons))
        design = np.zeros((rows.size, 3, m + 1 + self.tied))
        design[rows, 0, [self.models.index(one.left) for one in comparisons]] = 1.0
        design[rows, 2, [self.models.index(one.right) for one in comparisons]] = 1.0
        design[:, 0, m] = 1.0
        design[:, 1] = (design[:, 0] + design[:, 2]) / 2.0
        if self.tied:
            design[:, 1, m + 1] = 1.0
        self.design = design if self.tied else design[:, [0, 2]]
        self.hold = np.full(m + 1 + self.tied, HOLD)


def _parts(design: Floats, chosen: npt.NDArray[np.intp], beta: Floats) -> tuple[Floats, Floats, Floats]:
    """Return each comparison's log-likelihood, score (parameters,) and information (parameters, parameters)."""
    eta = design @ beta
    share = np.exp(eta - eta.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    mean = np.einsum("nk,nkp->np", share, design)
    centred = design - mean[:, None, :]
    rows = np.arange(design.shape[0])
    information = np.einsum("nk,nkp,nkq->npq", share, centred, centred, optimize=True)
    return np.log(np.maximum(share[rows, chosen], 1e-300)), design[rows, chosen] - mean, information


def _fit(design: Floats, chosen: npt.NDArray[np.intp], hold: Floats) -> Floats:
    """Return the penalised estimates by Newton's method with halved steps."""
    beta = np.zeros(design.shape[2])
    likely = -math.inf
    step = np.zeros_like(beta)
    for _ in range(STEPS):
        log, score, information = _parts(design, chosen, beta)
        now = float(log.sum() - hold @ beta**2 / 2)
        if now < likely - 1e-9:
            step /= 2.0
            beta = beta - step
            continue
        step = np.linalg.solve(information.sum(axis=0) + np.diag(hold), score.sum(axis=0) - hold * beta)
        if np.abs(step).max() < 1e-9:
            break
        likely, beta = now, beta + step
    return beta


class _Jackknife:
    """Changes of the estimates without one reader, one case, or one reader's answers on one case."""

    def __init__(self, coded: _Coded, beta: Floats) -> None:
        self.beta = beta
        _, score, information = _parts(coded.design, coded.chosen, beta)
        whole = information.sum(axis=0) + np.diag(coded.hold)
        self.readers, self.cases = len(coded.readers), int(coded.case.max()) + 1
        both = np.unique(coded.reader * self.cases + coded.case, return_inverse=True)[1]
        self._moves = [
            self._without(labels, score, information, whole) for labels in (coded.reader, coded.case, both)
        ]

    @staticmethod
    def _without(labels: npt.NDArray[np.intp], score: Floats, information: Floats, whole: Floats) -> Floats:
        """Return the change of the estimates without each cluster, (clusters, parameters), by one Newton step."""
        k = int(labels.max()) + 1
        if k < 2:
            return np.full((1, score.shape[1]), np.nan)
        scores, informations = np.zeros((k, score.shape[1])), np.zeros((k, *whole.shape))
        np.add.at(scores, labels, score)
        np.add.at(informations, labels, information)
        inverse = np.linalg.pinv(whole - informations, hermitian=True)
        return np.asarray(-np.einsum("kpq,kq->kp", inverse, scores) * math.sqrt((k - 1) / k))

    def value(self, contrast: Floats) -> Value:
        """Return a linear combination of the parameters with its 95 % interval."""
        value = float(contrast @ self.beta)
        found = self.sampling(contrast)
        return Value(value, None, None) if found is None else Value(value, *found.interval())

    def sampling(self, contrast: Floats) -> Sampling | None:
        """Return the sampling distribution of a linear combination; None with fewer than two readers or cases."""
        value = float(contrast @ self.beta)
        by_reader, by_case, each = (float(np.sum((moves @ contrast) ** 2)) for moves in self._moves)
        variance = max(by_reader + by_case - each, by_reader, by_case)
        if self.cases < 2 or self.readers < 2 or not variance > 0:
            return None
        wider, most = careful(self.readers)
        times = min(most, (variance / by_reader) ** 2) if by_reader > 0 else most
        return Sampling(value, math.sqrt(wider * variance), (self.readers - 1) * times)
