"""Colours of a file brought to sRGB: by its ICC profile, through littleCMS, or by the gAMA chunk of a PNG."""

from __future__ import annotations

import io
import re
from functools import lru_cache

import numpy as np
from PIL import Image, ImageCms

from plantain.pixels.arrays import Image as Levels
from plantain.pixels.arrays import Pixels

STRIP_PIXELS = 1_000_000
"""Pixels that are converted at a time, so that copies of a large image do not add up."""

_SPACES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}
"""Pillow's modes by the colour space of a profile."""

_KNOWN = re.compile(
    r"(?i)adobe ?rgb|pro ?photo|romm|display p3|dci[- ]?p3|apple rgb|color ?match|wide ?gamut|e-?ci ?rgb|"
    r"rec\. ?\d{3,4}|bt\.? ?\d{3,4}|srgb|dot gain \d+ ?%|gr[ae]y gamma \d\.\d|swop|fogra ?\d*"
)
"""Names of colour spaces; any other text of a profile may name a person, and is not kept."""

_DISPLAY_GAMMA = 1 / 2.2
"""File gamma that is shown as it is (PNG, third edition, 13.13)."""


class ColourProfile:
    """The colour space that a file states; threads share it, as littleCMS allows.

    Attributes:
        name: of the colour space ("Adobe RGB"), "an ICC profile" if not a known one, "gamma 1" for a PNG; "" where it
            is sRGB within 2 levels, or unstated or unusable.
        mode: of the Pillow images that `convert` takes: "RGB", "L" or "CMYK".
    """

    def __init__(self, profile: bytes | None, gamma: float | None = None) -> None:
        self.name, self.mode = "", ""
        self._transform: ImageCms.ImageCmsTransform | None = None
        self._curve: list[int] = []
        if profile:
            self._by_profile(profile)
        elif gamma and gamma > 0 and abs(_DISPLAY_GAMMA / gamma - 1) > 0.05:
            self.name = f"gamma {gamma:g}"
            self._curve = [round(255 * (level / 255) ** (_DISPLAY_GAMMA / gamma)) for level in range(256)]

    def _by_profile(self, profile: bytes) -> None:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            self.mode = _SPACES[source.profile.xcolor_space.strip()]
            transform = ImageCms.buildTransform(
                *(source, ImageCms.createProfile("sRGB"), self.mode, "RGB"),
                ImageCms.Intent.RELATIVE_COLORIMETRIC,
            )
            known = _KNOWN.search(ImageCms.getProfileDescription(source))
        except (ImageCms.PyCMSError, OSError, KeyError):
            return
        steps = np.linspace(0, 255, 9).round().astype(np.uint8)
        grid = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(27, 27, 3)
        probe = Image.fromarray(grid if self.mode == "RGB" else grid[..., 0]).convert(self.mode)
        shown = np.asarray(ImageCms.applyTransform(probe, transform)).astype(int)
        if np.abs(shown - np.asarray(probe.convert("RGB"))).max() > 2:
            self.name, self._transform = known[0] if known else "an ICC profile", transform

    @property
    def note(self) -> str:
        """The name in a sentence for an image's note; "" without a name."""
        return f"colours converted to sRGB from {self.name}" if self.name else ""

    def convert(self, image: Image.Image) -> Image.Image:
        """Return an image in sRGB, as "RGB" or in its own mode; unchanged if its mode is not the profile's."""
        if self._curve and image.mode in ("L", "RGB"):
            return image.point(self._curve * len(image.getbands()))
        if self._transform is not None and image.mode == self.mode:
            return ImageCms.applyTransform(image, self._transform) or image
        return image

    def convert_pixels(self, pixels: Levels) -> Pixels:
        """Return decoded levels, uint8 (H, W) or (H, W, 3), in sRGB and of the same shape."""
        if not self.name:
            return pixels
        made, rows = np.empty_like(pixels), max(1, STRIP_PIXELS // pixels.shape[1])
        for top in range(0, len(pixels), rows):
            strip = np.ascontiguousarray(pixels[top : top + rows])
            shown = np.asarray(self.convert(Image.fromarray(strip)))
            made[top : top + rows] = shown if shown.ndim == pixels.ndim else shown[..., 0]
        return made


colour_profile = lru_cache(maxsize=16)(ColourProfile)
"""The same, cached: making a transform takes 40 ms."""


def profile_of(image: Image.Image) -> ColourProfile:
    """Return the colour space of an opened file: by its profile if that fits its mode, else sRGB, else gAMA."""
    info = image.info
    profile = colour_profile(info.get("icc_profile"), None if "srgb" in info else info.get("gamma"))
    grey = image.mode in ("1", "L", "LA", "La") or image.mode.startswith("I")
    mode = "L" if grey else "CMYK" if image.mode == "CMYK" else "RGB"
    return profile if profile.mode in ("", mode) else colour_profile(None)
