"""The real images that installed dependencies contain: enough for a demo, each with its origin and its limits.

They are in radiological convention (the patient's right is image left) where the file states the side. The files were
checked for burned-in text and faces, by eye and by the gate that every ingested image passes.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plantain.files.installed import install_line
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode_untrusted
from plantain.pixels.dicom.window import film_window
from plantain.records import InputError, Licence, SourceImage
from plantain.sources.registry import UNPREPARED, finish

LOOKED_AT = frozenset(
    {
        "946f28f48b9fbf360196a9b835c8fce83b0c654bf85a5107663c8a61df02e498",  # RG1_UNCR.dcm
        "38a07f36f27f095e818aea7b96d34202c05176d30253c66733f2e00379e9e0e6",  # retina.jpg
        "421a10e872fd6cadae7f61d358dffbcc1795a497d61ee76c5dda2503e1a1e9e6",  # the MNI152 average
        "6ae15c125c97e11e1ba478ff252c1774d2c31db242a8a61daa93e7b43c873c7b",  # t1_coronal_slice.npy
    }
)
"""SHA-256 of the files without text and faces; the tests check them again."""


@dataclass(frozen=True, slots=True, eq=False)
class PackageSample:
    """One real image that an installed Python package contains.

    Attributes:
        image: its record before preparing: `prepared_sha256` "", `geometry` `UNPREPARED`, the original's `spacing_mm`.
        pixels: uint8 (H, W, 3), RGB, as decoded, of its own size.
    """

    image: SourceImage
    pixels: Pixels

    def prepared(self, side: int = 1024) -> tuple[SourceImage, bytes]:
        """Prepare the image for `Catalogue.add`: return its complete record, and a JPEG of `side` x `side` pixels."""
        return finish(self.image, self.pixels, side)


def sample_images() -> list[PackageSample]:
    """Return seven images from other packages: a chest radiograph, a fundus, five brain MR slices (four of an average).

    Raise InputError, with the command that installs it, if a package is missing.
    """
    return [_chest(), _fundus(), *brain_average(), _brain_single()]


def _record(data: bytes, **known: Any) -> SourceImage:
    """Return the record of an image from this file, before it is prepared."""
    digest = hashlib.sha256(data).hexdigest()
    unprepared: dict[str, Any] = {"source_sha256": digest, "prepared_sha256": "", "geometry": UNPREPARED}
    return SourceImage(**known, **unprepared, text_checked=digest in LOOKED_AT)


def _chest() -> PackageSample:
    """Return RG1_UNCR.dcm of pydicom-data (MIT), a DICOM compression sample of the NEMA WG4 set."""
    import pydicom

    path = _file("pydicom-data", "data_store", "data/RG1_UNCR.dcm")
    data = path.read_bytes()
    # Low stored values are white (MONOCHROME1); the file's own window, 15000 +- 15000, is very pale.
    values = pydicom.dcmread(path).pixel_array
    low, high = np.percentile(values[values > 0], (0.5, 99.5))
    gray = film_window(values, (float(low), float(high)), invert=True)
    image = _record(
        data,
        id="rg1-chest-pa",
        dataset="pydicom-data",
        modality="chest_xray",
        labels=("Lung Lesion",),
        licence=Licence.ATTRIBUTION,
        group="pydicom-data:RG1",
        view="frontal",
        projection="PA",
        position="erect",
        note="not a healthy chest: many rounded masses in both lungs, a thin line over the left upper zone; "
        "erect because the header names an upright chest unit; shown with a logarithmic window",
    )
    return PackageSample(image, _rgb(gray))


def fundus_file() -> Path:
    """Return the path of scikit-image's fundus photograph, a JPEG of 1411 x 1411 pixels."""
    return _file("scikit-image", "skimage", "data/retina.jpg")


