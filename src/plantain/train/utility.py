"""Compare three training sets on the same real held-out images: real ones, with edits added, and augmented.

The classifier is a small convolutional one: a logit for each finding from the soft maximum of local evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from plantain.metrics.statistics.areas import PairedArea, paired_areas
from plantain.pixels.arrays import Floats
from plantain.records import InputError, derive_seed
from plantain.train.utility_images import Frame, LabelledFrames, augment, normalise_tones

REAL, EDITS, AUGMENTED = "real", "real + edits", "real + standard augmentation"
ARMS = (REAL, EDITS, AUGMENTED)
TRAINING_SHARE = 0.6
SHARPNESS = 3.0  # of the soft maximum over positions


@dataclass(frozen=True, slots=True)
class Utility:
    """The effect of adding edits to a classifier's training set.

    Attributes:
        n: number of real images in each training set.
        edits: number of edits in the second training set.
        seeds: number of trainings per arm; each samples different real images.
        held_out: number of real images on which every classifier is measured.
        areas: mean area under the ROC curve by arm, then finding.
        differences: difference of the area from that of `REAL`, by arm, then finding.
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
        edits: edits of the same findings; those of held-out groups are not used.
        n: number of real images per training set, balanced over findings and healthy images.
        seeds: number of trainings per arm, at least 2.
        epochs, batch, width: settings of every training; all arms make the same number of steps.
        progress: called with the numbers of finished and of all trainings.

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


class Classifier(nn.Module):  # type: ignore[misc]  # torch is not typed
    """A small convolutional network from normalised frames (N, side, side) to logits (N, findings).

    Args:
        findings: number of findings.
        width: channels of the widest layer.
    """

    def __init__(self, findings: int, width: int) -> None:
        super().__init__()
        quarter, half = width // 4, width // 2
        self.features = nn.Sequential(
            *_layer(3, quarter, size=5, stride=2),
            *_layer(quarter, half, stride=2),
            *_layer(half, half),
            *_layer(half, width, stride=2),
            *_layer(width, width),
            *_layer(width, width),
        )
        self.evidence = nn.Conv2d(width, findings, 1)
        self.dropout = nn.Dropout2d(0.1)

    def forward(self, frames: Tensor) -> Tensor:
        n, rows, columns = frames.shape
        down = torch.linspace(-1, 1, rows).view(1, 1, rows, 1).expand(n, 1, rows, columns)
        across = torch.linspace(-1, 1, columns).view(1, 1, 1, columns).expand(n, 1, rows, columns)
        features = self.features(torch.cat([frames.unsqueeze(1), down, across], 1))
        flat = self.evidence(self.dropout(features)).flatten(2)
        positions = torch.log(torch.tensor(float(flat.shape[2])))
        return (torch.logsumexp(SHARPNESS * flat, 2) - positions) / SHARPNESS


def _layer(before: int, after: int, *, size: int = 3, stride: int = 1) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(before, after, size, stride, size // 2, bias=False)
    return convolution, nn.BatchNorm2d(after), nn.ReLU(inplace=True)


def fit(
    images: LabelledFrames, seed: int, *, steps: int, batch: int, width: int, augmented: bool
) -> Classifier:
    """Train a classifier on one thread; the same seed gives the same weights.

    Args:
        images: training images, some with a finding and some without any.
        seed: seed of weights, order and augmentation.
        steps: number of optimiser steps, with `batch` images each.
        width: channels of the widest layer.
        augmented: True to apply `augment` to every image.
    """
    torch.manual_seed(derive_seed(seed, "probe weights") % 2**31)
    draws = derive_seed(seed, "probe draws") % 2**31
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    network = Classifier(len(images.findings), width)
    adam = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=0.02)
    pace = torch.optim.lr_scheduler.OneCycleLR(adam, 3e-3, total_steps=steps, pct_start=0.1)
    share = images.labels.mean(axis=0)
    weight = np.clip((1 - share) / np.maximum(share, 1e-3), 0.5, 20)
    loss_of = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(weight, dtype=torch.float32))
    network.train()
    for step, rows in enumerate(_order(images, steps, batch, seed)):
        rng = np.random.default_rng((draws, step))
        frames = [augment(images.frames[row], rng) if augmented else images.frames[row] for row in rows]
        labels = torch.from_numpy(images.labels[rows].astype(np.float32))
        adam.zero_grad(set_to_none=True)
        loss_of(network(_batch(frames)), labels).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        adam.step()
        pace.step()
    torch.set_num_threads(threads)
    return network


def logits_of(network: Classifier, frames: npt.NDArray[np.uint8]) -> Floats:
    """Compute a classifier's logits (N, findings) for frames, uint8 (N, SIDE, SIDE)."""
    network.eval()
    with torch.inference_mode():
        chunks = [network(_batch(frames[at : at + 128])).numpy() for at in range(0, len(frames), 128)]
    return np.concatenate(chunks).astype(np.float64)


def _batch(frames: Iterable[Frame]) -> Tensor:
    return torch.from_numpy(np.stack([normalise_tones(frame) for frame in frames]))


def _order(images: LabelledFrames, steps: int, batch: int, seed: int) -> list[npt.NDArray[np.intp]]:
    """Rows of each step: two fifths without any finding, the others with one; each kind in shuffled epochs."""
    rng = np.random.default_rng(derive_seed(seed, "probe order") % 2**31)
    kinds = [np.flatnonzero(images.healthy), np.flatnonzero(~images.healthy)]
    counts = [batch * 2 // 5, batch - batch * 2 // 5]
    drawn = [
        np.concatenate([rng.permutation(kind) for _ in range(math.ceil(steps * n / len(kind)))])
        for kind, n in zip(kinds, counts, strict=True)
    ]
    return [
        np.concatenate([kind[step * n : (step + 1) * n] for kind, n in zip(drawn, counts, strict=True)])
        for step in range(steps)
    ]
