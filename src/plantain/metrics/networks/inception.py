"""The Inception network of the published FID, from its TorchScript file, as an encoder of images."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Image
from plantain.records import InputError

PUBLISHED = "inception-v3-2015-12-05"


class InceptionEncoder:
    """Pooled 2,048-dimensional features of the network in a TorchScript file.

    Args:
        path: the file `inception-2015-12-05.pt` (its forward takes uint8 (N, 3, H, W) and `return_features`, and
            resizes by itself).
        sha256: of that file, from where it was published. Features report as "fid" only when it is given and
            right; otherwise under the hash of the file.
        device: of torch.

    Raises:
        InputError: the file has another hash than `sha256`.
    """

    def __init__(self, path: Path, sha256: str | None = None, device: str = "cpu") -> None:
        import torch

        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if sha256 is not None and digest != sha256.lower():
            raise InputError(f"{path}: sha256 is {digest}, not {sha256}")
        self.name = PUBLISHED if sha256 is not None else f"torchscript-{digest[:12]}"
        self.device = device
        self.network = torch.jit.load(str(path), map_location=device).eval()

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.float32]:
        """Features (n, d); images of different sizes go through one by one."""
        import torch

        same = len({image.shape for image in images}) == 1
        stacks = [np.stack(images)] if same else [image[np.newaxis] for image in images]
        rows = []
        with torch.inference_mode():
            for stack in stacks:
                pixels = torch.from_numpy(np.ascontiguousarray(stack.transpose(0, 3, 1, 2)))
                found = self.network(pixels.to(self.device), return_features=True)
                rows.append(found.float().cpu().numpy())
        return np.asarray(np.concatenate(rows), np.float32)
