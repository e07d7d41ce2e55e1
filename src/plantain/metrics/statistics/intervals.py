"""Wilson's interval of a share of independent trials."""

from __future__ import annotations

from plantain.metrics.statistics.clusters import wilson_share


def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 95 % Wilson interval of `successes` out of `n`; (0, 1) when n is 0, because nothing is known."""
    return wilson_share(successes / n, n) if n else (0.0, 1.0)
