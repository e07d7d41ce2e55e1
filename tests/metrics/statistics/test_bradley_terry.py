"""Strengths from comparisons: against `choix`, with planted ties, position and readers."""

from __future__ import annotations

import numpy as np
import pytest

from plantain.metrics.statistics.bradley_terry import Comparison, bradley_terry


def drawn(
    seed: int, readers: int, cases: int, *, position: float = 0.0, ties: float | None = None, odd: float = 0.0
):
    """Return comparisons of a, b and c of strengths 0.6, 0 and -0.6; reader r0 finds c stronger by `odd`."""
    rng = np.random.default_rng(seed)
    true, comparisons = np.array([0.6, 0.0, -0.6]), []
    for reader in range(readers):
        for case in range(cases):
            i, j = rng.permutation(3)[:2]
            extra = odd * (reader == 0)
            left, right = true[i] + extra * (i == 2) + position, true[j] + extra * (j == 2)
            middle = -np.inf if ties is None else ties + (left + right) / 2
            weight = np.exp([left, middle, right])
            outcome = int(rng.choice([1, 0, -1], p=weight / weight.sum()))
            comparisons.append(Comparison("abc"[i], "abc"[j], outcome, f"r{reader}", f"c{case}"))
    return comparisons


def test_strengths_without_ties_agree_with_choix():
    choix = pytest.importorskip("choix")
    comparisons = drawn(0, 4, 200)
    wins = [("abc".index(c.left), "abc".index(c.right))[:: c.outcome] for c in comparisons]
    mine = [value.value for value in bradley_terry(comparisons).strength]
    # position is estimated too, and strengths are held near 0 a little: 0.02 apart
    assert mine == pytest.approx(list(choix.ilsr_pairwise(3, wins)), abs=0.03)


def test_planted_position_and_ties_are_found_despite_an_odd_reader():
    comparisons = drawn(1, 6, 200, position=0.4, ties=-0.3, odd=1.5)
    found = bradley_terry(comparisons)
    assert found.models == ("a", "b", "c") and found.ranks[0] == (1, 1)
    assert found.position.low < 0.4 < found.position.high and found.position.low > 0
    assert found.ties.low < -0.3 < found.ties.high


def test_a_model_that_never_lost_has_a_strength_and_no_rank_is_invented():
    comparisons = [Comparison("a", "b", 1, f"r{n % 3}", f"c{n}") for n in range(9)]
    comparisons += [Comparison("b", "a", -1, f"r{n % 3}", f"d{n}") for n in range(9)]
    found = bradley_terry(comparisons)
    assert np.isfinite(found.strength[0].value) and found.strength[0].value > 1
    with pytest.raises(ValueError, match="two models"):
        bradley_terry([])
    with pytest.raises(ValueError, match="not a comparison"):
        bradley_terry([Comparison("a", "a", 1, "r", "c")])


@pytest.mark.parametrize("outcome", [lambda n: 0, lambda n: 1 - 2 * (n % 2)], ids=["constant", "two-valued"])
def test_readers_without_a_preference_give_equal_strengths_and_one_rank(outcome):
    # Every pair is answered alike in both orders: by symmetry all strengths are 0 and no model is ahead.
    comparisons = [
        Comparison(*pair, outcome(n), f"r{n % 4}", f"c{n // 2}")
        for n, pair in enumerate(pair for pair in ("ab", "bc", "ca", "ba", "cb", "ac") * 8 for _ in range(2))
    ]
    found = bradley_terry(comparisons)
    assert [one.value for one in found.strength] == [0.0, 0.0, 0.0]
    assert set(found.ranks) == {(1, 3)}


def test_coverage_of_a_small_slice():
    from simulated.reader_studies import coverage_of_strengths

    strengths, position = coverage_of_strengths(5, 30, 40)
    assert strengths >= 0.93 and position >= 0.88  # of 200 and of 40 intervals
