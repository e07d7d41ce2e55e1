"""Wilson's interval by counts."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest  # an independent implementation

from plantain.metrics.statistics.intervals import wilson


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (3, 7), (50, 50), (811, 1000)])
def test_wilson_matches_scipy(successes: int, n: int) -> None:
    expected = binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_no_trials_know_nothing_and_more_successes_are_refused() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="3 successes of 2"):
        wilson(3, 2)
