"""Imported once by the fork server, so that every worker starts with what its first task needs."""

from __future__ import annotations

import numpy as np

import plantain.offline.editor
import plantain.offline.judge  # noqa: F401
from plantain.metrics.ssim_kernel import WINDOW, column_totals

_square = np.zeros((WINDOW, WINDOW), np.uint8)
column_totals(_square, _square, _square[:1, :1], 1)
