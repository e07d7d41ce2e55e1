"""The adapters of real networks, with small seeded ones in their place; skipped where torch is not installed."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from plantain.metrics.ssim import ssim
from plantain.records import InputError

torch = pytest.importorskip("torch")


def images(n: int, side: int = 24) -> list[np.ndarray]:
    return list(np.random.default_rng(3).integers(0, 256, (n, side, side, 3), dtype=np.uint8))


def test_inception_is_named_by_its_hash_until_the_hash_is_vouched_for(tmp_path):
    from plantain.metrics.networks.adapters import InceptionEncoder

    class Pooled(torch.nn.Module):
        def forward(self, pixels: torch.Tensor, return_features: bool) -> torch.Tensor:
            assert return_features
            return pixels.float().mean(dim=[2, 3])

    path = tmp_path / "network.pt"
    torch.jit.script(Pooled()).save(str(path))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    encoder = InceptionEncoder(path)
    assert encoder.images(images(4)) == pytest.approx(np.stack(images(4)).mean(axis=(1, 2)), abs=1e-3)
    assert encoder.name == f"torchscript-{digest[:12]}"
    assert InceptionEncoder(path, digest).name == "inception-v3-2015-12-05"
    with pytest.raises(InputError, match="sha256"):
        InceptionEncoder(path, "0" * 64)


def test_ssim_agrees_with_pytorch_msssim():
    module = pytest.importorskip("pytorch_msssim")
    before, after = images(2, 64)
    pair = [torch.from_numpy(image).permute(2, 0, 1)[None].double() for image in (before, after)]
    window = torch.full((3, 1, 1, 7), 1 / 7, dtype=torch.float64)
    # Its covariance is that of the population, 48 / 49 of the sample's; the same factor on C2 makes them equal.
    constants = (0.01, 0.03 * (48 / 49) ** 0.5)
    theirs = float(module.ssim(*pair, data_range=255, win=window, K=constants))
    assert ssim(before, after).value == pytest.approx(theirs, abs=1e-6)
