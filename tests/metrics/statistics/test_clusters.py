"""Intervals of rates against scipy, trials one by one and their own bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest  # an independent implementation

from plantain.metrics.statistics.clusters import clustered_rate
from plantain.metrics.statistics.intervals import wilson, wilson_share
from plantain.metrics.statistics.means import METHOD, ClusteredMeans


def test_single_trials_use_wilson_share() -> None:
    rate = clustered_rate({(1, 1): 81, (0, 1): 19})
    assert rate.method == "wilson" and rate.n == 100
    assert (rate.low, rate.high) == wilson_share(0.81, 100)


def test_repeated_images_widen_the_interval() -> None:
    # every image is all success or all failure: 400 trials carry the information of 100
    rate = clustered_rate({(4, 4): 50, (0, 4): 50})
    naive = wilson_share(0.5, 400)
    assert rate.method == METHOD
    assert rate.low is not None and rate.high is not None
    assert (rate.high - rate.low) / (naive[1] - naive[0]) == pytest.approx(2.0, abs=0.25)  # sqrt(4)


def test_interval_is_that_of_the_trials_one_by_one() -> None:
    patterns = {(0, 1): 12, (1, 2): 9, (3, 3): 14, (2, 5): 6}
    units = [pattern for pattern, count in patterns.items() for _ in range(count)]
    trials = [float(i < yes) for yes, n in units for i in range(n)]
    source = [cluster for cluster, (_, n) in enumerate(units) for _ in range(n)]
    expected, rate = ClusteredMeans(source).mean(trials, low=0, high=1), clustered_rate(patterns)
    assert (rate.value, rate.low, rate.high) == pytest.approx((expected.value, expected.low, expected.high))


def test_one_image_with_most_trials_counts_once() -> None:
    # Shares of 0.9 and 9 times 1/90: weights say (sum w)² / sum w² = 1 / (0.81 + 9 * 0.0001) = 1.2 answers.
    rate = clustered_rate({(81, 81): 1, (1, 1): 9})
    assert rate.method == "wilson over clusters"
    assert rate.low == pytest.approx(wilson_share(1.0, 90**2 / (81**2 + 9))[0])


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda p: p[0] <= p[1]),
        st.integers(0, 40),
        max_size=6,
    )
)
def test_interval_holds_its_rate_and_is_reproducible(patterns: dict[tuple[int, int], int]) -> None:
    rate = clustered_rate(patterns)
    assert rate == clustered_rate(dict(reversed(patterns.items())))
    if rate.value is not None:
        assert rate.low is not None and rate.high is not None
        assert 0 <= rate.low <= rate.value + 1e-9 and rate.value - 1e-9 <= rate.high <= 1


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (3, 7), (50, 50), (811, 1000)])
def test_wilson_matches_scipy(successes: int, n: int) -> None:
    expected = binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_no_trials_know_nothing_and_more_successes_are_refused() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="3 successes of 2"):
        wilson(3, 2)
