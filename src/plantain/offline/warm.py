"""What every worker needs before its first picture, done once: the fork server imports this, its children have it.

Loaded in each worker anew, the renderers and the compiled SSIM are a second of processor before a run's first edit.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from plantain.metrics.ssim_kernel import WINDOW, column_totals
from plantain.offline.editor import PACKAGES

for module in ("plantain.offline.judge", *PACKAGES.values()):
    import_module(module)

_square = np.zeros((WINDOW, WINDOW), np.uint8)
column_totals(_square, _square, _square[:1, :1], 1)
