"""LPIPS from the package `lpips`, which asserts the range that it is given."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from plantain.metrics.learned import check_signed


class LpipsNetwork:
    """The published LPIPS with its pretrained backbone.

    Args:
        backbone: "alex" (as MedEBench), "vgg" or "squeeze".
        device: of torch.
    """

    def __init__(self, backbone: Literal["alex", "vgg", "squeeze"] = "alex", device: str = "cpu") -> None:
        import lpips

        self.name = f"lpips-{backbone}-0.1"
        self.device = device
        self.network = lpips.LPIPS(net=backbone, version="0.1", pretrained=True, pnet_rand=False)
        self.network.to(device).eval()

    def distance(self, before: npt.NDArray[np.float32], after: npt.NDArray[np.float32]) -> float:
        """Distance of two float32 images (1, 3, H, W) in [-1, 1].

        Raises:
            ValueError: another range.
        """
        import torch

        check_signed(before)
        check_signed(after)
        with torch.inference_mode():
            pair = [torch.from_numpy(pixels).to(self.device) for pixels in (before, after)]
            return float(self.network(*pair).item())
