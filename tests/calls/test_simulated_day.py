"""A day of outages, cut connections and many refusals in simulated time, compared with the provider's own bill."""

from __future__ import annotations

import pytest

from simulated.clock import run_simulated
from simulated.day import live_through


def test_bad_day_stays_within_the_budget_without_help() -> None:
    day = run_simulated(live_through(1_000.0, 7, concurrency=8))
    print(day)
    assert day.stopped == "budget" and day.stopped_tasks == 0
    assert 0.9 * day.budget_usd < day.answered_usd <= day.bill_usd <= day.budget_usd
    assert day.seen["outage"] > 3 * 10 and day.seen["cut"] > 500 and day.seen["refused"] > 10


@pytest.mark.parametrize("seed", range(3))
def test_provider_that_bills_far_past_max_output_tokens_exceeds_the_budget_by_what_was_in_flight(
    seed: int,
) -> None:
    """Previously $6.75 of a $5 cap. The limit is the budget plus the four calls in flight at the first surprise."""
    day = run_simulated(live_through(5.0, seed, concurrency=32, overbilling=40.0))
    print(day)
    dearest = 4_000 * 2.0 / 1e6 + 40 * 2_500 * 12.0 / 1e6  # $1.208
    assert day.bill_usd <= day.budget_usd + 4 * dearest
    assert day.stopped == "budget"
