"""Brain Tumor MRI (Nickparvar, Kaggle): slices in {Training,Testing}/{glioma,meningioma,notumor,pituitary}/.

The label is the folder's, never the name's; an image in the folders of two labels has none that can be trusted. There
are no patient ids, so no image has a group, and slices of one patient may be in both splits. Plane, sequence, contrast
and whether a slice shows the sella are not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from plantain.findings import Taxonomy
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import one_line
from plantain.records import InputError, SourceImage
from plantain.records.messages import suggest
from plantain.sources.brain_slice import UNKNOWN, WITH_SELLA, WITHOUT_SELLA, estimate_slice
from plantain.sources.folder import FolderReader, ImageFile
from plantain.sources.label_table import RowLabels
from plantain.sources.registry import (
    Refused,
    Setting,
    SourceEntry,
    SourceKind,
    SourceOptions,
    resolve_settings,
)

SPLITS = {"training": "train", "testing": "test"}

DATASET = "Brain Tumor MRI"

SETTINGS = {
    "plane": Setting("estimate", ("estimate", "axial", "coronal", "sagittal", UNKNOWN)),
    "sequence": Setting("estimate", ("estimate", "T1", "T2", "FLAIR", "PD", UNKNOWN)),
    "view": Setting("estimate", ("estimate", WITH_SELLA, WITHOUT_SELLA, UNKNOWN)),
    "contrast": Setting(UNKNOWN, ("yes", "none", UNKNOWN)),
}
"""A value other than the default applies to every image."""

SELLAR = "pituitary"
"""The finding whose label implies that the slice shows the sella."""

NO_PATIENTS = "no patient ids in this source: other slices of this patient may be anywhere in it"


@dataclass(frozen=True, slots=True)
class SliceEntry(SourceEntry):
    """A slice for which the fields in `ask` (plane, sequence, view) are estimated when it is decoded."""

    ask: tuple[str, ...] = ()

    def describe(self, image: SourceImage, pixels: Pixels) -> SourceImage:
        seems, notes = estimate_slice(pixels), [image.note]
        for field in self.ask:
            value = getattr(seems, field)
            if value != UNKNOWN:
                sure = getattr(seems, f"{field}_confidence")
                image = replace(image, **{field: value})
                notes.append(f"{field} estimated from the image, confidence {sure:.2f}")
        return replace(image, note="; ".join(notes))


class BrainTumorReader(FolderReader):
    """A reader of the slices of Brain Tumor MRI with split and label; ids are as for `FolderReader`."""

    def __init__(self, options: SourceOptions, taxonomy: Taxonomy) -> None:
        if options.modality not in ("", "brain_mri"):
            raise InputError(f"--modality {options.modality}: brain-tumor-mri is brain_mri")
        self._settings = resolve_settings("brain-tumor-mri", SETTINGS, options.settings)
        self._read(options, taxonomy, "brain_mri")
        if not self._files:
            raise InputError(f"{options.path}: no Training/<label>/*.jpg or Testing/<label>/*.jpg in it")

    def row(self, name: str) -> RowLabels:
        folders = name.split("/")[:-1]
        split = next((SPLITS[part.lower()] for part in reversed(folders) if part.lower() in SPLITS), None)
        if split is None or folders[-1].lower() in SPLITS:
            raise InputError("not in Training/<label>/ or Testing/<label>/")
        # One of the collections that were merged calls its folders glioma_tumor and meningioma_tumor.
        for folder in (folders[-1], re.sub(r"(?i)[ _-]tumou?r$", "", folders[-1])):
            if finding := self._taxonomy.match_label("brain_mri", folder):
                return RowLabels((finding.name,), split=split)
        raise InputError(f"no label is named like its folder; {suggest(folders[-1], list(self._order))}")

    def _alike(self) -> Mapping[object, list[ImageFile]]:
        """Return files of equal size: one image may be in the folders of two labels under two names."""
        found: dict[object, list[ImageFile]] = {}
        for file in self._files:
            found.setdefault(file.path.stat().st_size, []).append(file)
        return found

    def _image(self, image_id: str, copies: list[ImageFile]) -> Iterator[SourceEntry | Refused]:
        labels = sorted({label for file in copies for label in file.row.labels})
        if len(labels) > 1:
            why = f"the same image has the labels {' and '.join(labels)}"
            yield from (Refused(one_line(copy.name), why) for copy in copies)
            return
        asked = ("plane", "sequence") if labels == [SELLAR] else ("plane", "sequence", "view")
        ask = tuple(key for key in asked if self._settings[key] == "estimate")
        stated: dict[str, Any] = {
            key: UNKNOWN if value == "estimate" else value for key, value in self._settings.items()
        }
        for entry in super()._image(image_id, copies[:1]):
            assert isinstance(entry, SourceEntry)
            image = replace(entry.image, dataset=DATASET, note=NO_PATIENTS, **stated)
            yield SliceEntry(image, entry.path, entry.name, ask)
        why = f"the same image as {one_line(copies[0].name)}"
        yield from (Refused(one_line(copy.name), why) for copy in copies[1:])


KIND = SourceKind(
    "Brain Tumor MRI (Nickparvar): {Training,Testing}/{glioma,meningioma,notumor,pituitary}/*.jpg",
    BrainTumorReader,
    DATASET,
    settings=SETTINGS,
)
