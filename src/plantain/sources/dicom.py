"""DICOM files in any folder: allow-listed fields of the header, labels from folders or labels.csv, pixels as shown.

No name, number, date or unique id of the header is kept: groups and ids are keyed hashes of them. `--set salt=` with
the same secret for every ingest keeps them from being guessed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from pydicom import Dataset

from plantain.files.opening import open_regular, read_regular
from plantain.findings import Taxonomy
from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.pixels.colour import colour_profile
from plantain.pixels.decode import BadImage, one_line
from plantain.pixels.dicom.files import DAMAGE, frame_count, read_dicom, read_header
from plantain.pixels.dicom.frames import display, header_of_frame, plane_of, swaps_axes
from plantain.pixels.dicom.render import WINDOWS, Bounds, contrast_values, render_planes, stated_bounds
from plantain.privacy.heads import profile_in_slice
from plantain.records import InputError, SourceImage
from plantain.sources.columns import is_placeholder
from plantain.sources.label_table import NO_LABEL, LabelledFiles
from plantain.sources.registry import (
    LOCALIZER,
    MOSAIC,
    STUDY_GROUP,
    UNREAD,
    Found,
    Refused,
    Setting,
    SourceEntry,
    SourceKind,
    SourceOptions,
    refused,
    resolve_settings,
)

SETTINGS = {
    "frames": Setting("middle", ("middle", "first", "all")),
    "window": Setting("file", WINDOWS),
    "salt": Setting(""),
}

_OTHER_FILES = frozenset({".csv", ".txt", ".md", ".json", ".xml", ".html", ".pdf", ".zip", ".gz"})
_NO_IMAGES = frozenset({"SEG", "RTDOSE", "RTSTRUCT", "PR", "SR", "KO"})
_SCANNERS = {
    "chest_xray": frozenset({"CR", "DX", "RG", "XR", "OT", "SC"}),
    "brain_mri": frozenset({"MR", "OT", "SC"}),
    "fundus": frozenset({"OP", "XC", "OT", "SC"}),
}
"""Modalities of the header that fit ours; with --modality any other is taken, and noted."""
_VOLUMES = frozenset({"MR", "CT", "PT", "NM"})
"""Modalities whose series are slices of a volume."""

_NO_AGENT = frozenset({"NO", "NONE", "N", "NIL", "WITHOUT", "NATIVE", "NOT APPLICABLE"})
_SEQUENCES = (
    ("FLAIR", ("FLAIR",)),
    ("T1", ("T1", "MPRAGE", "SPGR")),
    ("T2", ("T2",)),
    ("PD", ("PD", "PROTON")),
)


@dataclass(frozen=True, slots=True)
class DicomEntry(SourceEntry):
    """One frame of a DICOM file, shown with its window and in radiological orientation.

    `bounds` is the window of the series if its slices state none.
    """

    window: str = "file"
    bounds: Bounds | None = None

    def decode(self, data: bytes) -> Pixels:
        dataset = read_dicom(data, self.name)
        pixels = render_planes(dataset, self.name, self.image.frame, self.window, self.bounds)
        try:
            return _upright(pixels, header_of_frame(dataset, self.image.frame))
        except DAMAGE as error:
            raise BadImage(
                f"{self.name}: orientation cannot be read ({one_line(str(error))[:120]})"
            ) from error

    def faces(self, image: SourceImage, pixels: Pixels) -> tuple[Box, ...]:
        """Return boxes of faces: in photographs (secondary captures), and the profile in a sagittal head slice."""
        found = super(DicomEntry, self).faces(image, pixels)
        if pixels.ndim == 3 or image.plane != "sagittal":
            return found
        face = profile_in_slice(pixels, self.image.spacing_mm, self.aspect)
        return found if face is None else (*found, face)


def entry_of(
    image: SourceImage, path: Path, name: str, header: Dataset | None = None, window: str = "file"
) -> DicomEntry:
    """Make the entry of one frame, with spacing and aspect of its pixels from the header.

    Args:
        image: record of the frame; `frame` counts from 0.
        path, name: path of the file, and its name in messages.
        header: header of the frame; None reads it from the file.
        window: one of `WINDOWS`.

    Raises:
        BadImage: the header cannot be read.
    """
    if header is None:
        with open_regular(path, name) as file:
            header = header_of_frame(read_header(file, name), image.frame)
    spacing, aspect = _pixel_size(header)
    return DicomEntry(replace(image, spacing_mm=spacing), path, name, window, aspect=aspect)


class DicomReader:
    """A reader of every DICOM file below a folder, or one file; ids are hashes of the SOP instance UID."""

    def __init__(self, options: SourceOptions, taxonomy: Taxonomy) -> None:
        self._settings = resolve_settings("dicom", SETTINGS, options.settings)
        self._options = options
        if options.modality:
            taxonomy.of(options.modality)  # refuses an unknown one
        self._source = LabelledFiles(options, taxonomy, _may_be_dicom, "no DICOM file in it")

    def count(self) -> int | None:
        """Return the number of files; None if files can give several images, one per frame."""
        return None if self._settings["frames"] == "all" else self._source.count()

    def scan(self) -> Iterator[Found]:
        """Yield rejected rows of labels.csv, then files in order of their paths, each once or frame by frame.

        Slices without a window come last: they get the first window of their series, or one from some slices' values.
        """
        yield from self._source.findings
        seen: dict[str, tuple[Path, str]] = {}
        series: dict[str, list[DicomEntry]] = {}
        stated: dict[str, Bounds | None] = {}
        for path, name in self._source.files:
            try:
                with open_regular(path, name) as file:
                    # Elements are parsed on access, but their bytes were read with the header.
                    entries = list(self._entries(path, name, read_header(file, name)))
            except InputError as error:
                yield refused(name, error)
                continue
            except DAMAGE as error:
                yield Refused(name, f"its header cannot be read ({one_line(str(error))[:120]})")
                continue
            for entry, of, bounds in entries:
                first = seen.setdefault(entry.image.id, (path, name))
                if first[0] != path:
                    yield Refused(name, _repeated(*first, path))
                elif of and bounds is None:
                    series.setdefault(of, []).append(entry)
                else:
                    stated.setdefault(of, bounds)
                    yield entry
        for of, slices in series.items():
            bounds = stated.get(of) or (_bounds(slices) if len(slices) > 1 else None)
            yield from (replace(entry, bounds=bounds) for entry in slices)

    def _entries(
        self, path: Path, name: str, dataset: Dataset
    ) -> Iterator[tuple[DicomEntry, str, Bounds | None]]:
        """Yield frames, each with the series that shares its scale, "" if none does, and with its stated window."""
        kind = _text(dataset, "Modality")
        if kind in _NO_IMAGES or "Rows" not in dataset:
            raise BadImage(f"{name}: Modality {one_line(kind)[:16] or 'none'}, not an image")
        frames = frame_count(dataset)
        if frames > 100_000:
            raise BadImage(f"{name}: states {frames} frames")
        every = self._settings["frames"] == "all" and frames > 1
        which = {"first": [0], "middle": [frames // 2], "all": range(frames)}[self._settings["frames"]]
        for frame in which:
            header = header_of_frame(dataset, frame)
            image = self._describe(name, header)
            numbered = f"frame {frame + 1} of {frames}" if frames > 1 else ""
            note = "; ".join(filter(None, (image.note, numbered)))
            image_id = f"{image.id}_f{frame:04d}" if every else image.id
            image = replace(image, id=image_id, frame=frame, note=note)
            yield entry_of(image, path, name, header, self._settings["window"]), *self._series(header, name)

    def _series(self, header: Dataset, name: str) -> tuple[str, Bounds | None]:
        window = self._settings["window"]
        alone = window == "film" or (window == "file" and bool(header.get("VOILUTSequence")))
        if alone or _text(header, "Modality") not in _VOLUMES:
            return "", None
        return _text(header, "SeriesInstanceUID") or name, stated_bounds(header) if window == "file" else None

    def _describe(self, name: str, dataset: Dataset) -> SourceImage:
        modality = self._options.modality or _modality(dataset)
        if not modality:
            kind, part = _text(dataset, "Modality") or "none", _text(dataset, "BodyPartExamined") or "none"
            raise InputError(
                f"{name}: Modality {kind}, body part {part}: name the modality of its image with --modality"
            )
        row = self._source.labels.of(name, modality)
        projection, kind = _text(dataset, "ViewPosition"), _text(dataset, "Modality")
        photometric = _text(dataset, "PhotometricInterpretation")
        raw = _text(dataset, "PresentationIntentType") == "FOR PROCESSING"
        types = [str(word).upper() for word in dataset.get("ImageType") or ()]
        notes = {
            "the header states burned-in text": _text(dataset, "BurnedInAnnotation") == "YES",
            NO_LABEL: not row.labels,
            colour_profile(dataset.get("ICCProfile")).note: not photometric.startswith("MONOCHROME"),
            f"the header states Modality {one_line(kind)[:16]}": bool(kind)
            and kind not in _SCANNERS.get(modality, {kind}),
            LOCALIZER: "LOCALIZER" in types,
            MOSAIC: "MOSAIC" in types,
            "raw detector values (--set window=film shows them as on film)": raw
            and self._settings["window"] != "film",
        }
        frontal, lateral = projection in ("PA", "AP"), projection in ("LL", "RL")
        side = _text(dataset, "ImageLaterality") or _text(dataset, "Laterality")
        return SourceImage(
            id=f"dicom-{self._hash(_text(dataset, 'SOPInstanceUID') or name)}",
            dataset=self._source.dataset or "dicom",
            modality=modality,
            labels=row.labels,
            licence=self._options.licence,
            **UNREAD,
            group=row.group or self._group(dataset),
            split=row.split,
            view="frontal" if frontal else "lateral" if lateral else "unknown",
            projection=projection if frontal else "unknown",
            sequence=row.sequence or (_sequence(dataset) if modality == "brain_mri" else "unknown"),
            contrast=_contrast(dataset),
            plane=row.plane or plane_of(_numbers(dataset, "ImageOrientationPatient")),
            laterality={"L": "left", "R": "right"}.get(side, "unknown"),
            synthetic=_text(dataset, "SyntheticData") == "YES",
            note="; ".join(note for note, applies in notes.items() if applies and note),
        )

    def _group(self, dataset: Dataset) -> str | None:
        """Return the patient, or the study if the header names none, so that its slices stay together."""
        patient, study = _text(dataset, "PatientID"), _text(dataset, "StudyInstanceUID")
        if not is_placeholder(patient):
            return f"patient:{self._hash(patient)}"
        return f"{STUDY_GROUP}{self._hash(study)}" if study else None

    def _hash(self, text: str) -> str:
        key = hashlib.sha256(self._settings["salt"].encode()).digest()
        return hashlib.blake2b(text.encode(), key=key, digest_size=8).hexdigest()


@lru_cache(maxsize=1)  # once for all frames
def _repeated(first: Path, first_name: str, path: Path) -> str:
    """Return why a file with the SOP instance UID of another is refused."""
    try:
        one, other = (read_dicom(read_regular(each, str(each)), first_name) for each in (first, path))
        same = one.get("PixelData") == other.get("PixelData")
    except InputError:
        same = True  # what cannot be read is refused under its own name
    return (
        f"the same SOP instance as {first_name}"
        if same
        else f"the SOP instance UID of {first_name}, with other pixels"
    )


def _bounds(slices: Sequence[DicomEntry]) -> Bounds | None:
    """Return the scale of a series by up to 9 of its slices; None if none of them can be decoded."""
    values = []
    for entry in slices[:: -(-len(slices) // 9)]:
        try:
            dataset = read_dicom(read_regular(entry.path, entry.name), entry.name)
            values.append(contrast_values(dataset, entry.name, entry.image.frame))
        except InputError:
            continue  # refused when it is decoded
    low, high = np.percentile(np.concatenate(values), (0.5, 99.5)) if values else (0.0, 0.0)
    return (float(low), float(high)) if low < high else None


def _may_be_dicom(path: Path) -> bool:
    return path.suffix.lower() not in _OTHER_FILES and path.name.upper() != "DICOMDIR"


def _modality(dataset: Dataset) -> str:
    """Return our modality for a header's modality and body part; "" if unknown."""
    kind, part = _text(dataset, "Modality"), _text(dataset, "BodyPartExamined")
    if kind in ("CR", "DX", "RG", "XR") and ("CHEST" in part or "THORAX" in part):
        return "chest_xray"
    if kind == "MR" and ("BRAIN" in part or "HEAD" in part):
        return "brain_mri"
    return "fundus" if kind == "OP" else ""


