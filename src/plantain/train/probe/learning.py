"""Fitting a probe's network, and calibrating what it says."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from plantain.models.probe.folder import logits_of
from plantain.models.probe.frame import SIDE, levelled
from plantain.models.probe.network import ProbeNetwork
from plantain.records import derive_seed
from plantain.train.probe.batches import SHARES, Batches, Shares
from plantain.train.probe.changes import curved, recoded
from plantain.train.probe.pictures import LabelledFrames

_LOOK_FROM, _LOOK_EVERY = 3, 3
"""Epochs after which the network is first asked where it saw each finding, and after how many more it is again."""


@dataclass(frozen=True, slots=True)
class ProbeSchedule:
    """How long and how fast.

    Attributes:
        epochs: times that every training picture is drawn.
        batch: pictures per step.
        rate: highest learning rate; it rises in the first tenth and falls along a cosine.
        width: of the network's widest layer.
        shares: of changed pictures; None for none, as for a control.
        augmented: whether every picture is moved, and shown in other tones, codecs and sharpness.
        steps: in place of `epochs`; None for as many as these make.
    """

    epochs: int = 24
    batch: int = 64
    rate: float = 3e-3
    width: int = 96
    shares: Shares | None = SHARES
    augmented: bool = True
    steps: int | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """By finding: a calibrated logit is raw / temperature - shift; margins are of calibrated logits."""

    temperatures: tuple[float, ...]
    shifts: tuple[float, ...]
    margins: tuple[float, ...]


def fit(
    pictures: LabelledFrames,
    schedule: ProbeSchedule,
    seed: int,
    advanced: Callable[[int, int, float], None] = lambda step, of, loss: None,
) -> ProbeNetwork:
    """Trains a network on pictures; the same seed gives the same network.

    One thread learns while another draws the next pictures: twice as many fight over the same two cores.

    Args:
        pictures: to learn from.
        schedule: how long.
        seed: of weights and draws.
        advanced: told step, steps and loss.
    """
    torch.manual_seed(derive_seed(seed, "probe weights") % 2**31)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    network = ProbeNetwork(len(pictures.findings), schedule.width)
    batches = Batches(
        pictures, derive_seed(seed, "probe draws") % 2**31, schedule.shares, augmented=schedule.augmented
    )
    per_epoch = math.ceil(len(pictures) / schedule.batch)
    steps = schedule.epochs * per_epoch if schedule.steps is None else schedule.steps
    adam = torch.optim.AdamW(network.parameters(), lr=schedule.rate, weight_decay=0.02)
    pace = torch.optim.lr_scheduler.OneCycleLR(adam, schedule.rate, total_steps=steps, pct_start=0.1)
    has = pictures.labels.mean(axis=0)
    lost = nn.BCEWithLogitsLoss(
        pos_weight=torch.tensor(np.clip((1 - has) / np.maximum(has, 1e-3), 0.5, 20), dtype=torch.float32)
    )
    order = _order(pictures, steps, schedule.batch, seed)
    # One thread draws the next batch while the network learns from this one.
    with ThreadPoolExecutor(1) as drawer:
        coming = drawer.submit(batches.draw, order[0], 0)
        for step in range(steps):
            shown, labels = coming.result()
            if schedule.shares is not None and _looks(step, per_epoch):
                batches.places = where_seen(network, pictures)
            if step + 1 < steps:
                coming = drawer.submit(batches.draw, order[step + 1], step + 1)
            network.train()
            loss = lost(network(torch.from_numpy(shown)), torch.from_numpy(labels))
            adam.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            adam.step()
            pace.step()
            advanced(step + 1, steps, float(loss.detach()))
    torch.set_num_threads(threads)
    network.eval()
    return network


def where_seen(network: ProbeNetwork, pictures: LabelledFrames) -> npt.NDArray[np.float32]:
    """Where the evidence for each finding is highest: (N, findings, 2) as x, y in pixels of the frame."""
    network.eval()
    found = []
    with torch.inference_mode():
        for first in range(0, len(pictures), 128):
            shown = np.stack([levelled(frame) for frame in pictures.frames[first : first + 128]])
            maps = network.places(torch.from_numpy(shown))
            at = maps.flatten(2).argmax(2).numpy()
            rows, columns = maps.shape[2:]
            xs, ys = at % columns + 0.5, at // columns + 0.5
            found.append(np.stack([xs * SIDE / columns, ys * SIDE / rows], axis=2))
    return np.concatenate(found).astype(np.float32)


def calibrate(network: ProbeNetwork, pictures: LabelledFrames, seed: int) -> Calibration:
    """Temperature and shift by which probabilities fit pictures that the network has not seen, and its margins.

    A margin is the change of a logit that 95 % of pictures stay below when they are encoded again and shown in
    other tones: what moves less may have been that.
    """
    raw = logits_of(network, pictures.frames)
    temperatures, shifts = zip(
        *(_platt(raw[:, k], pictures.labels[:, k]) for k in range(raw.shape[1])), strict=True
    )
    rng = np.random.default_rng(derive_seed(seed, "probe margins") % 2**31)
    again = [recoded(curved(frame, rng), 60) for frame in pictures.frames]
    moved = np.abs(logits_of(network, again) - raw) / np.array(temperatures)
    return Calibration(temperatures, shifts, tuple(np.quantile(moved, 0.95, axis=0).tolist()))


def _platt(raw: npt.NDArray[np.float64], cases: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Temperature and shift of the best logistic fit (Platt 1999, with his targets that keep it finite)."""
    n, m = int(cases.sum()), int((~cases).sum())
    target = torch.tensor(np.where(cases, (n + 1) / (n + 2), 1 / (m + 2)))
    # Every class counts as one half: how many cases a catalogue holds says nothing of an edited picture.
    weight = torch.tensor(np.where(cases, 0.5 / max(n, 1), 0.5 / max(m, 1)))
    x, platt = torch.tensor(raw), torch.zeros(2, dtype=torch.float64, requires_grad=True)
    newton = torch.optim.LBFGS([platt], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        newton.zero_grad()
        fitted = x * torch.exp(platt[0]) - platt[1]
        value = nn.functional.binary_cross_entropy_with_logits(fitted, target, weight=weight, reduction="sum")
        value.backward()
        return value

    newton.step(loss)
    return float(torch.exp(-platt[0].detach())), float(platt[1].detach())


def _looks(step: int, per_epoch: int) -> bool:
    epoch, within = divmod(step, per_epoch)
    return within == 0 and epoch >= _LOOK_FROM and (epoch - _LOOK_FROM) % _LOOK_EVERY == 0


def _order(pictures: LabelledFrames, steps: int, batch: int, seed: int) -> list[npt.NDArray[np.intp]]:
    """Which pictures each step shows: as many without any finding as with one, groups as often as pictures."""
    rng = np.random.default_rng(derive_seed(seed, "probe order") % 2**31)
    kinds = [np.flatnonzero(pictures.healthy), np.flatnonzero(~pictures.healthy)]
    half = [batch * 2 // 5, batch - batch * 2 // 5]
    drawn = [
        np.concatenate([rng.permutation(kind) for _ in range(math.ceil(steps * n / len(kind)))])
        for kind, n in zip(kinds, half, strict=True)
    ]
    return [
        np.concatenate([kind[step * n : (step + 1) * n] for kind, n in zip(drawn, half, strict=True)])
        for step in range(steps)
    ]
