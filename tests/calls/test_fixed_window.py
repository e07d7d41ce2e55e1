from __future__ import annotations

import pytest

from plantain.calls.adaptive_rate import AdaptiveRate
from plantain.calls.fixed_window import MISTAKES, FixedWindowEstimator


def sought(limit: float = 100.0) -> FixedWindowEstimator:
    """A minute that began at second 0 with the scout that found its turn; its limit is known."""
    minute = FixedWindowEstimator(limit, -20.0)
    minute.take(0.0)
    minute.accepted(0.1, 0.0)
    assert minute.until(0.1) <= 0.1
    return minute


def send(minute: FixedWindowEstimator, until: float, most: int = 1_000) -> list[float]:
    """Sends whatever may be sent up to a second; nothing is refused."""
    sent: list[float] = []
    while len(sent) < most and (at := minute.until(sent[-1] if sent else 0.1)) < until:
        at = max(at, sent[-1] if sent else 0.1)
        minute.take(at)
        sent.append(at)
    return sent


def test_a_known_limit_is_spread_over_most_of_the_minute() -> None:
    sent = send(sought(), 60.0, most=99)
    assert len(sent) == 99 and 40.0 < sent[-1] < 50.0


def test_the_first_refusal_of_a_full_count_holds_the_rest_until_the_turn() -> None:
    minute = sought()
    last = send(minute, 60.0, most=100)[-1]
    assert minute.limited(last + 0.1, last)
    assert minute.until(last + 0.2) == 60.0 and minute.until(59.9) == 60.0
    assert minute.until(60.0) == 60.0 and minute.limit == 100.0


def test_what_is_still_taken_when_the_minute_turns_is_no_limit() -> None:
    minute = sought()
    sent = send(minute, 60.0)
    assert len(sent) > 110
    minute.until(60.0)
    assert minute.limit == pytest.approx(1.5 * (len(sent) + 1))


def test_a_refusal_by_chance_costs_a_second_or_two_and_teaches_nothing() -> None:
    minute = sought()
    last = send(minute, 20.0)[-1]
    minute.limited(last + 0.1, last)
    scout = minute.until(last + 0.2)
    assert last + 0.3 < scout < last + 1.5
    minute.take(scout)
    assert minute.until(scout + 1.5) <= scout + 1.5  # not refused: taken, though its answer is still to come
    assert minute.limit == 100.0 and not minute.mistaken


def test_a_lower_limit_is_found_in_the_minute_in_which_it_falls() -> None:
    minute = sought()
    sent = send(minute, 20.0)
    minute.limited(sent[-1] + 0.1, sent[-1])
    scouts, now = 0, sent[-1] + 0.1
    while (now := max(now, minute.until(now))) < 60.0:
        minute.take(now)
        minute.limited(now + 0.05, now)
        now += 0.05
        scouts += 1
    assert 3 <= scouts <= 9
    minute.until(60.0)
    assert minute.limit == len(sent)  # with the scout that opened the minute, without the refused one


def test_a_provider_that_takes_again_long_before_the_turn_counts_no_minutes() -> None:
    minute, now = sought(), 0.1
    assert MISTAKES == 2
    while now < 50.0:
        now = max(now, minute.until(now))
        minute.take(now)
        if 15.0 <= now < 21.0 or 30.0 <= now < 36.0:
            minute.limited(now + 0.05, now)
        else:
            minute.accepted(now + 0.05, now)
        now += 0.05
        assert minute.mistaken == (now > 36.0)
        if minute.mistaken:
            return
    raise AssertionError("nothing was noticed")


def test_a_turn_that_comes_late_is_waited_for() -> None:
    minute = sought()
    last = send(minute, 60.0, most=100)[-1]
    minute.limited(last + 0.1, last)
    minute.until(60.0)
    minute.take(60.0)
    assert not minute.limited(60.05, 60.0)
    assert minute.until(60.1) == pytest.approx(61.05) and minute.limit == 100.0


def test_a_stated_ceiling_holds_in_whole_minutes_too() -> None:
    pace = AdaptiveRate(60.0)
    now, sent = 0.0, []
    while now < 20.0:
        now += pace.wait(now)
        pace.take(now)
        pace.accepted(now + 0.1)
    while now < 200.0:  # refused for thirty seconds, then everything is taken again
        now = max(now + 0.01, now + pace.wait(now))
        pace.take(now)
        sent.append(now)
        if now < 50.0:
            pace.limited(now + 0.05, now, None)
        else:
            pace.accepted(now + 0.05, sent_at=now)
    for begin in range(60, 140, 10):
        assert sum(begin <= at < begin + 60 for at in sent) <= 61
