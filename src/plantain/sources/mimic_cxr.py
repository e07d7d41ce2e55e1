"""MIMIC-CXR: chest radiographs as JPEG (MIMIC-CXR-JPG) or DICOM, with the labels of their reports.

PATH holds files/ and the tables of MIMIC-CXR-JPG, or DICOM users name the folder of those tables. The data is
credentialed, and so is everything made from it.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plantain.files.tables import read_table
from plantain.findings import Taxonomy
from plantain.pixels.decode import one_line
from plantain.records import InputError, Licence, SourceImage
from plantain.sources.dicom import entry_of
from plantain.sources.mimic_files import MimicFiles
from plantain.sources.registry import (
    UNREAD,
    Found,
    LeftOut,
    Refused,
    Setting,
    SourceEntry,
    SourceKind,
    SourceOptions,
    refused,
    resolve_settings,
    whole_number,
)

DATASET = "MIMIC-CXR"

SETTINGS = {
    "selection": Setting("all", ("all", "single")),
    "per_class": Setting("0"),
    "tables": Setting(""),
}
"""`selection=single per_class=1000` is the paper's "single_disease_selection", 1k per class; `per_class=0` has no cap.
`tables` is their folder, if it is not in PATH."""

FRONTAL = ("PA", "AP")

_METADATA = ("dicom_id", "subject_id", "study_id", "ViewPosition")
_POSITION = "PatientOrientationCodeSequence_CodeMeaning"
_DICOM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{8}){4}")
_NUMBER = re.compile(r"[0-9]{8}")
_SPLITS = ("train", "validate", "test")


@dataclass(frozen=True, slots=True, order=True)
class _Image:
    """One row of the metadata with a frontal view."""

    subject: str
    study: str
    dicom: str
    view: str
    position: str

    @property
    def stem(self) -> str:
        return f"{self.folder}/{self.dicom}"

    @property
    def folder(self) -> str:
        return f"p{self.subject[:2]}/p{self.subject}/s{self.study}"


_Labelled = tuple[_Image, Path, "StudyLabels"]


class MimicReader:
    """Reader of MIMIC-CXR's labelled images; id `s<study>`, with the dicom id if a study has several views."""

    def __init__(self, options: SourceOptions, taxonomy: Taxonomy) -> None:
        if options.modality not in ("", "chest_xray"):
            raise InputError(f"--modality {options.modality}: mimic-cxr is chest_xray")
        if options.licence in (Licence.OPEN, Licence.ATTRIBUTION):
            raise InputError(f"--licence {options.licence}: MIMIC-CXR is credentialed; leave the option out")
        self._settings = resolve_settings("mimic-cxr", SETTINGS, options.settings)
        self._cap = whole_number("per_class", self._settings["per_class"])
        self._files = MimicFiles(options.path, self._settings["tables"])
        self._version = self._files.version
        self._taxonomy = taxonomy
        self._refused: list[Refused] = []
        self._left_out: Counter[str] = Counter()
        self._named: set[str] = set()
        self._splits = self._read_splits()
        self._images = self._read_images()
        self._of_study = Counter(image.study for image in self._images)
        self._chosen = self._choose()

    def count(self) -> int:
        """Return the number of requested images plus faulty rows and files."""
        return len(self._chosen) + len(self._refused)

    def scan(self) -> Iterator[Found]:
        """Yield faults, then images by patient, study and dicom id, then counts of images that were not requested."""
        yield from self._refused
        for image, path, labels in self._chosen:
            name, described = self._files.shown(image.stem) + path.suffix, self._describe(image, labels)
            try:
                read = entry_of if path.suffix.lower() == ".dcm" else SourceEntry
                yield read(described, path, name)
            except InputError as error:
                yield refused(name, error)
        for reason, count in sorted((+self._left_out).items()):
            yield LeftOut(reason, count)

    def _describe(self, image: _Image, labels: StudyLabels) -> SourceImage:
        several = self._of_study[image.study] > 1
        lying = image.position == "recumbent"
        notes = [labels.note] if labels.note else []
        notes += ["position recorded as recumbent"] if lying else []
        return SourceImage(
            id=f"s{image.study}_{image.dicom}" if several else f"s{image.study}",
            dataset=DATASET,
            version=self._version,
            modality="chest_xray",
            labels=labels.labels,
            licence=Licence.CREDENTIALED,
            **UNREAD,
            group=f"patient:{image.subject}",
            split=self._splits[image.dicom],
            view="frontal",
            projection=image.view,
            position="supine" if lying else "erect" if image.position == "erect" else "unknown",
            note="; ".join(notes),
        )

    def _read_splits(self) -> dict[str, str]:
        path = self._files.table("split")
        splits: dict[str, str] = {}
        for line, row, fault in read_table(path).require("dicom_id", "split").rows:
            if not fault and row["split"] not in _SPLITS:
                fault = f"{one_line(row['split'])!r} is none of {', '.join(_SPLITS)}"
            if fault:
                name = f"{one_line(row['dicom_id'])} of {path.name}"
                self._refused.append(Refused(name, fault, row=line, field="split"))
            else:
                splits[sys.intern(row["dicom_id"])] = sys.intern(row["split"])
        return splits

    def _read_images(self) -> list[_Image]:
        """Return the rows of the metadata with a frontal view, in order of their ids."""
        images: dict[str, _Image] = {}
        for line, row, fault in read_table(self._files.table("metadata")).require(*_METADATA).rows:
            view = row["ViewPosition"].upper()
            # Interned, since most of them occur in several of 377,000 rows, and the ids in another table as well.
            image = _Image(
                sys.intern(row["subject_id"].removesuffix(".0")),
                sys.intern(row["study_id"].removesuffix(".0")),
                sys.intern(row["dicom_id"]),
                sys.intern(view),
                sys.intern(row.get(_POSITION, "").lower()),
            )
            self._named.add(image.dicom)
            field, why = ("", fault) if fault else self._fault(image)
            if not why and images.get(image.dicom, image) != image:
                field, why = "dicom_id", "two rows of this image differ; the first counts"
            if why:
                self._refused.append(Refused(one_line(image.dicom) or "metadata", why, row=line, field=field))
            elif view not in FRONTAL:
                self._left_out[f"not frontal: ViewPosition {one_line(view) or 'blank'}"] += 1
            else:
                images[image.dicom] = image
        return sorted(images.values())

    def _fault(self, image: _Image) -> tuple[str, str]:
        """Return the field that is at fault and why."""
        if not _DICOM_ID.fullmatch(image.dicom):
            return "dicom_id", "not five groups of eight hexadecimal digits"
        for field, number in (("subject_id", image.subject), ("study_id", image.study)):
            if not _NUMBER.fullmatch(number):
                return field, "not eight digits"
        return ("", "") if image.dicom in self._splits else ("dicom_id", "the split table does not name it")

    def _choose(self) -> list[_Labelled]:
        endings, tops = self._find_files(), self._files.tops()
        found = []
        for image, labels in self._labelled():
            top = image.folder.partition("/")[0]
            if image.dicom in endings:
                path = self._files.images / f"{image.stem}{endings[image.dicom]}"
                found.append((image, path, labels))
            elif top not in tops:
                self._left_out[f"not downloaded: {self._files.shown(top)} is not there"] += 1
            else:
                name = self._files.shown(image.stem)
                self._refused.append(Refused(f"{name}.jpg", "is not there, neither as .jpg nor as .dcm"))
        return self._capped(found) if self._cap else found

    def _find_files(self) -> dict[str, str]:
        """Return the endings of the files by dicom id; refuse files that no row places in their folder."""
        wanted = {image.dicom: image for image in self._images}
        endings: dict[str, str] = {}
        for place in self._files.listing():
            image = wanted.get(place.dicom)
            name = self._files.shown(f"{place.folder}/{place.dicom}{place.ending}")
            if image is None and place.dicom not in self._named:
                self._refused.append(Refused(name, "no row of the tables names it, so it has no label"))
            elif image is not None and image.folder != place.folder:
                elsewhere = self._files.shown(image.folder)
                self._refused.append(Refused(name, f"is in another folder than its row states: {elsewhere}"))
            elif image is not None and endings.get(image.dicom, ".dcm").lower() == ".dcm":
                # The key of the row is shared; a JPEG goes before the DICOM file next to it.
                endings[image.dicom] = sys.intern(place.ending)
        return endings

    def _labelled(self) -> Iterator[tuple[_Image, StudyLabels]]:
        marks, bad = read_marks(self._files.table("chexpert"))
        self._refused += bad
        known: dict[Marks, StudyLabels] = {}
        single = self._settings["selection"] == "single"
        for image in self._images:
            mark = marks.get(image.study)
            if mark is None:
                self._left_out["no label for its study"] += 1
                continue
            if mark not in known:
                known[mark] = labels_of(mark, self._taxonomy, single=single)
            if known[mark].left_out:
                self._left_out[known[mark].left_out] += 1
            else:
                yield image, known[mark]

    def _capped(self, found: list[_Labelled]) -> list[_Labelled]:
        """Keep at most `per_class` of each label, by a hash of label and image."""
        ranks: dict[str, list[tuple[bytes, str]]] = {}
        for image, _, labels in found:
            for label in labels.labels:
                key = hashlib.sha256(f"{label}\x1f{image.dicom}".encode()).digest()
                ranks.setdefault(label, []).append((key, image.dicom))
        kept = {dicom for ranked in ranks.values() for _, dicom in sorted(ranked)[: self._cap]}
        self._left_out[f"beyond {self._cap} of its class (--set per_class)"] += len(found) - len(kept)
        return [item for item in found if item[0].dicom in kept]


