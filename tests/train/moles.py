"""Small pictures with a dark spot and without, as pairs to learn from."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.train.examples.pairs import PreferencePair, TrainingPair

INSTRUCTION = "remove the mole"


def skin(seed: int, size: int = 64) -> np.ndarray:
    rng = np.random.default_rng(seed)
    tone = np.array([200, 160, 140]) + rng.integers(-20, 20, 3)
    grain = cv2.GaussianBlur(rng.normal(0, 12, (size, size)).astype(np.float32), (0, 0), 1.5)
    return np.clip(tone + grain[..., None], 0, 255).astype(np.uint8)


def with_mole(picture: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed + 1000)
    x, y = rng.integers(16, picture.shape[0] - 16, 2)
    return cv2.circle(picture.copy(), (int(x), int(y)), 7, (60, 35, 25), -1)


def pairs(count: int, first: int = 0) -> list[TrainingPair]:
    made = []
    for number in range(first, first + count):
        clean = skin(number)
        made.append(
            TrainingPair(str(number), "moles", str(number), INSTRUCTION, with_mole(clean, number), clean)
        )
    return made


def preferences(count: int, first: int = 0) -> list[PreferencePair]:
    """The loser is the picture unedited: the typical failure of an editor."""
    return [
        PreferencePair(p.id, p.task, p.cluster, p.instruction, p.before, p.after, p.before)
        for p in pairs(count, first)
    ]
