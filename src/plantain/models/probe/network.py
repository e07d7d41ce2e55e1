"""The probe's network: small, convolutional, its evidence local, so that it can be asked where it saw a finding."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SHARPNESS = 3.0
"""Of the soft maximum over places: high enough that one lesion decides, low enough that all places learn."""


class ProbeNetwork(nn.Module):  # type: ignore[misc]  # torch is not typed
    """From levelled frames to one logit per finding, by the soft maximum of the evidence at each place.

    Args:
        findings: how many.
        width: channels of the widest layer; 96 gives about 240,000 weights.
    """

    def __init__(self, findings: int, width: int = 96) -> None:
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

    def places(self, frames: Tensor) -> Tensor:
        """Evidence by place, (N, findings, side / 8, side / 8), of frames (N, side, side)."""
        n, rows, columns = frames.shape
        down = torch.linspace(-1, 1, rows).view(1, 1, rows, 1).expand(n, 1, rows, columns)
        across = torch.linspace(-1, 1, columns).view(1, 1, 1, columns).expand(n, 1, rows, columns)
        found: Tensor = self.evidence(
            self.dropout(self.features(torch.cat([frames.unsqueeze(1), down, across], 1)))
        )
        return found

    def forward(self, frames: Tensor) -> Tensor:
        """Logits (N, findings)."""
        return pooled(self.places(frames))


def pooled(places: Tensor) -> Tensor:
    """The soft maximum over places: (N, findings) of (N, findings, rows, columns)."""
    flat = places.flatten(2)
    count = torch.log(torch.tensor(float(flat.shape[2])))
    return (torch.logsumexp(SHARPNESS * flat, 2) - count) / SHARPNESS


def _layer(before: int, after: int, *, size: int = 3, stride: int = 1) -> tuple[nn.Module, ...]:
    return (
        nn.Conv2d(before, after, size, stride, size // 2, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
    )