KIND = SourceKind(
    "MIMIC-CXR-JPG or MIMIC-CXR: files/p10/... and mimic-cxr-2.0.0-{metadata,split,chexpert}.csv.gz",
    MimicReader,
    DATASET,
    settings=SETTINGS,
)


COLUMNS = (
    *("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum", "Fracture"),
    *("Lung Lesion", "Lung Opacity", "No Finding", "Pleural Effusion", "Pleural Other", "Pneumonia"),
    *("Pneumothorax", "Support Devices"),
)
"""The published labels, read by header."""

_CODES = {"": " ", "1": "+", "1.0": "+", "0": "-", "0.0": "-", "-1": "?", "-1.0": "?"}
_NORMAL = "No Finding"
_NO_DISEASE = frozenset({_NORMAL, "Support Devices"})

Marks = str
"""One character per label of `COLUMNS`: "+", "-", "?" or " ". A study per row of 227,000 must stay small."""


@dataclass(frozen=True, slots=True)
class StudyLabels:
    """A study's labels, or the reason why the study is skipped.

    Attributes:
        labels: findings present, in the order of the taxonomy; empty if the study is skipped.
        note: limits of these labels.
        left_out: why the study is skipped, else "".
    """

    labels: tuple[str, ...]
    note: str = ""
    left_out: str = ""


