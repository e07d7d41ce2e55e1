"""Where the lobes lie in a slice, roughly: soft weights over the brain's bounding box."""

from __future__ import annotations

import numpy as np

from plantain.offline.brain.anatomy import Brain
from plantain.offline.brain.fields import Real
from plantain.pixels.arrays import Field

HEIGHT = 0.72
"""Of a brain with its cerebellum, over its length from front to back."""


def zone_weight(zone: str | None, x: Real, y: Real, brain: Brain, plane: str) -> Field:
    """How well a place suits a lobe, 0 to 1; 1 everywhere when no lobe is asked for.

    Lobes are told by position only: front to back and top to bottom of the brain's extent in the slice
    (display: nose up on axial, head up on coronal and sagittal, nose to image left on sagittal).
    A coronal slice shows which lobe lies at a height, not how far back it is.

    Args:
        zone: "frontal", "parietal", "temporal", "occipital", or None.
        x, y: full-image coordinates.
        brain: the analysed slice.
        plane: "axial", "coronal" or "sagittal".
    """
    across, down = (x - brain.centre_of_box[0]) / brain.width + 0.5, downwards(y, brain, plane)
    if zone is None:
        return np.ones(x.shape, np.float32)
    lateral = np.abs(across - 0.5) * 2
    if plane == "axial":
        places = {
            "frontal": _bump(down, 0.24, 0.13),
            "parietal": _bump(down, 0.66, 0.11),
            "temporal": _bump(down, 0.52, 0.12) * np.clip(lateral * 2 - 0.6, 0, 1),
            "occipital": _bump(down, 0.82, 0.09),
        }
    elif plane == "coronal":
        places = {
            "frontal": _bump(down, 0.25, 0.14),
            "parietal": _bump(down, 0.25, 0.14),
            "temporal": _bump(down, 0.72, 0.12) * np.clip(lateral * 2 - 0.5, 0, 1),
            "occipital": _bump(down, 0.45, 0.15),
        }
    else:
        places = {
            "frontal": _bump(across, 0.22, 0.12) * _bump(down, 0.35, 0.18),
            "parietal": _bump(across, 0.62, 0.12) * _bump(down, 0.22, 0.14),
            "temporal": _bump(across, 0.38, 0.14) * _bump(down, 0.68, 0.12),
            "occipital": _bump(across, 0.85, 0.09) * _bump(down, 0.48, 0.16),
        }
    weight: Field = np.asarray(places.get(zone, np.ones(x.shape)), np.float32)
    return np.where(weight > 0.05, weight, 0).astype(np.float32)


def downwards(y: Real, brain: Brain, plane: str) -> Real:
    """How far down the brain a row lies, 0 at its top, 1 at its base; the neck of a sagittal slice is none of it."""
    height = min(brain.height, HEIGHT * brain.width) if plane == "sagittal" else brain.height
    return (y - (brain.centre_of_box[1] - brain.height / 2)) / height


def _bump(value: Real, centre: float, width: float) -> Field:
    bump: Field = np.exp(-(((value - np.float32(centre)) / np.float32(width)) ** 2)).astype(np.float32)
    return bump
