"""Compare three training sets on the same real held-out images: real ones, with edits added, and augmented."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.areas import PairedArea, paired_areas
from plantain.records import InputError, derive_seed
from plantain.train.utility.classifier import fit, logits_of
from plantain.train.utility.images import LabelledFrames

REAL, EDITS, AUGMENTED = "real", "real + edits", "real + standard augmentation"
ARMS = (REAL, EDITS, AUGMENTED)
TRAINING_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Utility:
    """The effect of training with edits.

    Attributes:
        n: real images in each training set.
        edits: edits in the second training set.
        seeds: trainings per arm; each samples other real images.
        held_out: real images that every classifier is measured on.
        areas: mean area under the ROC curve by arm, then finding.
        differences: arm minus `REAL`, by arm, then finding.
    """

    n: int
    edits: int
    seeds: int
    held_out: int
    areas: Mapping[str, Mapping[str, float]]
    differences: Mapping[str, Mapping[str, PairedArea]]


def compare_arms(
    real: LabelledFrames,
    edits: LabelledFrames,
    n: int,
    seeds: int,
    *,
    epochs: int = 30,
    batch: int = 32,
    width: int = 48,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Utility:
    """Train every arm `seeds` times and measure all on the same real images.

    Args:
        real: labelled images; two fifths of their groups are held out.
        edits: of the same findings; those of held-out groups are not used.
        n: real images per training set, balanced over findings and healthy images.
        seeds: at least 2.
        epochs, batch, width: of every training; all arms make the same number of steps.
        progress: called with the trainings done and their total.

    Raises:
        InputError: fewer than `n` images outside the held-out groups, or no usable edit.
    """
    rest, held_out = real.split(TRAINING_SHARE, derive_seed(0, "utility"))
    edits = edits.select(~np.isin(edits.groups, held_out.groups))
    if len(rest) < n or not len(edits):
        short = f"{len(rest)} real images" if len(rest) < n else "no edit of other originals"
        raise InputError(
            f"{short} to train on, with {len(held_out)} held out: give more images, or a smaller --n"
        )
    steps = epochs * max(1, n // batch)
    scores: dict[str, list[npt.NDArray[np.float64]]] = {arm: [] for arm in ARMS}
    for seed in range(seeds):
        sampled = rest.select(_balanced_sample(rest, n, seed))
        for number, arm in enumerate(ARMS):
            progress(seed * len(ARMS) + number, seeds * len(ARMS))
            shown = sampled.joined(edits) if arm == EDITS else sampled
            own_seed, augmented = derive_seed(seed, arm), arm == AUGMENTED
            network = fit(shown, own_seed, steps=steps, batch=batch, width=width, augmented=augmented)
            scores[arm].append(logits_of(network, held_out.frames))
    progress(seeds * len(ARMS), seeds * len(ARMS))
    areas: dict[str, dict[str, float]] = {arm: {} for arm in ARMS}
    differences: dict[str, dict[str, PairedArea]] = {arm: {} for arm in ARMS if arm != REAL}
    for column, name in enumerate(real.findings):
        cases = held_out.labels[:, column]
        for arm in differences:
            first, second = (np.stack(scores[one])[:, :, column] for one in (arm, REAL))
            found = paired_areas(first, second, cases, held_out.groups)
            differences[arm][name] = found
            areas[arm][name], areas[REAL][name] = found.first, found.second
    return Utility(n, len(edits), seeds, len(held_out), areas, differences)


def _balanced_sample(rest: LabelledFrames, n: int, seed: int) -> npt.NDArray[np.intp]:
    """n row numbers, about as many of each finding as without any."""
    rng = np.random.default_rng(derive_seed(seed, "utility pictures") % 2**31)
    kinds = [np.flatnonzero(rest.healthy), *(np.flatnonzero(column) for column in rest.labels.T)]
    orders = [rng.permutation(kind).tolist() for kind in kinds]
    chosen: dict[int, None] = {}
    while len(chosen) < n and any(orders):
        for order in orders:
            if order and len(chosen) < n:
                chosen.setdefault(order.pop())
    return np.array(sorted(chosen), np.intp)
