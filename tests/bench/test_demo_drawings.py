"""Drawing clusters again: sizes of strata, and the same digits on any number of cores."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from plantain.bench.demo import drawn_sums, resampled_weights


def test_no_digit_hangs_on_the_number_of_cores():
    # A product of matrices is added up by as many threads as there are cores: 6e-14 apart at this size, and an interval
    # that a page states would end in another digit.
    rng = np.random.default_rng(0)
    weights, table = resampled_weights(rng.integers(0, 5, 1182), 3, 500), rng.normal(size=(1182, 13))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(drawn_sums(weights, table))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], weights @ table, atol=1e-11)
