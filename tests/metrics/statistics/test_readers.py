"""Readers and cases random: another program's variances, brute force, negative variances, and a slice of simulation."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from plantain.metrics.statistics.reader_power import Components, power
from plantain.metrics.statistics.readers import (
    CASE_ONLY,
    NONE,
    TRUNCATED,
    UNBIASED,
    over_readers,
    unbiased_variance,
)

ORACLE = Path(__file__).parents[3] / ".." / "shared" / "data" / "mrmc"


def read_study(path: Path) -> tuple[np.ndarray, np.ndarray]:
    rows = list(csv.DictReader(path.open()))
    readers, cases = (
        {name: i for i, name in enumerate(sorted({r[key] for r in rows}))} for key in ("reader", "case")
    )
    models = np.full((2, len(readers), len(cases)), np.nan)
    for row in rows:
        models["AB".index(row["modality"]), readers[row["reader"]], cases[row["case"]]] = float(row["score"])
    return models[0], models[1]


@pytest.mark.skipif(not ORACLE.is_dir(), reason="../shared/data/mrmc is not here")
def test_variances_are_those_of_imrmc():
    """Crossed studies by both of its methods; split-plots by `jointD` (the design is random, too)."""
    checked = 0
    for row in csv.DictReader((ORACLE / "results.csv").open()):
        if row["study"].startswith("split") and row["method"] != "jointD":
            continue
        first, second = read_study(ORACLE / f"{row['study']}.csv")
        for table, name in ((first, "A"), (second, "B"), (first - second, "difference")):
            assert unbiased_variance(table) == pytest.approx(float(row[f"var_{name}"]), abs=1e-9)
            assert np.nanmean(table) == pytest.approx(float(row[f"mean_{name}"]), abs=1e-9)
            checked += 1
        assert over_readers(first - second).unbiased == pytest.approx(float(row["var_difference"]), abs=1e-9)
    assert checked == 30


def test_hillis_degrees_of_freedom_by_hand():
    """Two cases that do not differ: only readers do. Of 6 readers' means 0, 0, 1, 1, 2, 2 the variance is 4 / 5, that
    of their mean 4 / 30; the covariance over cases is 0, so Hillis leaves 6 - 1 degrees of freedom."""
    table = np.repeat([[0.0], [0.0], [1.0], [1.0], [2.0], [2.0]], 2, axis=1)
    found = over_readers(table)
    assert (found.value, found.how) == (1.0, UNBIASED)
    assert found.unbiased == pytest.approx(4 / 30) and found.freedom == pytest.approx(5)
    assert found.variance == pytest.approx(4 / 30 * (1 + 1 / 24))  # 1 / (4 readers) wider, see `careful`
    # 1 -+ 2.5706 (t of 5 at 97.5 %) * sqrt(0.138889)
    assert (found.low, found.high) == pytest.approx((0.0420, 1.9580), abs=1e-4)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_variance_agrees_with_brute_force(missing: float):
    rng = np.random.default_rng(5)
    table = rng.integers(0, 2, (4, 6)).astype(float)
    table[rng.random(table.shape) < missing] = np.nan
    mean = np.nanmean(table)
    entries = [(r, c, table[r, c] - mean) for r in range(4) for c in range(6) if np.isfinite(table[r, c])]
    apart = [x * y for r, c, x in entries for s, d, y in entries if r != s and c != d]
    assert unbiased_variance(table) == pytest.approx(-np.mean(apart))
    if not missing:  # as published, without taking the mean out
        plain = [(x + mean) * (y + mean) for r, c, x in entries for s, d, y in entries if r != s and c != d]
        assert unbiased_variance(table) == pytest.approx(mean**2 - np.mean(plain))


@pytest.mark.parametrize(
    ("table", "how"),
    [
        # readers opposite to each other on every case: products of different readers are negative, the variance is too
        ([[1, -1, 1, 0], [-1, 1, -1, 1]], (TRUNCATED, CASE_ONLY)),
        ([[1, -1, 1, -1], [-1, 1, -1, 1]], (NONE,)),
        ([[1, 1, 1], [1, 1, 1]], (NONE,)),
    ],
)
def test_negative_variance_is_replaced_and_reported(table: list[list[float]], how: tuple[str, ...]):
    found = over_readers(table)
    assert found.unbiased <= 0 and found.how in how
    assert (found.low is None) == (found.how == NONE)


def test_the_larger_of_truncated_and_case_only_is_taken():
    """By hand: all readers' means are 1/2, so the truncated variance is 0. Case means are 1/2 but for the last two, 3/4
    and 1/4: their variance over 6 cases is 2 (1/16) / 5, that of their mean a sixth of it."""
    rows = np.array([[1, 0, 1, 0, 1, 0], [1, 0, 0, 1, 1, 0], [0, 1, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]], float)
    found = over_readers(rows)
    assert found.unbiased < 0 and found.how == CASE_ONLY and found.value == 0.5
    assert found.variance == pytest.approx(1 / 8 / 5 / 6 * (1 + 1 / 8))  # four readers: 1 / 8 wider


def test_a_small_slice_of_the_simulation():
    """400 studies without a difference: 5 % are 20; 3 to 7 % in the long run are found between 8 and 34 times."""
    from simulated.reader_studies import NATURES, false_alarms, false_alarms_pooled

    assert 8 <= 400 * false_alarms(5, 40, NATURES["as usual"], 400, kind="binary") <= 34
    # votes taken for independent: 18 % with few cases, more with more
    assert false_alarms_pooled(5, 100, NATURES["as usual"], 200) > 0.12


def test_power_agrees_with_simulation():
    from simulated.reader_studies import found_share

    parts = Components(0.02, 0.02, 0.3)
    expected = power(0.15, 5, 40, parts)
    assert found_share(0.15, 5, 40, parts, 600) == pytest.approx(
        expected, abs=2.6 * math.sqrt(expected * (1 - expected) / 600)
    )
