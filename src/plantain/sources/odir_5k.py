"""ODIR-5K: fundus photographs of both eyes of 5,000 patients, with either of the published tables.

`full_df.csv` has one row per eye, with that eye's `labels`; its letters N to O are the *patient's*. The annotation
sheet (data.xlsx) has one row per patient: letters of the patient, and free keywords for each eye, separated by commas
of either width, some of which describe the image's quality and not the eye.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from plantain.files.tables import Table, has_columns, read_table
from plantain.findings import Taxonomy
from plantain.pixels.decode import one_line
from plantain.records import InputError, SourceImage
from plantain.sources.registry import (
    UNREAD,
    Found,
    LeftOut,
    Refused,
    Setting,
    SourceEntry,
    SourceKind,
    SourceOptions,
    resolve_settings,
    shown,
    walk,
)

LETTERS = "NDGCAHMO"
"""Normal, diabetes, glaucoma, cataract, AMD, hypertension, myopia, other."""

DATASET = "ODIR-5K"

SETTINGS = {"quality": Setting("usable", ("usable", "any"))}
"""usable leaves out eyes whose image does not show the fundus well."""

UNUSABLE = frozenset(
    {
        "no fundus image",
        "anterior segment image",
        "low image quality",
        "optic disk photographically invisible",
    }
)
BLEMISHED = frozenset({"lens dust", "image offset"})

_EYE_COLUMNS = ("ID", "Left-Diagnostic Keywords", "Right-Diagnostic Keywords", "labels", "filename")
_PATIENT_COLUMNS = (
    *("ID", "Left-Fundus", "Right-Fundus", "Left-Diagnostic Keywords", "Right-Diagnostic Keywords"),
    *LETTERS,
)
_TABLES = {"eye": _EYE_COLUMNS, "keywords": _PATIENT_COLUMNS}
_NAME = re.compile(r"(?i)(\d{1,9})_(left|right)\.jpe?g")

_TESTING = re.compile(r"\btest(ing)? (images|set)\b")
"""Folders without public labels: Testing Images, ODIR-5K_Testing_Images, Off-site Test Set."""

_WORDS = (
    ("N", re.compile(r"^normal fundus$")),
    ("D", re.compile(r"diabetic|non-? ?proliferative retinopathy|^proliferative retinopathy")),
    ("H", re.compile(r"hypertensive retinopathy")),
    ("G", re.compile(r"glaucoma")),
    ("C", re.compile(r"cataract")),
    ("A", re.compile(r"macular degeneration")),
    ("M", re.compile(r"myop")),
)
"""Letters by the keywords of the published sheet. A suspected disease counts as that disease, as in its own letters."""


@dataclass(frozen=True, slots=True)
class _Eye:
    """One eye as a row of a table describes it; `fault` and `field` say why it cannot be used."""

    line: int
    file: str
    key: str = ""
    letters: str = ""
    keywords: tuple[str, ...] = ()
    fault: str = ""
    field: str = ""


def split_keywords(text: str) -> tuple[str, ...]:
    """Split an eye's keywords at "," and at the full-width "，"; return them in lower case."""
    words = (re.sub(r"\s+", " ", word).strip().lower() for word in re.split(r"[,，]", text))
    return tuple(word for word in words if word)


def letters_of(keywords: tuple[str, ...]) -> str:
    """Return the label letters of an eye's keywords, in the order N, D, G, C, A, H, M, O; "N" (normal) only if alone.

    Quality keywords have no letter.
    """
    found = set()
    for word in keywords:
        if word not in UNUSABLE and word not in BLEMISHED:
            found |= {letter for letter, pattern in _WORDS if pattern.search(word)} or {"O"}
    if len(found) > 1:
        found.discard("N")
    return "".join(letter for letter in LETTERS if letter in found)


