"""Labels for files that carry none: from the folder a file lies in, or from a table labels.csv beside the files.

labels.csv has the columns `file` (relative to the source) and `labels` (parted by ";"), maybe `group` and `split`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plantain.findings import Taxonomy
from plantain.findings.taxonomy import suggest
from plantain.pixels.decode import one_line
from plantain.records import InputError
from plantain.sources.tables import read_table

NAME = "labels.csv"


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of one file."""

    labels: tuple[str, ...]
    group: str | None = None
    split: str = ""


class LabelTable:
    """Labels by file. A file that neither table nor folder labels has none, and no task is made of it."""

    def __init__(self, root: Path, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self._path = root / NAME
        self._rows: dict[str, dict[str, str]] = {}
        if self._path.is_file():
            for row in read_table(self._path, ["file", "labels"]):
                if self._rows.setdefault(row["file"], row) != row:
                    raise InputError(f"{self._path}: file {one_line(row['file'])}: two rows differ")

    def of(self, file: str, modality: str) -> Told:
        """What is told of a file of that modality.

        Raises:
            InputError: a label that the modality does not have, or normal and another at once.
        """
        row = self._rows.get(file)
        if row is None:
            folders = reversed(file.split("/")[:-1])
            found = next(filter(None, (self._taxonomy.match_label(modality, name) for name in folders)), None)
            return Told((found.name,) if found else ())
        findings = []
        for word in filter(None, (word.strip() for word in row["labels"].split(";"))):
            finding = self._taxonomy.match_label(modality, word)
            if finding is None:
                names = [finding.name for finding in self._taxonomy.of(modality)]
                raise InputError(f"{file}: label {one_line(word)!r} of {NAME}: {suggest(word, names)}")
            findings.append(finding)
        if len(findings) > 1 and any(finding.normal for finding in findings):
            raise InputError(f"{file}: {NAME} calls it normal and not")
        order = [finding.name for finding in self._taxonomy.of(modality)]
        labels = sorted({finding.name for finding in findings}, key=order.index)
        return Told(tuple(labels), row.get("group") or None, row.get("split", ""))
