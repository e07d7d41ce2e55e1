"""Strengths from comparisons: against `choix`, with planted ties, position and readers."""

from __future__ import annotations

import numpy as np
import pytest

from plantain.metrics.statistics.bradley_terry import Comparison, bradley_terry


def drawn(
    seed: int, readers: int, cases: int, *, position: float = 0.0, ties: float | None = None, odd: float = 0.0
):
    """Comparisons of a, b and c of strengths 0.6, 0 and -0.6; reader r0 finds c stronger by `odd`."""
    rng = np.random.default_rng(seed)
    true, said = np.array([0.6, 0.0, -0.6]), []
    for reader in range(readers):
        for case in range(cases):
            i, j = rng.permutation(3)[:2]
            extra = odd * (reader == 0)
            left, right = true[i] + extra * (i == 2) + position, true[j] + extra * (j == 2)
            middle = -np.inf if ties is None else ties + (left + right) / 2
            weight = np.exp([left, middle, right])
            outcome = int(rng.choice([1, 0, -1], p=weight / weight.sum()))
            said.append(Comparison("abc"[i], "abc"[j], outcome, f"r{reader}", f"c{case}"))
    return said


def test_without_ties_it_is_what_choix_fits():
    choix = pytest.importorskip("choix")
    said = drawn(0, 4, 200)
    wins = [("abc".index(c.left), "abc".index(c.right))[:: c.outcome] for c in said]
    mine = [value.value for value in bradley_terry(said).strength]
    # position is estimated too, and strengths are held near 0 a little: 0.02 apart
    assert mine == pytest.approx(list(choix.ilsr_pairwise(3, wins)), abs=0.03)


def test_planted_position_and_ties_are_found_beside_an_odd_reader():
    said = drawn(1, 6, 200, position=0.4, ties=-0.3, odd=1.5)
    found = bradley_terry(said)
    assert found.models == ("a", "b", "c") and found.ranks[0] == (1, 1)
    assert found.position.low < 0.4 < found.position.high and found.position.low > 0
    assert found.ties.low < -0.3 < found.ties.high


def test_a_model_that_never_lost_has_a_strength_and_no_rank_is_invented():
    said = [Comparison("a", "b", 1, f"r{n % 3}", f"c{n}") for n in range(9)]
    said += [Comparison("b", "a", -1, f"r{n % 3}", f"d{n}") for n in range(9)]
    found = bradley_terry(said)
    assert np.isfinite(found.strength[0].value) and found.strength[0].value > 1
    with pytest.raises(ValueError, match="two models"):
        bradley_terry([])
    with pytest.raises(ValueError, match="not a comparison"):
        bradley_terry([Comparison("a", "a", 1, "r", "c")])


@pytest.mark.parametrize("outcome", [lambda n: 0, lambda n: 1 - 2 * (n % 2)], ids=["constant", "two-valued"])
def test_readers_who_prefer_nobody_give_equal_strengths_and_one_rank(outcome):
    # Every pair is answered alike in both orders: by symmetry all strengths are 0 and nobody is ahead.
    said = [
        Comparison(*pair, outcome(n), f"r{n % 4}", f"c{n // 2}")
        for n, pair in enumerate(pair for pair in ("ab", "bc", "ca", "ba", "cb", "ac") * 8 for _ in range(2))
    ]
    found = bradley_terry(said)
    assert [one.value for one in found.strength] == [0.0, 0.0, 0.0]
    assert set(found.ranks) == {(1, 3)}


def test_coverage_of_a_small_slice():
    from simulated.reader_studies import coverage_of_strengths

    strengths, position = coverage_of_strengths(5, 30, 40)
    assert strengths >= 0.93 and position >= 0.88  # of 200 and of 40 intervals
