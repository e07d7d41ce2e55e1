"""Brain Tumor MRI (Nickparvar, Kaggle): slices in {Training,Testing}/{glioma,meningioma,notumor,pituitary}/.

The label is the folder's, never the name's; a picture that lies in the folders of two labels has none to trust. There
are no patient ids, so no image has a group: slices of one patient may stand in both of its splits, and no split by
patient can be promised. Sequence and contrast are not recorded, nor whether a slice shows the sella.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.files.opening import read_regular
from plantain.findings import Taxonomy
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import one_line
from plantain.records import InputError, SourceImage
from plantain.records.suggestions import suggest
from plantain.sources.brain_slice import UNKNOWN, WITH_SELLA, WITHOUT_SELLA, estimate_slice
from plantain.sources.entries import UNPREPARED, Found, Refused, SourceEntry, SourceOptions
from plantain.sources.folder import PICTURES
from plantain.sources.places import shown, walk
from plantain.sources.registry import SourceKind
from plantain.sources.settings import Setting, resolve_settings

SPLITS = {"training": "train", "testing": "test"}

DATASET = "Brain Tumor MRI"

SETTINGS = {
    "plane": Setting("estimate", ("estimate", "axial", "coronal", "sagittal", UNKNOWN)),
    "sequence": Setting("estimate", ("estimate", "T1", "T2", "FLAIR", "PD", UNKNOWN)),
    "view": Setting("estimate", ("estimate", WITH_SELLA, WITHOUT_SELLA, UNKNOWN)),
    "contrast": Setting(UNKNOWN, ("yes", "none", UNKNOWN)),
}
"""A value other than the default is the word of whoever ingests, for every image alike."""

SELLAR = "pituitary"
"""Whoever gave this label saw the sella: it is not asked for there."""

NO_PATIENTS = "no patient ids in this source: other slices of this patient may be anywhere in it"


@dataclass(frozen=True, slots=True)
class SliceEntry(SourceEntry):
    """A slice of which plane, sequence and whether it lies off the sella are told when it is decoded, if nobody did.

    Attributes:
        ask: which of "plane", "sequence" and "view" to tell.
    """

    ask: tuple[str, ...] = ()

    def describe(self, image: SourceImage, pixels: Pixels) -> SourceImage:
        seems, words = estimate_slice(pixels), [image.note]
        if "plane" in self.ask and seems.plane != UNKNOWN:
            image = replace(image, plane=seems.plane)
            words.append(f"plane estimated from the picture, confidence {seems.plane_confidence:.2f}")
        if "sequence" in self.ask and seems.sequence != UNKNOWN:
            image = replace(image, sequence=seems.sequence)
            words.append(f"sequence estimated from the picture, confidence {seems.sequence_confidence:.2f}")
        if "view" in self.ask and seems.view != UNKNOWN:
            image = replace(image, view=seems.view)
            words.append(f"{seems.view}: estimated from the picture, confidence {seems.view_confidence:.2f}")
        return replace(image, note="; ".join(words))


class BrainTumorReader:
    """Slices by split and label; the id is the file's name, with split and label before it where two share one."""

    def __init__(self, options: SourceOptions, taxonomy: Taxonomy) -> None:
        if options.modality not in ("", "brain_mri"):
            raise InputError(f"--modality {options.modality}: brain-tumor-mri is brain_mri")
        self._settings = resolve_settings("brain-tumor-mri", SETTINGS, options.settings)
        self._licence = options.licence
        self._taxonomy = taxonomy
        self._root = options.path
        self._files: list[tuple[Path, str, str]] = []
        self._refused: list[Refused] = []
        for path in walk(options.path):
            self._place(path)
        if not self._files:
            raise InputError(f"{options.path}: no Training/<label>/*.jpg or Testing/<label>/*.jpg in it")

    def count(self) -> int:
        """Files of the source."""
        return len(self._files) + len(self._refused)

    def scan(self) -> Iterator[Found]:
        """Refused files first, then slices in order of their paths; none whose picture has two labels."""
        yield from self._refused
        doubtful = self._with_two_labels()
        stems = Counter(path.stem for path, _, _ in self._files)
        ids = Counter(_id(path, stems) for path, _, _ in self._files)
        for path, split, label in self._files:
            if path in doubtful:
                yield Refused(one_line(shown(path, self._root)), f"the same picture has {doubtful[path]}")
                continue
            name = _id(path, stems)
            image = SourceImage(
                id=name if ids[name] == 1 else f"{name}{path.suffix}",
                dataset=DATASET,
                modality="brain_mri",
                labels=(label,),
                licence=self._licence,
                source_sha256="",
                prepared_sha256="",
                geometry=UNPREPARED,
                split=split,
                sequence=self._stated("sequence"),
                contrast=self._settings["contrast"],
                plane=self._stated("plane"),
                view=self._stated("view"),
                note=NO_PATIENTS,
            )
            asked = ("plane", "sequence") if label == SELLAR else ("plane", "sequence", "view")
            ask = tuple(key for key in asked if self._settings[key] == "estimate")
            yield SliceEntry(image, path, one_line(shown(path, self._root)), ask=ask)

    def _stated(self, key: str) -> str:
        return UNKNOWN if self._settings[key] == "estimate" else self._settings[key]

    def _with_two_labels(self) -> dict[Path, str]:
        """Files whose bytes lie in the folders of several labels, with those labels in words."""
        by_size: dict[int, list[tuple[Path, str]]] = {}
        for path, _, label in self._files:
            with contextlib.suppress(OSError):
                by_size.setdefault(path.stat().st_size, []).append((path, label))
        found: dict[Path, str] = {}
        for alike in by_size.values():
            # Only files of equal size can be equal: most need not be read here.
            if len({label for _, label in alike}) > 1:
                by_content: dict[str, list[tuple[Path, str]]] = {}
                for path, label in alike:
                    with contextlib.suppress(InputError):
                        digest = hashlib.sha256(read_regular(path, path.name)).hexdigest()
                        by_content.setdefault(digest, []).append((path, label))
                for same in by_content.values():
                    labels = sorted({label for _, label in same})
                    if len(labels) > 1:
                        found |= {path: f"the labels {' and '.join(labels)}" for path, _ in same}
        return found

    def _place(self, path: Path) -> None:
        """Sorts one file by its folders: the last is the label, one above it the split."""
        folders = path.relative_to(self._root).parts[:-1]
        name = one_line(shown(path, self._root))
        if path.suffix.lower() not in PICTURES:
            self._refused.append(Refused(name, "not a picture by its name"))
            return
        split = next((SPLITS[part.lower()] for part in reversed(folders) if part.lower() in SPLITS), None)
        if split is None or folders[-1].lower() in SPLITS:
            self._refused.append(Refused(name, "not in Training/<label>/ or Testing/<label>/"))
            return
        # One of the collections that were merged calls its folders glioma_tumor and meningioma_tumor.
        label = re.sub(r"(?i)[ _-]tumou?r$", "", folders[-1])
        finding = self._taxonomy.match_label("brain_mri", folders[-1])
        finding = finding or self._taxonomy.match_label("brain_mri", label)
        if finding is None:
            names = [finding.name for finding in self._taxonomy.of("brain_mri")]
            self._refused.append(
                Refused(name, f"no label is named like its folder; {suggest(folders[-1], names)}")
            )
        else:
            self._files.append((path, split, finding.name))


def _id(path: Path, stems: Counter[str]) -> str:
    stem = one_line(path.stem)
    return stem if stems[path.stem] == 1 else f"{path.parent.parent.name}_{path.parent.name}_{stem}"


KIND = SourceKind(
    "Brain Tumor MRI (Nickparvar): {Training,Testing}/{glioma,meningioma,notumor,pituitary}/*.jpg",
    BrainTumorReader,
    DATASET,
    settings=SETTINGS,
)
