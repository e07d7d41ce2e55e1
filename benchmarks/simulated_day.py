"""A simulated day with three outages of twenty minutes, 5 % cut connections and two storms of 429: what a budget does.

Promised: the provider's own bill never exceeds the budget, where it bills no call above our bound and lost calls cost,
in sum, no more than 95 % of such calls do; more than 90 % of the budget is used on answers that arrived; nobody is
needed. Then the same with a provider that bills forty times the tokens of an answer.

Run: python benchmarks/simulated_day.py [--days 20]
"""

from __future__ import annotations

import argparse
import sys

from simulated.clock import run_simulated
from simulated.day import Day, live_through

BUDGET_USD = 1_000.0
CONCURRENCY = 8
"""So much is spent in about twenty hours, after the last outage."""


def line(name: str, days: list[Day]) -> str:
    bills = [day.bill_usd / day.budget_usd for day in days]
    answers = [day.answered_usd / day.budget_usd for day in days]
    seen = days[0].seen
    return (
        f"{name}: bill {100 * min(bills):.2f} to {100 * max(bills):.2f} % of the budget, answers "
        f"{100 * min(answers):.2f} to {100 * max(answers):.2f} %, ended by {sorted({day.stopped for day in days})}, "
        f"tasks stopped {max(day.stopped_tasks for day in days)} at most; the first day: {dict(seen)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=5)
    args = parser.parse_args()
    usual = [
        run_simulated(live_through(BUDGET_USD, seed, concurrency=CONCURRENCY)) for seed in range(args.days)
    ]
    print(line("a bad day", usual))
    over = [run_simulated(live_through(20.0, seed, overbilling=40.0)) for seed in range(args.days)]
    print(line("billed past max_output_tokens, $20", over))
    good = all(day.bill_usd <= day.budget_usd and day.answered_usd > 0.9 * day.budget_usd for day in usual)
    good &= all(day.stopped == "budget" and not day.stopped_tasks for day in usual)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