class OdirReader:
    """Reader of the eyes of ODIR-5K with a known label; id `<patient>_<left|right>`, group the patient."""

    def __init__(self, options: SourceOptions, taxonomy: Taxonomy) -> None:
        if options.modality not in ("", "fundus"):
            raise InputError(f"--modality {options.modality}: odir-5k is fundus")
        self._licence = options.licence
        self._settings = resolve_settings("odir-5k", SETTINGS, options.settings)
        self._root = options.path
        self._names = {
            finding.labels["odir-5k"]: finding.name
            for finding in taxonomy.of("fundus")
            if "odir-5k" in finding.labels
        }
        self._normal = taxonomy.normal("fundus").name
        files = list(walk(options.path))
        self._images, self._unlabelled = self._find_images(files)
        self._table, shape = self._find_table(files)
        table = read_table(self._table).require(*_TABLES[shape])
        self._eyes = list(_eye_rows(table) if shape == "eye" else _patient_rows(table))

    def count(self) -> int:
        """Return the number of eyes in the table plus images without a row."""
        return len(self._eyes) + len(self._without_row())

    def scan(self) -> Iterator[Found]:
        """Yield eyes in the table's order, then images without a row, then how many have no usable label."""
        seen: dict[str, _Eye] = {}
        for eye in self._eyes:
            first = seen.setdefault(eye.key, eye) if eye.key else eye
            if eye.fault:
                yield Refused(self._where(eye), eye.fault, row=eye.line, field=eye.field)
            elif first is not eye:
                same = first.letters == eye.letters
                why = "has two rows" if same else "has two rows with different labels; the first counts"
                why = f"the same eye {why}"
                yield Refused(self._where(eye), why, row=eye.line, field="" if same else "labels")
            else:
                yield self._entry(eye)
        for name in self._without_row():
            yield Refused(name, f"no row of {self._table.name} names it, so it has no label")
        if self._unlabelled:
            yield LeftOut("testing images: their labels are not public", self._unlabelled)

    def _entry(self, eye: _Eye) -> SourceEntry | Refused:
        name, path = self._where(eye), self._images.get(eye.key)
        if path is None:
            return Refused(name, f"{self._table.name} names this image, but it is not there", row=eye.line)
        flags = [word for word in eye.keywords if word in UNUSABLE or word in BLEMISHED]
        bad = [word for word in flags if word in UNUSABLE and self._settings["quality"] == "usable"]
        labels = tuple(self._names[letter] for letter in eye.letters if letter in self._names)
        keyed = [self._names[c] for c in letters_of(eye.keywords) if c in self._names]
        why = ""
        if bad:
            why = f"quality keyword: {', '.join(bad)} (--set quality=any takes it)"
        elif not labels:
            words = one_line(", ".join(eye.keywords)) or "no keyword"
            why = f"no finding that plantain edits is seen in this eye: {words}"
        elif self._normal in labels and (eye.letters != "N" or set(keyed) - {self._normal}):
            why = f"labelled normal, but its keywords say {', '.join(eye.keywords)}"
        if why:
            return Refused(name, why, row=eye.line)
        more = [label for label in keyed if label not in labels]
        notes = [f"quality: {', '.join(flags)}"] if flags else []
        notes += [f"keywords also name {', '.join(more)}"] if more else []
        notes += ["other disease as well"] if "O" in eye.letters else []
        patient, _, side = eye.key.partition("_")
        image = SourceImage(
            id=eye.key,
            dataset=DATASET,
            modality="fundus",
            labels=labels,
            licence=self._licence,
            **UNREAD,
            group=f"patient:{patient}",
            split="train",
            laterality=side,
            note="; ".join(notes),
        )
        return SourceEntry(image, path, name)

    def _where(self, eye: _Eye) -> str:
        path = self._images.get(eye.key)
        return shown(path, self._root) if path else one_line(eye.file)

    def _without_row(self) -> list[str]:
        named = {eye.key for eye in self._eyes}
        return [shown(path, self._root) for key, path in self._images.items() if key not in named]

    def _find_images(self, files: list[Path]) -> tuple[dict[str, Path], int]:
        """Return images by "<patient>_<side>", original ones if there are any, and the number of testing images."""
        original: dict[str, Path] = {}
        preprocessed: dict[str, Path] = {}
        testing = 0
        for path in files:
            match = _NAME.fullmatch(path.name)
            folders = {part.lower().replace("_", " ") for part in path.relative_to(self._root).parts[:-1]}
            if match is None:
                continue
            if any(_TESTING.search(folder) for folder in folders):
                testing += 1
                continue
            found = preprocessed if "preprocessed images" in folders else original
            found.setdefault(f"{int(match[1])}_{match[2].lower()}", path)
        if not original and not preprocessed:
            raise InputError(f"{self._root}: no image named like 0_left.jpg in it")
        return original or preprocessed, testing

    def _find_table(self, files: list[Path]) -> tuple[Path, str]:
        tables = [path for path in files if path.suffix.lower() in (".csv", ".xlsx")]
        tables.sort(key=lambda path: len(PurePosixPath(shown(path, self._root)).parts))
        for shape, columns in _TABLES.items():
            for path in tables:
                if has_columns(path, *columns):
                    return path, shape
        raise InputError(
            f"{self._root}: no table with the labels; full_df.csv (columns {', '.join(_EYE_COLUMNS)}) or the "
            "annotation sheet data.xlsx is needed"
        )


