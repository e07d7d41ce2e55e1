"""Marks of a MIMIC-CXR report labeller, and the findings of the taxonomy that they amount to.

CheXpert and NegBio write 1 (present), 0 (stated to be absent), -1 (uncertain) or nothing (not mentioned, which is not
absent). "No Finding" is 1 or nothing. Labels are the study's; every image of it inherits them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from plantain.files.tables import read_table
from plantain.findings import Taxonomy
from plantain.pixels.decode import one_line
from plantain.sources.entries import Refused

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
    """A study's labels.

    Attributes:
        labels: findings present, in the order of the taxonomy; empty if the study is left out.
        note: limits of these labels.
        left_out: why there are none, "" otherwise.
    """

    labels: tuple[str, ...]
    note: str = ""
    left_out: str = ""


def read_marks(path: Path) -> tuple[dict[str, Marks], list[Refused]]:
    """Return every study's marks by study id, and the rows that cannot be used. Raise InputError without a column."""
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


class LabelRule:
    """Turns marks into labels.

    Args:
        taxonomy: of the labels.
        uncertain: ignore: an uncertain finding is no label, and keeps a study from counting as single-disease;
            positive or negative: it counts as that; exclude: its study is left out.
        single: keep studies with exactly one disease, implied ones aside, labelled with that one alone.
    """

    def __init__(self, taxonomy: Taxonomy, uncertain: str, *, single: bool) -> None:
        own = taxonomy.of("chest_xray")
        self._names = {f.labels["mimic-cxr"]: f.name for f in own if "mimic-cxr" in f.labels}
        self._order = [f.name for f in own]
        self._implies = {f.name: f.implies for f in own}
        self._uncertain, self._single = uncertain, single

    def apply(self, marks: Marks) -> StudyLabels:
        """Return the labels of a study with these marks."""
        by_mark: dict[str, set[str]] = {"+": set(), "-": set(), "?": set(), " ": set()}
        for column, mark in zip(COLUMNS, marks, strict=True):
            if column not in _NO_DISEASE:
                by_mark[mark].add(column)
        doubt = by_mark["?"]
        if doubt and self._uncertain == "exclude":
            return StudyLabels((), left_out="an uncertain finding (--set uncertain=exclude)")
        counted = by_mark["+"] | (doubt if self._uncertain == "positive" else set())
        present = {self._names.get(column, column) for column in counted}
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
        implied = {name for finding in present for name in self._implies.get(finding, ())}
        if self._single:
            alone, others = present - implied, set[str]()
            if self._uncertain == "ignore":
                others = {self._names.get(column, column) for column in doubt} - implied - present
            if len(alone) != 1 or others:
                return StudyLabels((), left_out="not exactly one disease (--set selection=single)")
            return StudyLabels(tuple(alone), "; ".join(notes))
        if implied - present:
            notes.append(f"implied, not mentioned: {', '.join(sorted(implied - present))}")
        labels = tuple(name for name in self._order if name in present | implied)
        return StudyLabels(labels, "; ".join(notes))
