"""How often plantain's intervals contain the true value, and how wide they are, compared with those of others.

Each scenario draws sources (clusters) whose values are skewed, sparse, near an end of their range, or plain, and some
of which have most of the samples. Compared are plantain's interval of a mean, Student's t, and the bootstraps of
`scipy.stats.bootstrap` (BCa and percentile). An interval that is not given, because too few sources say anything,
counts neither way; how many are given is shown. Then the same for rates over clusters and for Cohen's kappa.

    python benchmarks/interval_coverage.py [ROUNDS]    default 1000; exits 1 below 93 % from 8 sources on
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from plantain.metrics.statistics.agreement import cohen_kappa
from plantain.metrics.statistics.clusters import clustered_rate
from plantain.metrics.statistics.means import ClusteredMeans

SEED = 20261122
LEAST = 0.93
PROMISED = 8
"""Sources from which on that is promised: five strongly skewed ones are too few for any interval known."""

FAR_OFF = 16
"""Number of sources from which on coverage is promised for a mixture with one outlier in seven.

Of 12 sources none is one of those in (6/7)^12 = 16 % of draws, of 16 in 8 %, of 20 in 5 %: no interval knows then.
"""

ENOUGH = 200
"""Given intervals below which a share is not judged."""

CUT_MEAN = float(np.exp(-2.5) * stats.norm.cdf(2) + stats.norm.sf(3))
"""Of exp(N(-3, 1)) cut at 1: exp(mu + 1/2) * P(N < (0 - mu) - 1) + P(N > 0 - mu)."""

Values = Callable[[np.random.Generator, int], np.ndarray]
VALUES: dict[str, tuple[Values, float, tuple[float | None, float | None]]] = {
    # name: (one value per source, their true mean, range)
    "plain": (lambda r, n: r.beta(5, 5, n), 0.5, (0, 1)),
    "skewed": (lambda r, n: r.beta(0.3, 3, n), 0.3 / 3.3, (0, 1)),
    "skewed to 1": (lambda r, n: r.beta(5, 0.5, n), 5 / 5.5, (0, 1)),
    "two ends": (lambda r, n: r.beta(0.3, 0.5, n), 0.3 / 0.8, (0, 1)),
    "sparse": (lambda r, n: (r.random(n) < 0.35) * r.beta(1, 3, n), 0.35 / 4, (0, 1)),
    "sparse yes/no": (lambda r, n: (r.random(n) < 0.3) * 1.0, 0.3, (0, 1)),
    "tenths of a judge": (lambda r, n: r.binomial(10, 0.12, n) / 10, 0.12, (0, 1)),
    "preservation": (lambda r, n: 1 - 0.5 * r.beta(0.5, 4, n), 1 - 0.5 * 0.5 / 4.5, (-1, 1)),
    "correlations": (lambda r, n: 1 - 2 * r.beta(0.6, 2, n), 1 - 2 * 0.6 / 2.6, (-1, 1)),
    "distance": (lambda r, n: r.gamma(0.8, 0.1, n), 0.08, (0, None)),
    "log-normal": (lambda r, n: r.lognormal(0, 1, n), float(np.exp(0.5)), (0, None)),
    "log-normal, cut": (lambda r, n: np.minimum(1, r.lognormal(-3, 1, n)), CUT_MEAN, (0, 1)),
    "one in 7 far off": (
        lambda r, n: np.where(r.random(n) < 1 / 7, r.beta(9, 1, n), r.beta(1, 9, n)),
        0.1 + 0.8 / 7,
        (0, 1),
    ),
    "decibel": (lambda r, n: 30 + 4 * r.standard_normal(n) + r.exponential(5, n), 35.0, (None, None)),
}
SIZES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "one each": lambda r, n: np.ones(n, np.intp),
    "1 to 4": lambda r, n: 1 + np.arange(n) % 4,
    "geometric": lambda r, n: r.geometric(0.25, n),
    "one has half": lambda r, n: np.r_[np.full(n - 1, 2), 2 * (n - 1)],
}
CLUSTERS = (5, 8, 12, 16, 20, 50, 200)


@dataclass
class Tally:
    """Intervals given, of those that hold the truth, and their widths added up."""

    rounds: int = 0
    given: int = 0
    held: int = 0
    width: float = 0.0

    def add(self, low: float | None, high: float | None, truth: float) -> None:
        self.rounds += 1
        if low is not None and high is not None and np.isfinite([low, high]).all():
            self.given += 1
            self.held += low - 1e-12 <= truth <= high + 1e-12
            self.width += high - low

    def __str__(self) -> str:
        if self.given < ENOUGH:
            return f"{'-':>12}"
        return f"{self.held / self.given:.3f}/{self.width / self.given:5.3f}".rjust(12)

    @property
    def short(self) -> bool:
        """Return True if the coverage is below the promised one by more than chance: 2.6 standard errors."""
        margin = 2.6 * (LEAST * (1 - LEAST) / max(self.given, 1)) ** 0.5
        return self.given >= ENOUGH and self.held / self.given < LEAST - margin


def simulated(
    rng: np.random.Generator, values: Values, sizes: np.ndarray, low: float | None, high: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Samples and their sources; the samples of a source have its value."""
    source = np.repeat(np.arange(sizes.size), sizes)
    return values(rng, sizes.size)[source], source


