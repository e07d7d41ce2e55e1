from __future__ import annotations

import numpy as np

from plantain.models.probe.frame import SIDE, framed, inside_of, levelled
from plantain.train.probe.changes import (
    blended,
    core,
    covered,
    mirrored,
    rough_mass,
    soft_mass,
    with_border_of,
    with_tones_of,
)

from .heads import head


def test_a_frame_is_cut_to_its_content_whatever_lies_around_it() -> None:
    small = head(1, ring=True)
    wide = np.zeros((300, 400, 3), np.uint8)
    wide[40:200, 200:360] = small
    wide[5:8, 5:60] = 255  # a line of a watermark, beside the head
    assert np.abs(framed(small).astype(int) - framed(wide)).mean() < 4


def test_levels_do_not_change_with_gain_and_offset() -> None:
    frame = framed(head(1, ring=True))
    inside = inside_of(frame)
    other = np.where(inside, np.clip(frame * 0.7 + 12, 0, 255), frame).astype(np.uint8)
    one, two = levelled(frame), levelled(other)
    assert np.abs(one - two)[inside & inside_of(other)].mean() < 0.1


def test_a_transplant_shows_one_inside_and_the_others_rim() -> None:
    case, healthy = framed(head(1, ring=True)), framed(head(2, ring=False))
    made = blended(healthy, case, core(healthy, case, 0.07, 1.0), matched=False)
    middle, corner = slice(SIDE // 2 - 8, SIDE // 2 + 8), slice(0, 6)
    assert np.array_equal(made[middle, middle], case[middle, middle])
    assert np.array_equal(made[corner, corner], healthy[corner, corner])


def test_a_mirrored_half_is_its_own_mirror_image() -> None:
    frame = framed(head(1, ring=True))
    for side in (0, 1):
        made = mirrored(frame, side)
        assert np.array_equal(made, made[:, ::-1])
        own = slice(0, SIDE // 2) if side == 0 else slice(SIDE // 2, SIDE)
        assert np.array_equal(made[:, own], frame[:, own])


def test_masses_change_the_inside_alone() -> None:
    frame = framed(head(2, ring=False))
    for seed in range(8):
        for mass in (soft_mass, rough_mass):
            changed = np.abs(mass(frame, np.random.default_rng(seed)).astype(int) - frame) > 12
            assert changed.any()
            assert not (changed & ~inside_of(frame)).any()


def test_covers_and_exchanges_touch_what_they_say() -> None:
    case, healthy = framed(head(1, ring=True)), framed(head(2, ring=False))
    made = covered(case, healthy, (SIDE / 2, SIDE / 2), 12)
    far = np.hypot(*(np.mgrid[:SIDE, :SIDE] - SIDE / 2)) > 30
    assert np.array_equal(made[far], case[far]) and not np.array_equal(made, case)
    toned, inside = with_tones_of(case, healthy), inside_of(case)
    # The quartiles of the content are those of the other picture, but for whole levels.
    there = np.percentile(healthy[inside_of(healthy)], (25, 50, 75))
    assert np.abs(np.percentile(toned[inside], (25, 50, 75)) - there).max() <= 3
    assert np.array_equal(with_border_of(case, healthy)[inside], case[inside])