def read_marks(path: Path) -> tuple[dict[str, Marks], list[Refused]]:
    """Read a label table: (study id -> marks by finding, unusable rows). Raise InputError if a column is missing."""
    studies: dict[str, Marks] = {}
    bad: list[Refused] = []
    for line, row, fault in read_table(path).require("study_id", *COLUMNS).rows:
        study, field = row["study_id"].removesuffix(".0").removeprefix("s"), ""
        marks = "".join(_CODES.get(row[name], "!") for name in COLUMNS)
        if not fault and "!" in marks:
            field = COLUMNS[marks.index("!")]
            fault = f"{one_line(row[field])!r} is none of 1, 0, -1 and blank"
        elif not fault and studies.get(study, marks) != marks:
            fault, field = "two rows of this study differ in their labels; the first counts", "study_id"
        if fault:
            bad.append(Refused(f"study {one_line(study)} of {path.name}", fault, row=line, field=field))
        else:
            studies[sys.intern(study)] = sys.intern(marks)
    return studies, bad


def labels_of(marks: Marks, taxonomy: Taxonomy, *, single: bool) -> StudyLabels:
    """Return the labels of a study whose report has these marks, or the reason why the study is skipped.

    An uncertain finding is not a label, but its study is not single-disease either.

    Args:
        marks: the study's marks.
        taxonomy: the findings that can be labels.
        single: True keeps only studies with exactly one disease, apart from implied ones, as their only label.
    """
    own = taxonomy.of("chest_xray")
    names = {f.labels["mimic-cxr"]: f.name for f in own if "mimic-cxr" in f.labels}
    implies = {f.name: f.implies for f in own}
    by_mark: dict[str, set[str]] = {"+": set(), "-": set(), "?": set(), " ": set()}
    for column, mark in zip(COLUMNS, marks, strict=True):
        if column not in _NO_DISEASE:
            by_mark[mark].add(column)
    doubt = by_mark["?"]
    present = {names.get(column, column) for column in by_mark["+"]}
    if marks[COLUMNS.index(_NORMAL)] == "+":
        if present or doubt:
            return StudyLabels((), left_out="No Finding and a finding at once")
        return StudyLabels((names[_NORMAL],))
    if not present:
        return StudyLabels((), left_out="no finding present, and not labelled No Finding")
    notes = [f"uncertain in the report, not counted: {', '.join(sorted(doubt))}"] if doubt else []
    implied = {name for finding in present for name in implies.get(finding, ())}
    if single:
        alone = present - implied
        if len(alone) != 1 or {names.get(column, column) for column in doubt} - implied - present:
            return StudyLabels((), left_out="not exactly one disease (--set selection=single)")
        return StudyLabels(tuple(alone), "; ".join(notes))
    if implied - present:
        notes.append(f"implied, not mentioned: {', '.join(sorted(implied - present))}")
    labels = tuple(finding.name for finding in own if finding.name in present | implied)
    return StudyLabels(labels, "; ".join(notes))