def _sequence(dataset: Dataset) -> str:
    """Return the sequence from the name of the series; it is free text, so nothing else of it is kept."""
    words = f"{_text(dataset, 'SeriesDescription')} {_text(dataset, 'SequenceName')} {_text(dataset, 'ProtocolName')}"
    return next((name for name, marks in _SEQUENCES if any(mark in words for mark in marks)), "unknown")


def _contrast(dataset: Dataset) -> str:
    """Return "yes" if an agent is named, "none" if the field states that there was none."""
    agent = _text(dataset, "ContrastBolusAgent").strip(" .-")
    return "unknown" if not agent else "none" if agent in _NO_AGENT else "yes"


def _upright(pixels: Pixels, dataset: Dataset) -> Pixels:
    """Turn pixels into radiological display by the patient's axes, or a radiograph's PatientOrientation."""
    directions = _numbers(dataset, "ImageOrientationPatient")
    if directions:
        return display(pixels, directions)
    axes = _radiograph_axes(dataset)
    if axes[:1] in ("H", "F"):
        pixels, axes = np.swapaxes(pixels, 0, 1), axes[::-1]
    if axes[:1] == "R":
        pixels = pixels[:, ::-1]
    if axes[1:] == "H":
        pixels = pixels[::-1]
    return pixels


