"""What a probe is shown in training: pictures as if from anywhere, and transplants whose inside decides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.models.probe.frame import SIDE, Frame, levelled
from plantain.train.probe.changes import (
    blended,
    core,
    covered,
    disc,
    handled,
    mirrored,
    moved,
    soft_mass,
)
from plantain.train.probe.pictures import LabelledFrames

Labels = npt.NDArray[np.float32]
Places = npt.NDArray[np.float32]
"""Where the network saw each finding last: (N, findings, 2) as x, y in pixels; NaN where it was not asked."""


@dataclass(frozen=True, slots=True)
class Shares:
    """How much of a batch is changed in which way; the rest is shown as it is."""

    transplants: float = 0.35
    masses: float = 0.12
    covers: float = 0.15
    halves: float = 0.08


SHARES = Shares()


class Batches:
    """Draws examples; the same seed and step draw the same.

    Args:
        pictures: to learn from.
        seed: of the draws.
        shares: of the changes; None for none.
        augmented: whether what is shown is moved and comes in other tones, codecs and sharpness.
    """

    def __init__(
        self, pictures: LabelledFrames, seed: int, shares: Shares | None = SHARES, *, augmented: bool = True
    ) -> None:
        self._pictures = pictures
        self._seed = seed
        self._shares = shares
        self._augmented = augmented
        self._cases = np.flatnonzero(~pictures.healthy)
        self._healthy = np.flatnonzero(pictures.healthy)
        self.places: Places = np.full((len(pictures), len(pictures.findings), 2), np.nan, np.float32)

    def draw(self, which: npt.NDArray[np.intp], step: int) -> tuple[npt.NDArray[np.float32], Labels]:
        """Levelled frames (N, SIDE, SIDE) and labels (N, findings) for these pictures."""
        rng = np.random.default_rng((self._seed, step))
        made = [self._example(int(number), rng) for number in which]
        augmented = self._augmented
        shown = [levelled(handled(moved(frame, rng), rng) if augmented else frame) for frame, _ in made]
        return np.stack(shown), np.stack([label for _, label in made]).astype(np.float32)

    def _example(self, number: int, rng: np.random.Generator) -> tuple[Frame, npt.NDArray[np.bool_]]:
        frame, label = self._pictures.frames[number], self._pictures.labels[number]
        if self._shares is None:
            return frame, label
        drawn = rng.random()
        for share, change in (
            (self._shares.transplants, self._transplant),
            (self._shares.masses, self._mass),
            (self._shares.covers, self._cover),
            (self._shares.halves, self._half),
        ):
            if drawn < share:
                return change(number, rng)
            drawn -= share
        return frame, label

    def _transplant(self, number: int, rng: np.random.Generator) -> tuple[Frame, npt.NDArray[np.bool_]]:
        """This picture's inside in the rim of another: what is inside decides."""
        frame, label = self._pictures.frames[number], self._pictures.labels[number]
        others = self._healthy if label.any() and rng.random() < 0.7 else self._cases
        rim = self._pictures.frames[int(rng.choice(others))]
        alpha = core(rim, frame, float(rng.uniform(0.02, 0.13)), float(rng.uniform(0.6, 5.0)))
        return blended(rim, frame, alpha, matched=bool(rng.random() < 0.5)), label

    def _mass(self, number: int, rng: np.random.Generator) -> tuple[Frame, npt.NDArray[np.bool_]]:
        """A plain mass adds no finding and takes none away."""
        frame, label = self._pictures.frames[number], self._pictures.labels[number]
        if label.any() and rng.random() < 0.6:
            number = int(rng.choice(self._healthy))
            frame, label = self._pictures.frames[number], self._pictures.labels[number]
        return soft_mass(frame, rng), label

    def _cover(self, number: int, rng: np.random.Generator) -> tuple[Frame, npt.NDArray[np.bool_]]:
        """Healthy tissue where the network saw the finding, or elsewhere; or that place in a healthy picture."""
        frame, label = self._pictures.frames[number], self._pictures.labels[number]
        healthy = self._pictures.frames[int(rng.choice(self._healthy))]
        radius = float(rng.uniform(0.13, 0.26)) * SIDE
        seen = self.places[number][label]
        if not label.any() or np.isnan(seen).any():
            return covered(frame, healthy, tuple(rng.uniform(0.25, 0.75, 2) * SIDE), radius * 0.6), label
        at = seen[0]
        chance = rng.random()
        if chance < 0.35:
            return covered(frame, healthy, (at[0], at[1]), radius), np.zeros_like(label)
        if chance < 0.75:
            alpha = disc((at[0], at[1]), radius, float(rng.uniform(1.0, 4.0)))
            return blended(healthy, frame, alpha, matched=False), label
        away = rng.uniform(0.2, 0.8, (32, 2)) * SIDE
        far = away[int(np.argmax(np.hypot(*(away - at).T)))]
        return covered(frame, healthy, (far[0], far[1]), 0.12 * SIDE), label

    def _half(self, number: int, rng: np.random.Generator) -> tuple[Frame, npt.NDArray[np.bool_]]:
        """A half shown twice: it shows the finding where the network saw it in that half."""
        frame, label = self._pictures.frames[number], self._pictures.labels[number]
        seen = self.places[number][label]
        if not label.any() or np.isnan(seen).any():
            other = int(rng.choice(self._healthy))
            return mirrored(self._pictures.frames[other], int(rng.integers(2))), self._pictures.labels[other]
        side = int(seen[0][0] > SIDE / 2)
        if abs(float(seen[0][0]) - SIDE / 2) > 0.15 * SIDE and rng.random() < 0.3:
            return mirrored(frame, 1 - side), np.zeros_like(label)
        return mirrored(frame, side), label