def _fundus() -> PackageSample:
    """Return retina.jpg of scikit-image (CC0): Haggstrom, WikiJournal of Medicine 1(2), doi:10.15347/wjm/2014.008."""
    data = fundus_file().read_bytes()
    image = _record(
        data,
        id="retina-left",
        dataset="scikit-image",
        modality="fundus",
        labels=("normal",),
        licence=Licence.OPEN,
        group="scikit-image:retina",
        laterality="left",
        note="called normal by its author; one eye of one patient",
    )
    return PackageSample(image, decode_untrusted(data, "retina.jpg"))


_MNI_FILE = "datasets/data/mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"
_MNI_SLICES = (("axial", 5), ("axial", 20), ("axial", 40), ("coronal", -10))
"""Planes and millimetres in MNI space: basal ganglia, lateral ventricles, centrum semiovale; thalami."""


def brain_average(slices: Sequence[tuple[str, int]] = _MNI_SLICES) -> list[PackageSample]:
    """Return slices of the MNI152 average brain, given as (plane, millimetres).

    Fonov et al., NeuroImage 54 (1), 2011, doi:10.1016/j.neuroimage.2010.07.033; MNI licence; distributed with nilearn.

    Raises:
        InputError: nilearn is not installed, or does not contain the file.
    """
    import nibabel

    path = _file("nilearn", "nilearn", _MNI_FILE)
    data = path.read_bytes()
    volume = nibabel.load(path)
    if nibabel.aff2axcodes(volume.affine) != ("R", "A", "S"):
        raise InputError(f"{path}: its axes are not right-anterior-superior; another version of nilearn?")
    values = np.asarray(volume.dataobj)
    return [_average_slice(values, volume.affine[:3, 3], data, plane, mm) for plane, mm in slices]


def _average_slice(values: np.ndarray, origin: np.ndarray, data: bytes, plane: str, mm: int) -> PackageSample:
    """Return one 1 mm slice, mirrored, since the file's first axis points right; a sagittal one faces image left."""
    axis = ("sagittal", "coronal", "axial").index(plane)
    index = round(mm - float(origin[axis]))
    cut = np.take(values, index, axis=axis)
    image = _record(
        data,
        id=f"mni152-t1-{plane}-{'xyz'[axis]}{mm}",
        dataset="MNI ICBM152",
        version="2009a nonlinear symmetric",
        modality="brain_mri",
        labels=("notumor",),
        licence=Licence.ATTRIBUTION,
        group="nilearn:mni152",
        # One file, three planes: coronal slices are counted from 1000, sagittal ones from 2000, so that no two share
        # a number.
        frame=index + 1000 * (2 - axis),
        sequence="T1",
        contrast="none",
        plane=plane,
        spacing_mm=1.0,
        note="average of 152 healthy adults, skull removed: smoother than any one brain, without grain",
    )
    return PackageSample(image, _rgb(cut[::-1, ::-1].T))


def _brain_single() -> PackageSample:
    """Return t1_coronal_slice.npy, test data of DIPY (BSD 3-clause)."""
    path = _file("dipy", "dipy", "data/files/t1_coronal_slice.npy")
    data = path.read_bytes()
    values = np.load(path, allow_pickle=False)
    image = _record(
        data,
        id="dipy-t1-coronal",
        dataset="dipy",
        modality="brain_mri",
        labels=("notumor",),
        licence=Licence.ATTRIBUTION,
        group="dipy:t1-coronal",
        sequence="T1",
        plane="coronal",
        laterality="not recorded",
        note="one patient, skull removed; which side is left is not recorded; label by a non-clinician",
    )
    return PackageSample(image, _rgb(np.rint(values.clip(0.0, 1.0) * 255.0).astype(np.uint8)))


def _file(distribution: str, module: str, name: str) -> Path:
    """Return a data file without importing its package, which may take seconds."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise InputError(f"sample images: needs the package {distribution}: {install_line('demo')}")
    path = Path(found.origin).parent / name
    if not path.is_file():
        raise InputError(f"sample images: {path} is missing; reinstall {distribution}")
    return path


def _rgb(gray: np.ndarray) -> Pixels:
    return np.repeat(np.ascontiguousarray(gray, dtype=np.uint8)[:, :, None], 3, axis=2)
