"""Means over clusters: their errors against statsmodels and by hand, and the coverage of their intervals."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit
from scipy.stats import binomtest

from plantain.metrics.statistics.clusters import clustered_rate
from plantain.metrics.statistics.intervals import Sampling, wilson, wilson_share
from plantain.metrics.statistics.means import ClusteredMeans, sampling_of


def test_error_of_clusters_of_one_size_is_that_of_statsmodels():
    rng = np.random.default_rng(4)
    source = np.repeat(np.arange(30), 3)
    x = rng.normal(0, 0.2, 30)[source] + rng.normal(0, 0.1, 90)
    fit = sm.OLS(x, np.ones(90)).fit(cov_type="cluster", cov_kwds={"groups": source})
    found = ClusteredMeans(source.tolist()).sampling(x)
    assert found.error == pytest.approx(float(fit.bse[0]), rel=1e-9)
    assert found.freedom == pytest.approx(29)


def test_error_of_clusters_of_unlike_sizes_by_hand():
    # Weights 3/4 and 1/4, values 0 and 1. One source has the estimated variance (1 - 0)² / 2 = 0.5; the mean varies
    # by 0.5 * ((3/4)² + (1/4)²) = 0.3125, with one degree of freedom.
    found = sampling_of(np.array([3.0, 1.0]), np.array([0.0, 1.0]))
    assert (found.value, found.error**2, found.freedom) == pytest.approx((0.25, 0.3125, 1.0))


def test_interval_between_two_ends_is_that_of_a_fractional_logit_in_statsmodels():
    rng = np.random.default_rng(6)
    x, source = rng.beta(1, 4, 80), np.repeat(np.arange(20), 4)
    fit = sm.GLM(x, np.ones(80), family=sm.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": source}, use_t=True
    )
    error = float(fit.bse[0]) * x.mean() * (1 - x.mean())
    half = stats.t.ppf(0.975, 19) * float(fit.bse[0])
    expected = expit(float(fit.params[0]) + np.array([-half, half]))
    ours = ClusteredMeans(source.tolist()).sampling(x)
    assert ours.error == pytest.approx(error, rel=1e-6)
    # The t interval on the plain scale reaches further down here.
    low, high = Sampling(ours.value, ours.error, 19).interval(0, 1)
    assert high == pytest.approx(expected[1], rel=1e-6)
    assert low == pytest.approx(x.mean() - stats.t.ppf(0.975, 19) * error, rel=1e-6)
    rare = Sampling(0.02, 0.015, 19).interval(0, 1)  # where t would leave the range, it is cut off
    assert rare[0] == 0.0 and rare[1] == pytest.approx(
        expit(np.log(0.02 / 0.98) + 2.09302 * 0.015 / 0.0196), rel=1e-4
    )


SOURCES = {
    # values of n sources, their true mean, range. A t interval covers 0.84 to 0.92 of these.
    "skewed": (lambda r, n: r.beta(0.5, 5, n), 0.5 / 5.5, 0, 1),
    "near 1": (lambda r, n: 1 - 0.4 * r.beta(0.5, 4, n), 1 - 0.4 * 0.5 / 4.5, -1, 1),
    "sparse": (lambda r, n: (r.random(n) < 0.4) * r.beta(1, 3, n), 0.1, 0, 1),
    "yes or no": (lambda r, n: (r.random(n) < 0.3) * 1.0, 0.3, 0, 1),
    "distance": (lambda r, n: r.gamma(0.8, 0.1, n), 0.08, 0, None),
    "without ends": (lambda r, n: r.normal(30, 3, n) + r.exponential(4, n), 34.0, None, None),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(("n", "largest"), [(12, 1), (20, 12)])
def test_intervals_of_few_skewed_or_sparse_sources_cover(name, n, largest):
    # At least 93 % of 800: one standard error is 0.9 points. Sources have alternating sizes, or one has a fifth.
    draw, truth, low, high = SOURCES[name]
    seed = 20261122
    print("seed", seed)
    rng = np.random.default_rng(seed)
    sizes = np.r_[largest, 1 + np.arange(n - 1) % min(largest, 4)] if largest > 1 else np.ones(n, int)
    source = np.repeat(np.arange(n), sizes)
    plan, given, held = ClusteredMeans(source.tolist()), 0, 0
    for _ in range(800):
        found = plan.mean(draw(rng, n)[source], low=low, high=high)
        if found.low is None:
            continue
        given += 1
        held += found.low <= truth <= found.high
        assert low is None or found.low >= low
        assert high is None or found.high <= high
    assert given > 100
    assert held / given >= 0.93, (held / given, given)


def test_strata_are_judged_by_the_differences_within_them():
    # Balanced, so that 0.5 is the true mean of samples and of strata; strata are far apart, and that widens nothing.
    rng, strata = np.random.default_rng(8), 4
    group = np.repeat(np.arange(strata), 6)
    plan, held, widths = ClusteredMeans(range(group.size), group.tolist()), 0, []
    for _ in range(400):
        x = 0.3 + 0.4 * group / (strata - 1) + rng.normal(0, 0.05, group.size)
        found = plan.mean(x, low=0, high=1)
        held += found.low <= 0.5 <= found.high
        widths.append(found.high - found.low)
    assert held / 400 >= 0.93
    assert np.mean(widths) == pytest.approx(2 * 2.0 * 0.05 / group.size**0.5, rel=0.15)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([0.1, 0.2, 0.3, 0.4], "4 independent sources, 5 are needed"),
        ([0.0] * 16 + [0.5, 0.6, 0.7, 0.8], "4 of 20 sources differ from 0, 5 are needed"),
        ([1.0] * 9 + [0.3], "1 of 10 sources differ from 1, 5 are needed"),
        ([0.0] * 15 + [0.5, 0.6, 0.7, 0.8, 0.2], ""),
        ([0.1, 0.2, 0.3, 0.4, 0.5], ""),
    ],
)
def test_uninformative_sources_have_a_reason_instead_of_an_interval(values, reason):
    found = ClusteredMeans(range(len(values))).mean(values, low=0, high=1)
    assert found.reason == reason
    assert (found.low is None, found.method == "") == (bool(reason), bool(reason))
    assert found.value == pytest.approx(np.mean(values))


def test_the_smallest_detectable_difference_of_a_size():
    # 50 sources of one sample, standard deviation 0.2: (2.0096 + 0.8490) * 0.2 / sqrt(50), quantiles of t with 49.
    plan = ClusteredMeans(range(50))
    assert plan.detectable(0.2) == pytest.approx(0.0809, abs=2e-4)
    # Among 21 pairs the first has to pass 0.05 / 21, where t is 3.205: (3.205 + 0.849) * 0.0283.
    assert plan.detectable(0.2, pairs=21) == pytest.approx(0.1147, abs=2e-4)
    rng = np.random.default_rng(1)
    drawn = rng.normal(plan.detectable(0.2), 0.2, (4000, 50))
    assert (stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.02)
    assert ClusteredMeans(np.repeat(np.arange(50), 3).tolist()).detectable(0.2) == pytest.approx(
        0.0809, abs=2e-4
    )
    assert ClusteredMeans(range(4)).detectable(0.2) is None


def test_a_source_with_many_samples_makes_the_interval_wide_and_one_with_half_leaves_none():
    rng = np.random.default_rng(9)
    base = rng.beta(4, 4, 40)
    alike, some, half = (
        ClusteredMeans(np.repeat(np.arange(40), [most] + [1] * 39).tolist()).mean(
            np.repeat(base, [most] + [1] * 39), low=0, high=1
        )
        for most in (1, 8, 39)
    )
    assert some.high - some.low > 1.3 * (alike.high - alike.low)
    assert (half.low, half.reason) == (None, "too much of the mean depends on few of the 40 sources")


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 12)), min_size=1, max_size=40),
    st.sampled_from([(-1.0, 1.0), (-1.0, None), (None, 1.0), (None, None), (0.0, 1.0)]),
)
def test_an_interval_contains_its_mean_and_stays_in_range(samples, ends):
    values, sources = zip(*samples, strict=True)
    found = ClusteredMeans(sources).mean(values, low=ends[0], high=ends[1])
    assert found.value == pytest.approx(np.mean(values), abs=1e-12)
    if found.low is not None:
        assert found.low <= found.value + 1e-12 and found.value - 1e-12 <= found.high
        inside = [(end, (min(values), max(values))) for end in ends if end is not None]
        if all(low >= ends[0] for _, (low, _) in inside if ends[0] is not None):
            assert ends[0] is None or found.low >= ends[0]
        assert ends[1] is None or found.high <= ends[1]


def test_single_trials_use_wilson_share() -> None:
    rate = clustered_rate({(1, 1): 81, (0, 1): 19})
    assert rate.method == "wilson" and rate.n == 100
    assert (rate.low, rate.high) == wilson_share(0.81, 100)


def test_interval_is_that_of_the_trials_one_by_one() -> None:
    patterns = {(0, 1): 12, (1, 2): 9, (3, 3): 14, (2, 5): 6}
    units = [pattern for pattern, count in patterns.items() for _ in range(count)]
    trials = [float(i < yes) for yes, n in units for i in range(n)]
    source = [cluster for cluster, (_, n) in enumerate(units) for _ in range(n)]
    expected, rate = ClusteredMeans(source).mean(trials, low=0, high=1), clustered_rate(patterns)
    assert (rate.value, rate.low, rate.high) == pytest.approx((expected.value, expected.low, expected.high))


def test_one_image_with_most_trials_counts_once() -> None:
    # Shares of 0.9 and 9 times 1/90: weights give (sum w)² / sum w² = 1 / (0.81 + 9 * 0.0001) = 1.2 answers.
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
def test_an_interval_contains_its_rate_and_is_reproducible(patterns: dict[tuple[int, int], int]) -> None:
    rate = clustered_rate(patterns)
    assert rate == clustered_rate(dict(reversed(patterns.items())))
    if rate.value is not None:
        assert rate.low is not None and rate.high is not None
        assert 0 <= rate.low <= rate.value + 1e-9 and rate.value - 1e-9 <= rate.high <= 1


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (3, 7), (50, 50), (811, 1000)])
def test_wilson_matches_scipy(successes: int, n: int) -> None:
    expected = binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_no_trials_give_the_full_interval_and_more_successes_are_refused() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="3 successes of 2"):
        wilson(3, 2)
