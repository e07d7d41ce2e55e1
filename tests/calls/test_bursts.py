"""A slice of `benchmarks/bursts.py`: whole builds through ten minutes of 503 in simulated time."""

from __future__ import annotations

from pathlib import Path

import pytest
import skimage.data

from plantain.pixels.encode import encode_source, normalise
from plantain.pixels.prepare import prepare
from plantain.roles import EncodedImage
from simulated.bursts import build_through_bursts
from soak import fill


@pytest.mark.parametrize(
    ("settings", "starts"),
    [({}, 1), ({"outage_hours": 0.05}, 2)],
    ids=["waits for the end of the burst", "halts in it and is begun again"],
)
def test_bursts_of_503_cost_nothing_twice(settings: dict[str, float], starts: int, tmp_path: Path) -> None:
    picture = EncodedImage(normalise(encode_source(prepare(skimage.data.retina())[0])), "image/jpeg")
    came = build_through_bursts(
        fill(tmp_path, 3),
        tmp_path / "run",
        picture,
        findings=5,
        concurrency=12,
        first_s=60.0,
        **settings,  # type: ignore[arg-type]
    )
    print(came)
    assert came.paid_again == 0 and came.starts >= starts
    assert came.states.get("stopped", 0) == 0 and sum(came.states.values()) == 15
    assert came.seen["503"] > 0 and came.hours > 600 / 3600  # it has been through a burst
    assert came.held_usd <= 0.01 * came.spent_usd
    assert came.bill_usd == pytest.approx(came.spent_usd)
