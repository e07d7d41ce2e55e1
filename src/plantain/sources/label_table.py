"""Labels for files that carry none: from the folder a file lies in, or from a table labels.csv beside the files.

labels.csv (or labels.xlsx) has the columns `file` (relative to the source) and `labels` (parted by ";" or "|"), maybe
`group` (whose images must stay together, such as a patient) and `split`.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from plantain.findings import Taxonomy
from plantain.findings.taxonomy import suggest
from plantain.pixels.decode import one_line
from plantain.records import InputError
from plantain.sources.entries import Refused
from plantain.sources.tables import read_table

NAMES = ("labels.csv", "labels.xlsx")

NO_LABEL = "no label: the source has none"
"""Note of an image that neither table nor folder labels; it goes when a label is told later."""

_NO_FILE = "the table of labels names it, and no such picture is there"


@dataclass(frozen=True, slots=True)
class RowLabels:
    """What is told of one file."""

    labels: tuple[str, ...]
    group: str | None = None
    split: str = ""


class LabelTable:
    """Labels by file. A file that neither table nor folder labels has none, and no task is made of it.

    Attributes:
        path: the table; None where the source has none.
    """

    def __init__(self, root: Path, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self.path = next((root / name for name in NAMES if (root / name).is_file()), None)
        self._rows: dict[str, dict[str, str]] = {}
        if self.path is not None:
            for row in read_table(self.path, ["file", "labels"]):
                if self._rows.setdefault(_key(row["file"]), row) != row:
                    raise InputError(f"{self.path}: file {one_line(row['file'])}: two rows differ")

    def names(self, file: str) -> bool:
        """Whether the table has a row for a file, told relative to the source."""
        return _key(file) in self._rows

    def without(self, files: Iterable[str]) -> list[Refused]:
        """Rows that name none of these files, in the table's order; no picture is made of them."""
        there = {_key(file) for file in files}
        return [
            Refused(one_line(row["file"]), _NO_FILE) for key, row in self._rows.items() if key not in there
        ]

    def of(self, file: str, modality: str) -> RowLabels:
        """What is told of a file of that modality.

        Raises:
            InputError: a label that the modality does not have, or normal and another at once.
        """
        row = self._rows.get(_key(file))
        if row is None or self.path is None:
            folders = reversed(file.split("/")[:-1])
            found = next(filter(None, (self._taxonomy.match_label(modality, name) for name in folders)), None)
            return RowLabels((found.name,) if found else ())
        findings = []
        for word in filter(None, (word.strip() for word in re.split("[;|]", row["labels"]))):
            finding = self._taxonomy.match_label(modality, word)
            if finding is None:
                names = [finding.name for finding in self._taxonomy.of(modality)]
                raise InputError(
                    f"{file}: label {one_line(word)!r} of {self.path.name}: {suggest(word, names)}"
                )
            findings.append(finding)
        if len(findings) > 1 and any(finding.normal for finding in findings):
            raise InputError(f"{file}: {self.path.name} calls it normal and not")
        order = [finding.name for finding in self._taxonomy.of(modality)]
        labels = sorted({finding.name for finding in findings}, key=order.index)
        return RowLabels(tuple(labels), row.get("group") or None, row.get("split", ""))


def _key(file: str) -> str:
    """One spelling of a path: as a spreadsheet of another system may write it."""
    return posixpath.normpath(unicodedata.normalize("NFC", file).replace("\\", "/"))
