"""Near duplicates of a catalogue: many images with one code make few pairs."""

from __future__ import annotations

import numpy as np

from plantain.catalogue.near import MANY, _thinned_pairs


def test_many_blank_images_are_each_paired_with_the_first_alone() -> None:
    few, many = (list(_thinned_pairs(np.zeros((n, 32), np.uint8))) for n in (MANY, 3_000))
    assert len(few) == MANY * (MANY - 1) // 2
    assert many == [(0, other, 0) for other in range(1, 3_000)]
