"""NIfTI volumes in any folder: a few slices of one plane each, labels from folders or labels.csv."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from plantain.files.opening import read_regular
from plantain.findings import Taxonomy
from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.pixels.volume import AXES, Volume, choose_slices, read_volume, show_slice
from plantain.privacy.heads import Head, face_in_slice, face_of_volume, level_of_air
from plantain.records import InputError, SourceImage
from plantain.sources.label_table import MASK, NO_LABEL, LabelledFiles
from plantain.sources.registry import (
    SHARES,
    UNREAD,
    Found,
    Setting,
    SourceEntry,
    SourceKind,
    SourceOptions,
    refused,
    resolve_settings,
    whole_number,
)

SETTINGS = {
    "plane": Setting("axial", tuple(sorted(AXES))),
    "slices": Setting("5"),
    "sequence": Setting("name", ("name", "T1", "T2", "FLAIR", "PD", "unknown")),
    "contrast": Setting("name", ("name", "yes", "none", "unknown")),
}
"""`name` reads it from the file's name as BIDS and BraTS write it (T1w, t1ce, FLAIR)."""

_MASK = re.compile(
    r"(?i)(^|[^a-z])(prob(ability)?(map|seg)?|labels?|parc)$|"
    r"(^|[^a-z])(aseg|aparc(aseg)?|wmparc|ribbon|(pve|mixel)(seg|type)?)([^a-z]|$)|"
    r"(^|/)(?-i:(m?w|r)[cp][1-3][A-Za-z])[^/]*$|(^|/)labels(tr|ts)/"
)
"""Names, without ending, of label maps and tissue maps of BIDS, FreeSurfer, FSL, SPM, CAT12 and nnU-Net."""

_OTHER_VOLUMES = (".hdr", ".mgh", ".mgz", ".nrrd", ".nhdr", ".mha", ".mhd")

_STRAIGHT_DEGREES, _OBLIQUE_DEGREES = 5.0, 32.0
"""Above the first, obliquity is noted; above the second, the plane is unknown (as for DICOM, cosine 0.85)."""

PLANE_STEP = 10_000
"""Frames are numbered plane by plane, so that no two slices of one file share a number."""

_WORDS = (
    (re.compile(r"(?i)(^|[^a-z])t1(ce|c|gd|post)([^a-z]|$)"), "T1", "yes"),
    (re.compile(r"(?i)(^|[^a-z])(t2[-_]?)?flair([^a-z]|$)"), "FLAIR", "unknown"),
    (re.compile(r"(?i)(^|[^a-z])t1w?([^a-z0-9]|$)"), "T1", "unknown"),
    (re.compile(r"(?i)(^|[^a-z])t2w?([^a-z0-9]|$)"), "T2", "unknown"),
    (re.compile(r"(?i)(^|[^a-z])pdw?([^a-z0-9]|$)"), "PD", "unknown"),
)


_LOCK = threading.Lock()


@lru_cache(maxsize=2)
def _unpacked(data: bytes, name: str) -> Volume:
    return read_volume(data, name)


def _volume(data: bytes, name: str) -> Volume:
    """Return the volume of a file's bytes; the last two are kept, as unpacking takes ten times as long as a slice.

    Two, since a head takes a hundred MB. One thread reads, the others wait. Raise BadImage.
    """
    with _LOCK:
        return _unpacked(data, name)


@dataclass(frozen=True, slots=True)
class SliceOfVolume(SourceEntry):
    """One slice of a NIfTI volume, as an image of the catalogue.

    Attributes:
        plane: "axial", "coronal" or "sagittal".
        face: the face found in the volume; None without one.
        shape: number of voxels along the three axes.
    """

    plane: str = "axial"
    face: Head | None = None
    shape: tuple[int, int, int] = (1, 1, 1)

    def decode(self, data: bytes) -> Pixels:
        return show_slice(_volume(data, self.name), self.plane, self.image.frame % PLANE_STEP)

    def faces(self, image: SourceImage, pixels: Pixels) -> tuple[Box, ...]:
        """Return the box of the face of its volume in this slice; empty if the slice shows none."""
        if self.face is None:
            return ()
        return face_in_slice(self.face, self.shape, self.plane, image.frame % PLANE_STEP, pixels)