def means(rounds: int) -> Iterator[bool]:
    """Prints coverage/width of each scenario; yields whether plantain's is short of the promise."""
    rng = np.random.default_rng(SEED)
    print(f"{'sources':>7} {'samples':14}{'values':19}{'given':>6}" + "".join(
        f"{name:>14}" for name in ("plantain", "t", "BCa", "percentile")))  # fmt: skip
    for n in CLUSTERS:
        for how, sizing in SIZES.items():
            sizes = sizing(np.random.default_rng(3), n)
            for name, (values, truth, ends) in VALUES.items():
                ours, student, bca, percentile = (Tally() for _ in range(4))
                for turn in range(rounds):
                    x, source = simulated(rng, values, sizes, *ends)
                    found = ClusteredMeans(source.tolist()).mean(x, low=ends[0], high=ends[1])
                    ours.add(found.low, found.high, truth)
                    if found.low is None:
                        continue
                    assert found.high is not None and found.value is not None
                    assert ends[0] is None or found.low >= ends[0], "left the range"
                    assert ends[1] is None or found.high <= ends[1], "left the range"
                    if how == "one each":
                        low, high = stats.t.interval(0.95, n - 1, x.mean(), stats.sem(x))
                        student.add(low, high, truth)
                        if turn % 5 == 0 and n <= 50:
                            bca.add(*resampled(x, rng, "BCa"), truth)
                            percentile.add(*resampled(x, rng, "percentile"), truth)
                print(f"{n:7} {how:14}{name:19}{ours.given / ours.rounds:6.2f}  {ours}  {student}  {bca}  {percentile}"
                      f"{'  SHORT' if ours.short else ''}", flush=True)  # fmt: skip
                yield ours.short and n >= (FAR_OFF if name == "one in 7 far off" else PROMISED)


def resampled(x: np.ndarray, rng: np.random.Generator, method: str) -> tuple[float, float]:
    """scipy's bootstrap of a mean."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = stats.bootstrap(
            (x,), np.mean, n_resamples=999, method=method, rng=rng, vectorized=True, axis=-1
        ).confidence_interval
    return float(found.low), float(found.high)


def rates(rounds: int) -> Iterator[bool]:
    """The same for shares of yes over clusters of several trials."""
    rng = np.random.default_rng(SEED)
    print("\nrates over clusters of 1 to 8 trials, of which each has a chance of its own")
    for n in (5, 12, 20, 60):
        for a, b in ((0.5, 4.5), (1.0, 1.0), (9.0, 0.5)):
            tally = Tally()
            for _ in range(rounds):
                trials = 1 + np.arange(n) % 8
                yes = rng.binomial(trials, rng.beta(a, b, n))
                patterns: dict[tuple[int, int], int] = {}
                for s, m in zip(yes.tolist(), trials.tolist(), strict=True):
                    patterns[s, m] = patterns.get((s, m), 0) + 1
                found = clustered_rate(patterns)
                tally.add(found.low, found.high, a / (a + b))
            print(
                f"{n:7} clusters, mean {a / (a + b):.2f}: {tally}{'  SHORT' if tally.short else ''}",
                flush=True,
            )
            yield tally.short


def kappas(rounds: int) -> Iterator[bool]:
    """The same for two raters, of whom the second copies the first with a probability of kappa."""
    rng = np.random.default_rng(SEED)
    print("\nCohen's kappa")
    for n in (10, 15, 20, 50, 200):
        for truth in (0.2, 0.6, 0.85):
            for share in (0.5, 0.2):
                tally = Tally()
                for _ in range(rounds):
                    one, two = (rng.random((2, n)) < share).astype(int)
                    two = np.where(rng.random(n) < truth, one, two)
                    found = cohen_kappa(one.tolist(), two.tolist(), categories=[0, 1])
                    tally.add(found.low, found.high, truth)
                print(f"{n:7} items, kappa {truth}, prevalence {share}: given {tally.given / rounds:.2f} {tally}"
                      f"{'  SHORT' if tally.short else ''}", flush=True)  # fmt: skip
                yield tally.short


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    parts = sys.argv[2:] or ["means", "rates", "kappas"]
    short = sum(sum({"means": means, "rates": rates, "kappas": kappas}[part](wanted)) for part in parts)
    print(f"\n{short} scenarios below {LEAST:.0%} by more than chance")
    sys.exit(1 if short else 0)
