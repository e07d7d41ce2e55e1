"""Reader studies drawn from a model with readers and cases random, and how often their analysis is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plantain.metrics.statistics.bradley_terry import Comparison, bradley_terry
from plantain.metrics.statistics.reader_power import Components
from plantain.metrics.statistics.readers import over_readers
from plantain.pixels.arrays import Floats


@dataclass(frozen=True, slots=True)
class Nature:
    """Variances on a latent scale on which one reading varies by 1 (Roe and Metz 1997, for one class of cases)."""

    reader: float = 0.15
    case: float = 0.8
    both: float = 0.2
    model_reader: float = 0.05
    model_case: float = 0.2


NATURES = {
    "as usual": Nature(),
    "readers differ about models": Nature(model_reader=0.3),
    "cases differ about models": Nature(model_reader=0.1, model_case=0.6),
    "no interaction": Nature(model_reader=0.0, model_case=0.0),
}


def answers(
    rng: np.random.Generator, readers: int, cases: int, nature: Nature, *, kind: str = "binary",
    better: float = 0.0,
) -> list[Floats]:  # fmt: skip
    """Two models' answers, (readers, cases) each.

    Args:
        kind: "binary" (accepted or not) or "score" (0 to 10).
        better: how much higher the second model's latent mean is.
    """

    def normal(variance: float, *shape: int) -> Floats:
        return rng.normal(0.0, np.sqrt(variance), shape)

    common = (
        normal(nature.reader, readers, 1)
        + normal(nature.case, 1, cases)
        + normal(nature.both, readers, cases)
    )
    latent = [
        common
        + model * better
        + normal(nature.model_reader, readers, 1)
        + normal(nature.model_case, 1, cases)
        + normal(1.0, readers, cases)
        for model in (0, 1)
    ]
    shape = {
        "binary": lambda x: (x > -0.4).astype(np.float64),
        "score": lambda x: np.clip(np.round(5 + 2 * x), 0, 10),
    }[kind]
    return [shape(one) for one in latent]


def false_alarms(readers: int, cases: int, nature: Nature, studies: int, *, kind: str = "binary") -> float:
    """The share of studies without a true difference in which the test finds one."""
    rng = np.random.default_rng([readers, cases, 1, len(kind)])
    found = 0
    for _ in range(studies):
        first, second = answers(rng, readers, cases, nature, kind=kind)
        p = over_readers(first - second).p
        found += p is not None and p < 0.05
    return found / studies


def false_alarms_pooled(readers: int, cases: int, nature: Nature, studies: int) -> float:
    """The same by the usual mistake: every vote independent."""
    rng = np.random.default_rng([readers, cases, 1, 6])
    found = 0
    for _ in range(studies):
        first, second = answers(rng, readers, cases, nature)
        p, q, n = first.mean(), second.mean(), first.size
        error = np.sqrt((p * (1 - p) + q * (1 - q)) / n)
        found += error > 0 and abs(p - q) > 1.959964 * error
    return found / studies


def found_share(effect: float, readers: int, cases: int, parts: Components, studies: int) -> float:
    """The share of studies in which the test finds a true difference, its components normal: what `power` computes."""
    rng = np.random.default_rng([readers, cases, 1, round(1000 * effect)])
    found = 0
    for _ in range(studies):
        apart = (
            effect
            + rng.normal(0, np.sqrt(parts.reader), (readers, 1))
            + rng.normal(0, np.sqrt(parts.case), (1, cases))
            + rng.normal(0, np.sqrt(parts.rest), (readers, cases))
        )
        p = over_readers(apart).p
        found += p is not None and p < 0.05
    return found / studies


STRENGTHS = {"a": 0.8, "b": 0.2, "c": 0.0, "d": -0.3, "e": -0.7}
POSITION = 0.3


def coverage_of_strengths(readers: int, cases: int, studies: int) -> tuple[float, float]:
    """How often intervals of strengths and of the position contain the planted value; readers and cases differ."""
    rng = np.random.default_rng([readers, cases, 3])
    names, true = list(STRENGTHS), np.array(list(STRENGTHS.values()))
    strengths = positions = 0
    for _ in range(studies):
        by_reader = rng.normal(0, 0.3, (readers, true.size))
        by_case = rng.normal(0, 0.4, (cases, true.size))
        place = POSITION + rng.normal(0, 0.2, readers)
        comparisons = []
        for reader in range(readers):
            for case in range(cases):
                i, j = rng.permutation(true.size)[:2]
                left = true[i] + by_reader[reader, i] + by_case[case, i] + place[reader]
                right = true[j] + by_reader[reader, j] + by_case[case, j]
                weight = np.exp([left, -0.5 + (left + right) / 2, right])
                outcome = int(rng.choice([1, 0, -1], p=weight / weight.sum()))
                comparisons.append(Comparison(names[i], names[j], outcome, f"r{reader}", f"c{case}"))
        found = bradley_terry(comparisons)
        for value, planted in zip(found.strength, true, strict=True):
            strengths += (
                value.low is not None and value.high is not None and value.low <= planted <= value.high
            )
        at = found.position
        positions += at.low is not None and at.high is not None and at.low <= POSITION <= at.high
    return strengths / studies / true.size, positions / studies
