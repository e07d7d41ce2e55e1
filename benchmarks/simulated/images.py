"""One real photograph, its record, and tasks on it: what several benchmarks begin with."""

from __future__ import annotations

import numpy as np
import skimage.data

from plantain.pixels.encode import prepare
from plantain.records import Licence, SourceImage


def photograph() -> np.ndarray:
    """uint8 (1024, 1024, 3): scikit-image's retina, prepared."""
    return prepare(skimage.data.retina())[0]


def source_image(prepared: str) -> SourceImage:
    """The record of that photograph, whose prepared bytes have this hash."""
    _, geometry = prepare(skimage.data.retina())
    return SourceImage(
        id="retina",
        dataset="scikit-image",
        modality="fundus",
        labels=("normal",),
        licence=Licence.OPEN,
        source_sha256=prepared,
        prepared_sha256=prepared,
        geometry=geometry,
        view="fundus",
    )
