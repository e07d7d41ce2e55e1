"""Brain Tumor MRI (Nickparvar, Kaggle): slices in {Training,Testing}/{glioma,meningioma,notumor,pituitary}/.

The label is the folder's, never the name's; an image in the folders of two labels has none that can be trusted. There
are no patient ids, so no image has a group, and slices of one patient may be in both splits. Plane, sequence, contrast
and whether a slice shows the sella are not recorded.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.files.opening import read_regular
from plantain.findings import Taxonomy
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import one_line
from plantain.records import InputError, SourceImage
from plantain.records.suggestions import suggest
from plantain.sources.brain_slice import UNKNOWN, WITH_SELLA, WITHOUT_SELLA, estimate_slice
from plantain.sources.entries import UNPREPARED, Found, Refused, SourceEntry, SourceOptions, shown, walk
from plantain.sources.folder import PICTURES
from plantain.sources.registry import Setting, SourceKind, resolve_settings

SPLITS = {"training": "train", "testing": "test"}

DATASET = "Brain Tumor MRI"

SETTINGS = {
    "plane": Setting("estimate", ("estimate", "axial", "coronal", "sagittal", UNKNOWN)),
    "sequence": Setting("estimate", ("estimate", "T1", "T2", "FLAIR", "PD", UNKNOWN)),
    "view": Setting("estimate", ("estimate", WITH_SELLA, WITHOUT_SELLA, UNKNOWN)),
    "contrast": Setting(UNKNOWN, ("yes", "none", UNKNOWN)),
}
"""A value other than the default holds for every image."""

SELLAR = "pituitary"
"""The finding whose label implies that the slice shows the sella."""

NO_PATIENTS = "no patient ids in this source: other slices of this patient may be anywhere in it"


@dataclass(frozen=True, slots=True)
class SliceEntry(SourceEntry):
    """A slice whose plane, sequence and view are estimated when it is decoded, as far as `ask` names them."""

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


class BrainTumorReader:
    """Slices by split and label; the id is the file's name, preceded by split and label where two files share it."""

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
        """Return the number of files."""
        return len(self._files) + len(self._refused)

    def scan(self) -> Iterator[Found]:
        """Yield refused files, then slices in order of their paths."""
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
        """Return the files whose bytes are in the folders of several labels, with those labels in words."""
        by_size: dict[object, list[tuple[Path, str]]] = {}
        by_content: dict[object, list[tuple[Path, str]]] = {}
        for path, _, label in self._files:
            with contextlib.suppress(OSError):
                by_size.setdefault(path.stat().st_size, []).append((path, label))
        for path, label in _doubtful(by_size):  # only files of equal size can be equal: few are read
            with contextlib.suppress(InputError):
                digest = hashlib.sha256(read_regular(path, path.name)).hexdigest()
                by_content.setdefault(digest, []).append((path, label))
        found: dict[Path, str] = {}
        for same in by_content.values():
            labels = " and ".join(sorted({label for _, label in same}))
            found |= {path: f"the labels {labels}" for path, _ in _doubtful({0: same})}
        return found

    def _place(self, path: Path) -> None:
        """Sort one file by its folders: the last is the label, one above it the split."""
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


def _doubtful(alike: Mapping[object, list[tuple[Path, str]]]) -> Iterator[tuple[Path, str]]:
    """Yield files and labels of those lists that have several labels."""
    for files in alike.values():
        if len({label for _, label in files}) > 1:
            yield from files


def _id(path: Path, stems: Counter[str]) -> str:
    stem = one_line(path.stem)
    return stem if stems[path.stem] == 1 else f"{path.parent.parent.name}_{path.parent.name}_{stem}"


KIND = SourceKind(
    "Brain Tumor MRI (Nickparvar): {Training,Testing}/{glioma,meningioma,notumor,pituitary}/*.jpg",
    BrainTumorReader,
    DATASET,
    settings=SETTINGS,
)
