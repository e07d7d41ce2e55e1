"""A grid of soft dots, whose centres say where an image's pixels went."""

from __future__ import annotations

import numpy as np


def dots(width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """A grey image with soft dots a fifth of the shorter side apart, and their centres (n, 2) as x, y.

    The dots are as wide as an image of this size can show on the smallest canvas: a pixel there is up to
    `max(width, height) / 512` pixels here.
    """
    spread = max(2.0, 1.5 * max(width, height) / 512)
    step = max(min(width, height) / 5, 8 * spread)
    xs, ys = (np.arange(step / 2, length, step) for length in (width, height))
    centres = np.stack(np.meshgrid(xs, ys), -1).reshape(-1, 2)
    across, down = (
        np.exp(-((np.arange(length) - places[:, None]) ** 2) / (2 * spread**2)).sum(axis=0)
        for length, places in ((width, xs), (height, ys))
    )
    image = down[:, None] * across[None]
    grey = (30 + 200 * np.clip(image, 0, 1)).round().astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2), centres


def displacement(before: np.ndarray, after: np.ndarray, centres: np.ndarray) -> float:
    """Largest distance, in pixels, between a dot's centre of mass before and after."""
    height, width = before.shape[:2]
    reach = 2.5 * max(2.0, 1.5 * max(width, height) / 512)
    columns, rows = np.arange(width), np.arange(height)
    worst = 0.0
    for x, y in centres:
        if min(x, y, width - 1 - x, height - 1 - y) < 2 * reach:
            continue
        near_x, near_y = (np.abs(columns - x) <= reach), (np.abs(rows - y) <= reach)
        found = []
        for image in (before, after):
            weight = np.clip(image[near_y][:, near_x, 0].astype(float) - 40, 0, None)
            found.append(
                (
                    (weight.sum(0) * columns[near_x]).sum() / weight.sum(),
                    (weight.sum(1) * rows[near_y]).sum() / weight.sum(),
                )
            )
        worst = max(worst, float(np.hypot(found[0][0] - found[1][0], found[0][1] - found[1][1])))
    return worst