class NiftiReader:
    """A reader of slices of every .nii and .nii.gz file below a folder, or of one file."""

    def __init__(self, options: SourceOptions, taxonomy: Taxonomy) -> None:
        self._settings = resolve_settings("nifti", SETTINGS, options.settings)
        self._slices = whole_number("slices", self._settings["slices"], 1)
        self._options = options
        self._modality = options.modality or "brain_mri"
        taxonomy.of(self._modality)
        self._source = LabelledFiles(options, taxonomy, _is_volume, "no .nii or .nii.gz in it")

    def count(self) -> int | None:
        """Return None: a volume may have fewer slices than requested."""
        return None

    def scan(self) -> Iterator[Found]:
        """Yield rejected rows of labels.csv, then each file's slices from left, back or feet, or its rejection."""
        yield from self._source.findings
        stems = {_stem(name) for _, name in self._source.files}
        for path, name in self._source.files:
            try:
                if name.lower().endswith(_OTHER_VOLUMES):
                    raise InputError(
                        f"{name}: a volume of another format (Analyze, FreeSurfer, NRRD, ...); convert it to .nii"
                    )
                listed = self._source.labels.names(name)
                tissue = re.fullmatch(r"((?:.*/)?)c[1-6]([A-Za-z][^/]*)", _stem(name))  # of SPM
                of_volume = tissue is not None and "".join(tissue.groups()) in stems
                if not listed and (of_volume or MASK.search(name) or _MASK.search(_stem(name))):
                    raise InputError(
                        f"{name}: a mask or label map by its name; an image needs a row in labels.csv"
                    )
                volume = _volume(read_regular(path, name), name)
                image = self._describe(name, volume)
            except InputError as error:
                yield refused(name, error)
                continue
            plane = self._settings["plane"]
            axis = AXES[plane]
            face = _face(volume)
            spacing = min(mm for other, mm in enumerate(volume.spacing_mm) if other != axis)
            for index in choose_slices(volume, plane, self._slices):
                frame = sorted(AXES).index(plane) * PLANE_STEP + index
                cut = replace(image, id=f"{image.id}_{plane}_{index:03d}", frame=frame, spacing_mm=spacing)
                yield SliceOfVolume(cut, path, name, plane, face, volume.values.shape)

    def _describe(self, name: str, volume: Volume) -> SourceImage:
        row = self._source.labels.of(name, self._modality)
        stem = _stem(name)
        notes = [] if row.labels else [NO_LABEL]
        notes += [f"volume 1 of {volume.volumes}"] if volume.volumes > 1 else []
        oblique = volume.oblique_degrees
        notes += [f"oblique by {oblique:g} degrees"] if oblique >= _STRAIGHT_DEGREES else []
        shares = volume.values.dtype.kind == "f" and volume.low >= 0.0 and 0.5 < volume.high <= 1.0
        notes += [SHARES] if shares else []
        sequence, contrast = self._settings["sequence"], self._settings["contrast"]
        words = next(((s, c) for pattern, s, c in _WORDS if pattern.search(stem.rpartition("/")[2])), None)
        subject = re.search(r"(^|/)(sub-[A-Za-z0-9]+)", stem)
        return SourceImage(
            id="_".join(stem.split("/")),
            dataset=self._source.dataset or "nifti",
            modality=self._modality,
            labels=row.labels,
            licence=self._options.licence,
            **UNREAD,
            group=row.group or (subject[2] if subject else f"volume:{_short(stem)}"),
            split=row.split,
            sequence=row.sequence or ((words[0] if words else "unknown") if sequence == "name" else sequence),
            contrast=(words[1] if words else "unknown") if contrast == "name" else contrast,
            plane=self._settings["plane"] if oblique < _OBLIQUE_DEGREES else "unknown",
            note="; ".join(notes),
        )


def _face(volume: Volume) -> Head | None:
    values, span = volume.values, volume.high - volume.low
    air = level_of_air(values)
    if air is not None and air > volume.low + 0.1 * span:
        # A map with values on both sides of its air, such as z scores: tissue is what departs from it.
        return face_of_volume(np.abs(values.astype(np.float32) - air), volume.spacing_mm, 0.1 * span)
    return face_of_volume(values, volume.spacing_mm, volume.low + 0.1 * span)


def _is_volume(path: Path) -> bool:
    return path.name.lower().endswith((".nii", ".nii.gz", *_OTHER_VOLUMES))


def _stem(name: str) -> str:
    return re.sub(r"(?i)\.nii(\.gz)?$", "", name)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


KIND = SourceKind(
    "NIfTI volumes (.nii, .nii.gz) in any folder, a few slices of each; labels from folders or labels.csv",
    NiftiReader,
    label_table=True,
    settings=SETTINGS,
)
