"""Editors of known quality, to test a benchmark itself: they know the answer and spoil it in one stated way.

More of the change is more accurate, and changes of the rest of the image cost preservation: a good benchmark recovers
this planted order. None of the editors reads its instruction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import cv2
import numpy as np

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import encode_png
from plantain.pixels.arrays import Mask, Pixels
from plantain.records import Outcome, OutcomeKind, derive_seed
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed

VERSION = "1"
Spoil = Callable[[Pixels, Pixels, Mask, np.random.Generator], Pixels]
"""(before, truth, region, generator) -> output; images are uint8 (H, W, 3)."""

NOISE = 2.0
"""Standard deviation of `noisy`, in grey levels."""

COARSE = 8
"""Factor by which `repainted` shrinks an image before it enlarges it again."""


def exact(before: Pixels, truth: Pixels, region: Mask, rng: np.random.Generator) -> Pixels:
    """The true change, and nothing else."""
    return _moved(before, truth, 1.0)


def half(before: Pixels, truth: Pixels, region: Mask, rng: np.random.Generator) -> Pixels:
    """Half of the change."""
    return _moved(before, truth, 0.5)


def faint(before: Pixels, truth: Pixels, region: Mask, rng: np.random.Generator) -> Pixels:
    """A fifth of the change."""
    return _moved(before, truth, 0.2)


def noisy(before: Pixels, truth: Pixels, region: Mask, rng: np.random.Generator) -> Pixels:
    """The true change, with noise over the whole image."""
    grain = rng.normal(0.0, NOISE, before.shape[:2])[..., None]
    return _bytes(truth + grain)


def repainted(before: Pixels, truth: Pixels, region: Mask, rng: np.random.Generator) -> Pixels:
    """The true change in a redrawn image: coarser, and a little displaced everywhere."""
    height, width = truth.shape[:2]
    small = cv2.resize(truth, (width // COARSE, height // COARSE), interpolation=cv2.INTER_AREA)
    coarse = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    shift = np.array([[1.0, 0.0, 0.006 * width], [0.0, 1.0, -0.004 * height]])
    return np.asarray(
        cv2.warpAffine(coarse, shift, (width, height), borderMode=cv2.BORDER_REPLICATE), np.uint8
    )


def misplaced(before: Pixels, truth: Pixels, region: Mask, rng: np.random.Generator) -> Pixels:
    """The whole change on the other side of the image, or elsewhere if the change is on both sides."""
    change = truth.astype(np.float64) - before
    there, elsewhere = change[:, ::-1], region[:, ::-1]
    if (elsewhere & region).any():
        away = region.shape[0] // 3
        there, elsewhere = np.roll(change, away, axis=0), np.roll(region, away, axis=0)
    return _bytes(before + np.where((elsewhere & ~region)[..., None], there, 0.0))


def _moved(before: Pixels, truth: Pixels, share: float) -> Pixels:
    return _bytes(before + share * (truth.astype(np.float64) - before))


def _bytes(values: np.ndarray) -> Pixels:
    return np.asarray(np.clip(np.rint(values), 0, 255), np.uint8)


PLANTED: dict[str, Spoil] = {
    f"planted/{spoil.__name__}": spoil for spoil in (exact, half, faint, noisy, repainted, misplaced)
}

ACCURACY = ("planted/exact", "planted/half", "planted/faint", "copy-input")
"""Planted order in editing accuracy: more of the change first."""

PRESERVATION = ("planted/exact", "planted/noisy", "planted/repainted")
"""Planted order in context preservation: smaller changes of the rest first."""


class KnownEditor:
    """One planted way as an editor over one benchmark, whose truths it looks up."""

    def __init__(self, label: str, benchmark: Benchmark) -> None:
        self.name = label
        self.fingerprint = f"{label.partition('/')[2]}@{VERSION}"
        self._spoil, self._benchmark = PLANTED[label], benchmark

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """Return the spoilt truth; `not_applicable` for a sample without truth or region."""
        sample = self._benchmark.sample(request.image.id)
        if sample.changed is None or sample.roi is None:
            return failed(Outcome(OutcomeKind.NOT_APPLICABLE, "a planted edit needs a truth and a region"))
        data = await asyncio.to_thread(self._edited, request.image.id)
        note = f"planted: {(self._spoil.__doc__ or '').strip().rstrip('.').lower()}"
        return Reply(EditedImage(EncodedImage(data, "image/png"), note=note))

    def _edited(self, sample_id: str) -> bytes:
        sample = self._benchmark.sample(sample_id)
        rng = np.random.default_rng(derive_seed(0, self.name, sample_id))
        before, truth = self._benchmark.previous(sample), self._benchmark.changed(sample)
        return encode_png(self._spoil(before, truth, self._benchmark.roi(sample), rng))