def _radiograph_axes(dataset: Dataset) -> str:
    """Return whereto rows and columns of a radiograph go by its PatientOrientation, such as "LF"; "" if unknown."""
    letters = dataset.get("PatientOrientation")
    if _text(dataset, "Modality") not in ("CR", "DX", "RG", "XR") or letters is None or len(letters) != 2:
        return ""
    return "".join(str(one)[:1] for one in letters) if all(letters) else ""


def _pixel_size(dataset: Dataset) -> tuple[float | None, float]:
    """Return the width of a displayed pixel in millimetres, None if unknown, and its height over its width.

    A radiograph's spacing is at the detector, as in the header. PixelAspectRatio is stated where no spacing is (PS3.3,
    C.7.6.3.1.7); each has the vertical number first.
    """
    for field in ("PixelSpacing", "ImagerPixelSpacing", "NominalScannedPixelSpacing", "PixelAspectRatio"):
        size = _numbers(dataset, field)
        if len(size) == 2 and min(size) > 0.0 and max(size) < 1000.0 and 0.1 <= size[0] / size[1] <= 10.0:
            turned = swaps_axes(_numbers(dataset, "ImageOrientationPatient"))
            turned = turned or _radiograph_axes(dataset)[:1] in ("H", "F")
            down, across = size[::-1] if turned else size
            aspect = down / across if abs(down - across) >= 0.01 * across else 1.0
            return (None if field == "PixelAspectRatio" else across), aspect
    return None, 1.0


def _text(dataset: Dataset, name: str) -> str:
    value = dataset.get(name)
    return "" if value is None else str(value).strip().upper()


def _numbers(dataset: Dataset, name: str) -> list[float]:
    value = dataset.get(name)
    try:
        return [float(number) for number in value] if value is not None else []
    except (TypeError, ValueError):
        return []


KIND = SourceKind(
    "DICOM files in any folder, also multi-frame; labels from folders named like a finding, or labels.csv",
    DicomReader,
    label_table=True,
    settings=SETTINGS,
)
