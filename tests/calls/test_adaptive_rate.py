from __future__ import annotations

import math

from plantain.calls.adaptive_rate import AdaptiveRate


def test_rare_refusals_teach_nothing() -> None:
    pace = AdaptiveRate(None)
    for n in range(20_000):  # twenty a second, one in five hundred refused whatever the pace
        now = n / 20
        pace.take(now)
        if n > 1_000 and n % 500 == 0:
            assert not pace.limited(now, now - 0.1, None)
        else:
            pace.accepted(now)
    assert math.isinf(pace.per_minute)


def test_a_burst_lowers_the_pace_once() -> None:
    pace = AdaptiveRate(6_000.0)
    for n in range(1_000):
        pace.take(n / 100)
        pace.accepted(n / 100)
    lowered = [pace.limited(10.0 + i / 100, 9.9 + i / 1000, None) for i in range(20)]
    assert sum(lowered) == 1
    assert 0.5 * 6_000 <= pace.per_minute < 6_000


def test_retry_after_is_obeyed_even_when_nothing_is_learned() -> None:
    pace = AdaptiveRate(None)
    pace.limited(0.0, -0.1, 9.0)
    assert pace.wait(5.0) == 4.0 and pace.wait(9.0) == 0.0
