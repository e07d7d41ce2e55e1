"""Real brain MR slices that arrive with the dependencies, prepared as a catalogue prepares them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import nibabel
import numpy as np
from scipy import ndimage

from fakes.samples import prepared_samples
from plantain.offline.rendering import Scene
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.pixels.prepare import prepare
from plantain.records import Geometry, Licence, SourceImage

MakeScene = Callable[..., Scene]
SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "med-banana-samples"


@cache
def _samples() -> dict[str, tuple[Pixels, SourceImage]]:
    found = {}
    for image, data in prepared_samples():
        found[image.id] = (decode(data), image)
    return found


@cache
def _volume() -> tuple[np.ndarray, np.ndarray]:
    spec = find_spec("nilearn")
    assert spec is not None and spec.origin is not None
    path = Path(spec.origin).parent / "datasets/data/mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"
    volume = nibabel.load(path)
    return np.asarray(volume.dataobj), volume.affine[:3, 3]


@cache
def mni_slice(plane: str, mm: int) -> tuple[Pixels, SourceImage]:
    """A prepared 1 mm slice of the MNI152 average, radiological display, nose to image left on sagittal."""
    values, origin = _volume()
    axis = ("sagittal", "coronal", "axial").index(plane)
    cut = np.take(values, round(mm - float(origin[axis])), axis=axis)
    pixels = np.repeat(np.ascontiguousarray(cut[::-1, ::-1].T)[..., None], 3, axis=2)
    prepared, geometry = prepare(pixels)
    return prepared, record(f"mni-{plane}{mm}", plane=plane, geometry=geometry)


def record(name: str, *, plane: str, sequence: str = "T1", geometry: Geometry | None = None) -> SourceImage:
    return SourceImage(
        id=name,
        dataset="test",
        modality="brain_mri",
        labels=("notumor",),
        licence=Licence.OPEN,
        source_sha256="",
        prepared_sha256="",
        geometry=geometry or Geometry(1024, 1024, "pad", 0, 0, 1024, 1024),
        sequence=sequence,
        plane=plane,
        contrast="none",
    )


def picture(name: str) -> tuple[Pixels, SourceImage]:
    """A sample by its id, or "axial:-22" and the like for a slice of the average brain."""
    if ":" in name:
        plane, mm = name.split(":")
        return mni_slice(plane, int(mm))
    return _samples()[name]


def plain_brain(pixels: Pixels) -> np.ndarray:
    """Brain of a skull-stripped slice, seen independently: all that is not background, holes filled."""
    body = ndimage.binary_fill_holes(ndimage.binary_closing(pixels[..., 0] > 20, iterations=6))
    labels, _ = ndimage.label(body)
    return labels == 1 + np.argmax(np.bincount(labels.ravel())[1:])
