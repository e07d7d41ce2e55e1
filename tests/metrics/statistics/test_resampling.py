"""Intervals of clustered means: do they cover, and do they say what they rest on."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from threadpoolctl import threadpool_limits

from plantain.metrics.statistics.resampling import (
    BOOTSTRAP,
    STUDENT,
    Resampling,
    drawn_sums,
    resampled_weights,
)


def simulated(rng: np.random.Generator, strata: int, clusters: int) -> tuple[np.ndarray, list, list]:
    """Samples around 0.5 + stratum effect; clusters of 1 to 4 share an offset."""
    values, names, groups = [], [], []
    for stratum in range(strata):
        for cluster in range(clusters):
            size = 1 + (cluster + stratum) % 4
            offset = rng.normal(0.0, 0.2)
            values.append(0.5 + 0.1 * (stratum - (strata - 1) / 2) + offset + rng.normal(0.0, 0.1, size))
            names += [(stratum, cluster)] * size
            groups += [stratum] * size
    return np.concatenate(values), names, groups


@pytest.mark.parametrize(
    ("strata", "clusters", "macro", "missing"),
    [(1, 70, False, 0.2), (5, 12, True, 0.0), (3, 8, True, 0.0)],
)
def test_interval_covers_as_often_as_it_says(strata, clusters, macro, missing):
    # The balanced design makes 0.5 the true macro mean (and the micro one with a single stratum). Nominal
    # 95 % of 1,000: one standard error is 0.7 points, so 93 and 97 are 2.9 of them away.
    seed, rounds = 20261122, 1000
    print("seed", seed)
    rng = np.random.default_rng(seed)
    covered = 0
    for _ in range(rounds):
        values, names, groups = simulated(rng, strata, clusters)
        values[rng.random(values.size) < missing] = np.nan
        found = Resampling(names, groups, seed=1, draws=500).mean(values, macro=macro)
        assert found.method == (BOOTSTRAP if strata * clusters >= 50 else STUDENT)
        covered += found.low <= 0.5 <= found.high
    assert 0.93 <= covered / rounds <= 0.97, covered / rounds


def test_standard_error_agrees_with_statsmodels_clustered():
    # Without strata, sqrt(G / (G - 1) * sum of squared cluster influences): statsmodels' cluster-robust error
    # of an intercept has the further factor (N - 1) / (N - k) = 1.
    values, names, _ = simulated(np.random.default_rng(4), 1, 30)
    codes = np.unique([c for _, c in names], return_inverse=True)[1]
    fit = sm.OLS(values, np.ones_like(values)).fit(cov_type="cluster", cov_kwds={"groups": codes})
    error, freedom = Resampling(names).standard_error(values)
    assert error == pytest.approx(float(fit.bse[0]), rel=1e-9)
    assert freedom == 29


def test_samples_that_share_a_source_count_once():
    rng = np.random.default_rng(3)
    base = rng.normal(0.0, 1.0, 80)
    repeated = np.repeat(base, 5)
    alone = Resampling(range(80)).mean(base)
    together = Resampling(np.repeat(np.arange(80), 5).tolist()).mean(repeated)
    fooled = Resampling(range(400)).mean(repeated)
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high), abs=1e-12)
    assert (together.n, together.clusters) == (400, 80)
    assert fooled.spread < 0.6 * together.spread


def test_macro_mean_weighs_strata_alike():
    # Organ a: 30 samples of 1; organ b: 10 of 0. Micro 0.75, macro 0.5.
    values, organs = [1.0] * 30 + [0.0] * 10, ["a"] * 30 + ["b"] * 10
    plan = Resampling(range(40), organs)
    assert plan.mean(values).value == 0.75
    assert plan.mean(values, macro=True).value == 0.5


def test_missing_values_are_left_out_and_counted():
    values = np.r_[np.full(60, 0.4), np.full(60, np.nan)]
    found = Resampling(range(120)).mean(values)
    assert (found.value, found.n, found.clusters) == (pytest.approx(0.4), 60, 60)
    nothing = Resampling(range(3)).mean([np.nan] * 3)
    assert (nothing.value, nothing.low, nothing.n, nothing.method) == (None, None, 0, "")
    one = Resampling(["a", "a"]).mean([0.0, 1.0])
    assert (one.value, one.low, one.clusters) == (0.5, None, 1)


def test_lone_strata_are_drawn_together():
    # Five organs of one cluster each: no spread within any of them, so they are taken as one stratum.
    values = [0.0, 1.0, 2.0, 3.0, 4.0]
    found = Resampling(range(5), list("abcde")).mean(values)
    plain = Resampling(range(5)).mean(values)
    assert (found.low, found.high) == (plain.low, plain.high)
    assert found.spread > 1.0


def test_same_seed_same_numbers():
    rng = np.random.default_rng(9)
    values, organs = rng.random(90), rng.integers(0, 4, 90).tolist()
    first = Resampling(range(90), organs, seed=5).mean(values)
    assert first == Resampling(range(90), organs, seed=5).mean(values)
    assert first != Resampling(range(90), organs, seed=6).mean(values)


def test_weights_keep_each_stratum_its_size():
    weights = resampled_weights([0, 0, 0, 1, 1, 2], 1, 50)
    assert weights[:, :3].sum(axis=1) == pytest.approx(3.0)
    assert weights[:, 3:5].sum(axis=1) == pytest.approx(2.0)
    assert (weights[:, 5] == 1.0).all()


def test_plan_refuses_lists_that_do_not_match():
    with pytest.raises(ValueError, match="one of each per sample"):
        Resampling([1, 2], [1])
    with pytest.raises(ValueError, match="for 2 samples"):
        Resampling([1, 2]).mean([1.0])


def test_no_digit_hangs_on_the_number_of_cores():
    # A product of matrices is added up by as many threads as there are cores: 6e-14 apart at this size, and an interval
    # that a page states would end in another digit.
    rng = np.random.default_rng(0)
    weights, table = resampled_weights(rng.integers(0, 5, 1182), 3, 500), rng.normal(size=(1182, 13))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(drawn_sums(weights, table))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], weights @ table, atol=1e-11)
