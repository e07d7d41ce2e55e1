"""Real pictures for an audit, in two sets that share none: one to tune a judge on, one to report on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from plantain.files.opening import read_inside
from plantain.pixels.decode import decode_untrusted
from plantain.records import InputError, Licence, SourceImage
from plantain.sources.entries import UNPREPARED, finish
from plantain.sources.samples import PackageSample, brain_average, sample_images

ROOMS = ("chest_xray", "brain_mri", "fundus")
"""Folders of modalities that `folder_pictures` reads."""

SPLITS = ("held-out", "tuning")

BRAIN_CUTS: dict[str, tuple[tuple[str, int], ...]] = {
    "tuning": (("axial", 0), ("axial", 15), ("axial", 30), ("axial", 50), ("coronal", -30), ("coronal", 10)),
    "held-out": (("axial", 8), ("axial", 23), ("axial", 37), ("axial", 45), ("coronal", -20), ("coronal", 0)),
}
"""Slices of the MNI average, in millimetres; seven or more apart from every slice of the other set in axial plane."""

SELLA_CUTS: dict[str, tuple[tuple[str, int], ...]] = {
    "tuning": (("axial", -24), ("axial", -20), ("sagittal", 0), ("coronal", -4), ("coronal", 6)),
    "held-out": (("axial", -26), ("sagittal", 2), ("coronal", 1), ("axial", -22)),
}
"""Slices of the same average that hold the sella or the cistern above it, where alone a pituitary tumour can be
shown. They lie two to five millimetres apart, so held-out means other slices, not another person."""


@dataclass(frozen=True, slots=True)
class View:
    """Another look at the one picture that a modality has: turned, cut out, and toned.

    Attributes:
        degrees: turned by, counter-clockwise.
        zoom: magnified about the point (x, y), given as shares of the frame.
        x, y: see zoom.
        gamma: tone; above 1 darker.
    """

    degrees: float
    zoom: float
    x: float
    y: float
    gamma: float


VIEWS: dict[str, tuple[View, ...]] = {
    "tuning": (View(0, 1.0, 0.5, 0.5, 1.0), View(-2, 1.06, 0.48, 0.45, 0.92)),
    "held-out": (
        View(3, 1.1, 0.52, 0.52, 1.08),
        View(-4, 1.14, 0.47, 0.48, 1.0),
        View(1.5, 1.03, 0.5, 0.55, 0.88),
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class TrialPicture:
    """A prepared picture.

    Attributes:
        image: its record.
        data: prepared bytes, as a catalogue keeps them.
    """

    image: SourceImage
    data: bytes


def cluster_of(image: SourceImage) -> str:
    """What pictures share that are not independent: the patient where one is told, else the source file."""
    return f"{image.dataset}/{image.group}" if image.group else image.source_sha256 or image.id


def package_pictures(split: str) -> list[TrialPicture]:
    """The pictures of one set that arrive with the dependencies.

    Slices of the average brain differ between the sets, and the single coronal slice belongs to the held-out
    one.
    There is one chest radiograph and one fundus photograph: both sets use it, turned, cut and toned
    differently, so for these two modalities held-out means other geometry, other seeds and other places, not
    another person.

    Raises:
        InputError: a package is not installed.
        ValueError: unknown split.
    """
    if split not in SPLITS:
        raise ValueError(f"split {split!r}: choose one of {', '.join(SPLITS)}")
    pictures = []
    for sample in sample_images():
        if sample.image.modality != "brain_mri":
            pictures += [_viewed(sample, number, view) for number, view in enumerate(VIEWS[split])]
        elif sample.image.dataset == "dipy" and split == "held-out":
            pictures.append(TrialPicture(*sample.prepared()))
    cuts = BRAIN_CUTS[split] + SELLA_CUTS[split]
    pictures += [TrialPicture(*sample.prepared()) for sample in brain_average(cuts)]
    return pictures


def _viewed(sample: PackageSample, number: int, view: View) -> TrialPicture:
    height, width = sample.pixels.shape[:2]
    matrix = cv2.getRotationMatrix2D((view.x * width, view.y * height), view.degrees, view.zoom)
    turned = cv2.warpAffine(sample.pixels, matrix, (width, height), flags=cv2.INTER_LINEAR)
    toned = np.rint(255.0 * (turned / 255.0) ** view.gamma).astype(np.uint8)
    image = replace(sample.image, id=f"{sample.image.id}-view{number}", spacing_mm=None)
    return TrialPicture(*replace(sample, image=image, pixels=toned).prepared())


def folder_pictures(folder: Path) -> list[TrialPicture]:
    """Pictures of a folder `<modality>/<name>.(png|jpg|jpeg)`, for audits on pictures of one's own.

    Nothing is known of them but the modality: a chest radiograph counts as frontal, PA and erect, a brain slice as
    axial, everything else stays unknown.

    Raises:
        InputError: the folder holds no such file, or one cannot be read.
    """
    pictures = []
    for path in sorted(folder.glob("*/*")):
        if path.suffix.lower() not in (".png", ".jpg", ".jpeg") or path.parent.name not in ROOMS:
            continue
        data = read_inside(folder, path)
        chest = path.parent.name == "chest_xray"
        image = SourceImage(
            id=path.stem,
            dataset="folder",
            modality=path.parent.name,
            labels=(),
            licence=Licence.UNKNOWN,
            source_sha256=hashlib.sha256(data).hexdigest(),
            prepared_sha256="",
            geometry=UNPREPARED,
            view="frontal" if chest else "unknown",
            projection="PA" if chest else "unknown",
            position="erect" if chest else "unknown",
            plane="axial" if path.parent.name == "brain_mri" else "unknown",
        )
        pictures.append(TrialPicture(*finish(image, decode_untrusted(data, path.name))))
    if not pictures:
        raise InputError(f"{folder}: no picture in {' or '.join(f'{room}/' for room in ROOMS)}")
    return pictures
