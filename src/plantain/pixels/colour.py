"""Conversion of a file's colours to sRGB, by its ICC profile or the gAMA chunk of a PNG."""

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

SRGB = (0.3127, 0.3290, 0.64, 0.33, 0.30, 0.60, 0.15, 0.06)
"""x and y (CIE 1931) of white, red, green and blue, in the order of a cHRM chunk."""

_SPACES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}
"""Pillow's modes by the colour space of a profile."""

_KNOWN = re.compile(
    r"(?i)adobe ?rgb|pro ?photo|romm|display p3|dci[- ]?p3|apple rgb|color ?match|wide ?gamut|e-?ci ?rgb|"
    r"rec\. ?\d{3,4}|bt\.? ?\d{3,4}|srgb|dot gain \d+ ?%|gr[ae]y gamma \d\.\d|swop|fogra ?\d*"
)
"""Names of colour spaces; any other text of a profile may name a patient or reader, and is not kept."""

_DISPLAY_GAMMA = 1 / 2.2
"""File gamma that is shown as it is (PNG, third edition, 13.13)."""

_EXIF, _INTEROPERABILITY, _COLOUR_SPACE, _INDEX = 0x8769, 0xA005, 0xA001, 1


class ColourProfile:
    """The colour space stated by a file; safe to share between threads.

    Args:
        profile: bytes of an ICC profile, or None.
        gamma: gamma of a PNG without a profile, or None.

    Attributes:
        name: name of the colour space, e.g. "Adobe RGB"; "an ICC profile" if it is not a known one, "gamma 1" for a
            PNG with that gamma; "" if it is sRGB within 2 levels, unstated or unusable.
        mode: mode of the Pillow images that `convert` takes: "RGB", "L" or "CMYK"; "" without a profile.
        fault: why its colours cannot be converted; "" if they can.
    """

    def __init__(self, profile: bytes | None, gamma: float | None = None) -> None:
        self.name, self.mode, self.fault = "", "", ""
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
        """ "colours converted to sRGB from NAME" for an image's note; "" without a name."""
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
    """Return the colour space that an image file states.

    Of a PNG's chunks, iCCP goes before sRGB, and that before gAMA and cHRM (PNG, third edition, 13.12). Other primaries
    in cHRM, and Adobe RGB stated in EXIF alone, are a fault.

    Args:
        image: as Pillow opened it.
    """
    info = image.info
    grey = image.mode in ("1", "L", "LA", "La") or image.mode[0] in "IF"
    mode = "L" if grey else "CMYK" if image.mode == "CMYK" else "RGB"
    if info.get("icc_profile"):
        profile = colour_profile(info["icc_profile"])
        return profile if profile.mode in ("", mode) else colour_profile(None)
    gamma, primaries = info.get("gamma"), info.get("chromaticity")
    if "srgb" in info:
        return colour_profile(None)
    if gamma and primaries and mode == "RGB" and max(map(_difference, primaries, SRGB)) > 0.005:
        return _refused("its cHRM chunk states other primaries than sRGB's; save it as sRGB")
    if not gamma and mode == "RGB" and _is_adobe_rgb(image):
        return _refused("EXIF states Adobe RGB without a profile; save it as sRGB")
    return colour_profile(None, gamma)


def _refused(why: str) -> ColourProfile:
    made = ColourProfile(None)
    made.fault = why
    return made


def _is_adobe_rgb(image: Image.Image) -> bool:
    """Return True if EXIF states Adobe RGB: interoperability R03 (DCF 2.0), or ColorSpace 2, as some cameras write."""
    try:
        exif = image.getexif()
        space = exif.get_ifd(_EXIF).get(_COLOUR_SPACE) if exif else None
        index = exif.get_ifd(_INTEROPERABILITY).get(_INDEX, "") if space == 0xFFFF else ""
    except (OSError, SyntaxError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return False
    return space == 2 or str(index).startswith("R03")


def _difference(one: float, other: float) -> float:
    return abs(one - other)
