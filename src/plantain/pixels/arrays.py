"""Types of arrays that all packages share: pixels, planes and masks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
"""uint8 (H, W, 3), RGB; grey modalities have three equal channels."""

Image = npt.NDArray[np.uint8]
"""uint8 (H, W) or (H, W, C), in grey levels 0..255."""


Field = npt.NDArray[np.float32]
"""float32 (H, W)."""

Mask = npt.NDArray[np.bool_]
"""bool (H, W)."""

Floats = npt.NDArray[np.float64]
"""float64, of any shape."""