def _eye_rows(table: Table) -> Iterator[_Eye]:
    """Yield the eyes of full_df.csv: of `filename`, with the label of `labels`; `filepath` is a dead path."""
    for line, row, fault in table.rows:
        file = row["filename"]
        match = _NAME.fullmatch(file)
        if fault or match is None:
            why = (fault, "") if fault else ("not like 0_left.jpg", "filename")
            yield _Eye(line, file or f"row of ID {row['ID']}", fault=why[0], field=why[1])
            continue
        side, patient = match[2].lower(), match[1].lstrip("0")
        listed = re.fullmatch(r"\[\s*(.*?)\s*\]", row["labels"])
        letters = [word.strip("'\" ") for word in listed[1].split(",")] if listed else [row["labels"]]
        known = "".join(letter for letter in LETTERS if letter in letters)
        field = ""
        if not known or not set(letters) <= set(LETTERS):
            fault, field = f"{one_line(row['labels'])!r} is not a letter", "labels"
        elif row["ID"] and row["ID"].removesuffix(".0").lstrip("0") != patient:
            fault, field = f"belongs to another patient than ID {one_line(row['ID'])}", "filename"
        keywords = split_keywords(row[f"{side.title()}-Diagnostic Keywords"])
        yield _Eye(line, file, f"{int(match[1])}_{side}", known, keywords, fault, field)


def _patient_rows(table: Table) -> Iterator[_Eye]:
    """Yield the eyes of the annotation sheet: their letters come from the keywords, and must be among the patient's."""
    for line, row, fault in table.rows:
        patient = {letter for letter in LETTERS if row[letter].lower() in ("1", "1.0", "true")}
        for side in ("left", "right"):
            field = f"{side.title()}-Fundus"
            match = _NAME.fullmatch(row[field])
            if fault or match is None or match[2].lower() != side:
                why = (fault, "") if fault else (f"not like 0_{side}.jpg", field)
                yield _Eye(line, row[field] or f"row of ID {row['ID']}", fault=why[0], field=why[1])
                continue
            field = f"{side.title()}-Diagnostic Keywords"
            keywords = split_keywords(row[field])
            letters = letters_of(keywords)
            stray = [letter for letter in letters if letter not in patient and letter not in "NO"]
            words = one_line(", ".join(keywords))
            why_not = f"({words}) mean {', '.join(stray)}, which the patient's letters deny" if stray else ""
            key = f"{int(match[1])}_{side}"
            yield _Eye(line, match[0], key, letters, keywords, why_not, field if stray else "")


KIND = SourceKind(
    "ODIR-5K, fundus photographs: full_df.csv, or the annotation sheet data.xlsx, and the training images",
    OdirReader,
    DATASET,
    settings=SETTINGS,
)
