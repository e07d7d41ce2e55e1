"""The images that come with packages, read once in a process: that takes a second, and dozens of tests need one."""

from __future__ import annotations

import gzip
from functools import cache

import numpy as np
from matplotlib import cbook

from plantain.records import SourceImage
from plantain.sources.samples import PackageSample, sample_images


@cache
def package_samples() -> tuple[PackageSample, ...]:
    """All of them. Their pixels cannot be written to, for others see them too."""
    found = tuple(sample_images())
    for sample in found:
        sample.pixels.setflags(write=False)
    return found


def sample_of(modality: str) -> PackageSample:
    """The first of a modality."""
    return next(sample for sample in package_samples() if sample.image.modality == modality)


@cache
def prepared_of(modality: str) -> tuple[SourceImage, bytes]:
    """The first of a modality, as a catalogue takes it."""
    return sample_of(modality).prepared()


@cache
def prepared_samples() -> tuple[tuple[SourceImage, bytes], ...]:
    """All of them, as a catalogue takes them."""
    return tuple(sample.prepared() for sample in package_samples())


def head_in_profile() -> np.ndarray:
    """A whole head with face and skull from the side, uint16 (256, 256), front to the left; it comes with matplotlib.

    A pixel is a millimetre.
    """
    with gzip.open(cbook.get_sample_data("s1045.ima.gz", asfileobj=False)) as file:
        return np.frombuffer(file.read(), ">u2").reshape(256, 256)
