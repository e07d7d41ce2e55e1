from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plantain.metrics.statistics.areas import clustered_area, paired_areas
from plantain.records import Direction, InputError
from plantain.train.probe.edits import MadeEdit
from plantain.train.probe.learning import ProbeSchedule
from plantain.train.probe.page import write_utility_page
from plantain.train.probe.utility import ARMS, EDITS, edited_frames, utility

from .heads import head, labelled

QUICK = ProbeSchedule(epochs=2, batch=16, width=16)


def _edits(count: int, finding: str = "ring") -> list[MadeEdit]:
    return [
        MadeEdit(str(k), "e", f"other {k}", finding, Direction.ADD, head(k, False), head(k, True))
        for k in range(5000, 5000 + count)
    ]


def test_every_arm_is_measured_by_the_same_pictures(tmp_path: Path) -> None:
    real = labelled(80)
    done: list[tuple[int, int]] = []
    found = utility(real, edited_frames(_edits(6), real), 24, 2, QUICK, lambda at, of: done.append((at, of)))
    assert tuple(found.areas) == ARMS and done == [(at, 6) for at in range(7)]
    assert found.edits == 6 and 25 <= found.held_out <= 40
    one = found.differences[EDITS]["ring"]
    assert one.difference == pytest.approx(found.areas[EDITS]["ring"] - found.areas["real"]["ring"])
    assert one.low is not None and one.high is not None and -1 <= one.low <= one.difference <= one.high <= 1
    assert "Difference to real pictures alone" in write_utility_page(found, "made", tmp_path).read_text()
    assert json.loads((tmp_path / "utility.json").read_text())["n"] == 24


def test_edits_of_held_out_pictures_are_not_learned_from() -> None:
    real = labelled(80)
    all_groups = [
        replace(edit, group=group) for edit, group in zip(_edits(80), real.groups.tolist(), strict=True)
    ]
    found = utility(real, edited_frames(all_groups, real), 24, 2, replace(QUICK, epochs=1))
    assert found.edits == 80 - found.held_out


def test_what_cannot_be_measured_is_refused() -> None:
    real = labelled(40)
    with pytest.raises(InputError, match="no edit is about ring; they are about glioma"):
        edited_frames(_edits(3, "glioma"), real)
    with pytest.raises(InputError, match="real pictures to learn from"):
        utility(real, edited_frames(_edits(3), real), 100, 2, QUICK)


def test_removals_are_shown_as_pictures_without_the_finding() -> None:
    real = labelled(40)
    removed = [replace(edit, direction=Direction.REMOVE) for edit in _edits(2)]
    assert edited_frames([*_edits(1), *removed], real).labels[:, 0].tolist() == [True, False, False]


def test_paired_areas_are_exact_where_nothing_differs_and_cover_where_something_does() -> None:
    rng = np.random.default_rng(0)
    cases, groups = np.arange(120) % 2 == 0, np.arange(120) // 2
    one = rng.normal(size=(3, 120)) + cases
    same = paired_areas(one, one, cases, groups)
    assert (same.difference, same.low, same.high) == (0.0, 0.0, 0.0)
    assert same.first == pytest.approx(np.mean([clustered_area(row, cases, groups)[0] for row in one]))
    held = 0
    for _ in range(100):
        # Both see the case with the same strength, so the true difference is 0.
        a, b = (rng.normal(size=(4, 120)) + cases for _ in range(2))
        found = paired_areas(a, b, cases, groups)
        assert found.low is not None and found.high is not None
        held += found.low <= 0 <= found.high
    assert held >= 91
    with pytest.raises(ValueError, match="two repeats"):
        paired_areas(one[:1], one[:1], cases, groups)
