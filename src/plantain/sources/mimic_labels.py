"""What a MIMIC-CXR report labeller says of a study, and which findings of the taxonomy that makes.

CheXpert and NegBio write 1 (present), 0 (said to be absent), -1 (uncertain) or nothing (not mentioned, which is not
absent). "No Finding" is 1 or nothing. Labels are the study's; every image of it inherits them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from plantain.findings import Taxonomy
from plantain.pixels.decode import one_line
from plantain.records import InputError
from plantain.sources.tables import Row, read_table

COLUMNS = (
    *("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum", "Fracture"),
    *(
        "Lung Lesion",
        "Lung Opacity",
        "No Finding",
        "Pleural Effusion",
        "Pleural Other",
        "Pneumonia",
        "Pneumothorax",
    ),
    "Support Devices",
)
"""The published labels; read by header. The radiologists' file is said to write "Airspace Opacity" for one of them."""

_ALIASES = {"Airspace Opacity": "Lung Opacity"}
_CODES = {"": " ", "1": "+", "1.0": "+", "0": "-", "0.0": "-", "-1": "?", "-1.0": "?"}
_NORMAL = "No Finding"
_NO_DISEASE = frozenset({_NORMAL, "Support Devices"})

Marks = str
"""One character per label of `COLUMNS`: "+", "-", "?" or " ". A study per row of 227,000 must stay small."""


@dataclass(frozen=True, slots=True)
class StudyLabels:
    """What a study's marks amount to.

    Attributes:
        labels: findings present, in the order of the taxonomy; empty where the study is left out.
        note: what a reader must know of them.
        left_out: why there are none, "" otherwise.
    """

    labels: tuple[str, ...]
    note: str = ""
    left_out: str = ""


def read_marks(path: Path) -> dict[str, Marks]:
    """Every study's marks by study id.

    Raises:
        InputError: a column is missing, a value is none of the four, or two rows of a study differ.
    """
    studies: dict[str, Marks] = {}
    for number, row in enumerate(_renamed(path), 2):
        marks = "".join(_CODES.get(row[column], "!") for column in COLUMNS)
        if "!" in marks:
            column = COLUMNS[marks.index("!")]
            value = one_line(row[column])
            raise InputError(f"{path}: row {number}: {column}: {value!r} is none of 1, 0, -1 and blank")
        study = row["study_id"].removesuffix(".0").removeprefix("s")
        if studies.setdefault(sys.intern(study), sys.intern(marks)) != marks:
            raise InputError(
                f"{path}: row {number}: study_id {one_line(study)}: two rows differ in their labels"
            )
    return studies


def _renamed(path: Path) -> Iterator[Row]:
    checked = False
    for row in read_table(path, ["study_id"]):
        row = {_ALIASES.get(name, name): value for name, value in row.items()}
        missing = [] if checked else [column for column in COLUMNS if column not in row]
        if missing:
            raise InputError(f"{path}: column {missing[0]!r}: is missing")
        checked = True
        yield row


class LabelRule:
    """Turns marks into labels by the rules that a person chose.

    Args:
        uncertain: ignore: an uncertain finding is no label, and keeps a study from counting as single-disease;
            positive or negative: it counts as that; exclude: its study is left out.
        single: keep studies with exactly one disease, implied ones aside, labelled with that one alone.
    """

    def __init__(self, taxonomy: Taxonomy, uncertain: str, *, single: bool) -> None:
        found = [f for f in taxonomy.of("chest_xray") if "mimic-cxr" in f.labels]
        self._names: Mapping[str, str] = {f.labels["mimic-cxr"]: f.name for f in found}
        self._order = [f.name for f in taxonomy.of("chest_xray")]
        self._implies = {f.name: f.implies for f in taxonomy.of("chest_xray")}
        self._uncertain, self._single = uncertain, single

    def apply(self, marks: Marks) -> StudyLabels:
        """The labels of a study with these marks."""
        by_mark: dict[str, set[str]] = {"+": set(), "-": set(), "?": set(), " ": set()}
        for column, mark in zip(COLUMNS, marks, strict=True):
            if column not in _NO_DISEASE:
                by_mark[mark].add(column)
        doubt = by_mark["?"]
        if doubt and self._uncertain == "exclude":
            return StudyLabels((), left_out="an uncertain finding (--set uncertain=exclude)")
        present = {
            self._names.get(c, c) for c in by_mark["+"] | (doubt if self._uncertain == "positive" else set())
        }
        if marks[COLUMNS.index(_NORMAL)] == "+":
            if present or (doubt and self._uncertain == "ignore"):
                return StudyLabels((), left_out="No Finding and a finding at once")
            return StudyLabels((self._names[_NORMAL],))
        if not present:
            return StudyLabels((), left_out="no finding present, and not labelled No Finding")
        notes = []
        if doubt and self._uncertain != "negative":
            how = "counted as present" if self._uncertain == "positive" else "not counted"
            notes.append(f"uncertain in the report, {how}: {', '.join(sorted(doubt))}")
        if self._single:
            return self._one(present, doubt, notes)
        implied = {name for finding in present for name in self._implies.get(finding, ())} - present
        if implied:
            notes.append(f"implied, not mentioned: {', '.join(sorted(implied))}")
        labels = tuple(name for name in self._order if name in present | implied)
        return StudyLabels(labels, "; ".join(notes))

    def _one(self, present: set[str], doubt: set[str], notes: list[str]) -> StudyLabels:
        implied = {name for finding in present for name in self._implies.get(finding, ())}
        alone = present - implied
        others = (
            {self._names.get(c, c) for c in doubt} - implied - present
            if self._uncertain == "ignore"
            else set()
        )
        if len(alone) != 1 or others:
            return StudyLabels((), left_out="not exactly one disease (--set selection=single)")
        return StudyLabels(tuple(alone), "; ".join(notes))
