"""Labels for files that carry none: from the folder a file lies in, or from a table labels.csv beside the files.

The table (labels.csv, .tsv or .xlsx in the source, or any that a person names) says which files are labelled how
(several labels parted by ";" or "|"), maybe whose they are (the group: a patient, whose images must stay together), in
which split, and of a brain slice its sequence and plane. Its columns may be called as published datasets call them, see
`columns`.
"""

from __future__ import annotations

import posixpath
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product, repeat
from pathlib import Path

from plantain.files.opening import check_inside
from plantain.findings import Taxonomy
from plantain.pixels.decode import one_line
from plantain.records import InputError
from plantain.records.suggestions import suggest
from plantain.sources.brain_slice import PLANES, STATED, UNKNOWN
from plantain.sources.columns import OF_SLICES, candidates, choose, patient_in_path, spelling, stem
from plantain.sources.entries import Refused, SourceOptions, TableRead
from plantain.sources.tables import open_table

NAMES = ("labels.csv", "labels.tsv", "labels.xlsx")

NO_LABEL = "no label: the source has none"
"""Note of an image that neither table nor folder labels; it goes when a label is told later."""

MARKS = {"1": True, "1.0": True, "true": True, "yes": True, "y": True, "x": True} | dict.fromkeys(
    ("", "0", "0.0", "false", "no", "n", "-", "nan", "na", "-1", "-1.0"), False
)
"""What stands in the columns of a table that has one for each label. What nobody is sure of (-1) is no label."""

_NO_FILE = "the table of labels names it, and no such picture is there"


@dataclass(frozen=True, slots=True)
class RowLabels:
    """What is told of one file; "" where nothing is."""

    labels: tuple[str, ...]
    group: str | None = None
    split: str = ""
    sequence: str = ""
    plane: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    """The cells of one file that are read; `labels` is None where the table has no such column."""

    file: str
    labels: str | None
    group: str | None
    split: str
    sequence: str
    plane: str


class LabelTable:
    """What a table tells of files. A file that neither table nor folder labels has none, and no task is made of it.

    Attributes:
        path: the table; None where the source has none.
        read: how its columns were understood; None without a table.
    """

    def __init__(
        self,
        root: Path,
        taxonomy: Taxonomy,
        files: Iterable[str],
        options: SourceOptions,
        of_slices: Collection[str] = OF_SLICES,
    ) -> None:
        """Reads the table.

        Args:
            root: the source; the table may lie in it.
            taxonomy: whose labels.
            files: those that are there, relative to the source.
            options: which table and columns a person named.
            of_slices: what it may tell of brain slices.

        Raises:
            InputError: the table cannot be read, tells no files, or tells one file twice and differently; or a column
                was named, and there is no table.
        """
        self._taxonomy = taxonomy
        self._modalities = (options.modality,) if options.modality else taxonomy.modalities
        self._of_slices = of_slices if "brain_mri" in self._modalities else ()
        self.path = _beside(root) if options.table is None else _named(options.table, root)
        self.read: TableRead | None = None
        self._named: list[str] = []
        self._rows: dict[str, _Row] = {}
        self._row_of: dict[str, _Row] = {}
        if self.path is not None:
            self._read(self.path, files, options.columns)
        elif options.columns:
            raise InputError(
                f"--column: no table to read it from: {root} holds no {NAMES[0]}; name one with --table"
            )

    def _read(self, path: Path, files: Iterable[str], asked: Mapping[str, str]) -> None:
        header, rows = open_table(path)
        may = candidates(header, asked, path, self._of_slices)
        # A published table may have a million rows: only what may be needed of them is held.
        cells: dict[str, list[str]] = {name: [] for names in may.values() for name in names}
        hot = [] if may["labels"] else [name for name in header if name not in cells and self._is_label(name)]
        cells |= {name: [] for name in hot}
        kept_once = {*hot} | {name for role, names in may.items() if role != "file" for name in names}
        for row in rows:
            for name, column in cells.items():
                column.append(sys.intern(row[name]) if name in kept_once else row[name])
        keys = {_key(file): None for file in files}
        stems = {stem(key) for key in keys}
        columns = choose(header, may, cells, stems, asked, path)
        self._named = cells[columns.file]
        hot = [name for name in hot if {cell.lower() for cell in set(cells[name])} <= MARKS.keys()]
        columns = columns.with_one_for_each_label(hot)
        label_cells = map(_marked, repeat(hot), zip(*(cells[name] for name in hot), strict=True))
        optional = (columns.group, columns.split, columns.sequence, columns.plane)
        column_cells = [
            self._named,
            label_cells if hot else repeat(None) if columns.labels is None else cells[columns.labels],
            *(repeat(None) if name is None else cells[name] for name in optional),
        ]
        for file, labels, group, *rest in zip(*column_cells, strict=False):
            if not file or stem(key := _key(file)) not in stems:
                continue
            row_made = _Row(file, labels, group or None, *(cell or "" for cell in rest))
            if self._rows.setdefault(key, row_made) != row_made:
                raise InputError(f"{path}: file {one_line(row_made.file)}: two rows differ")
        self._row_of = {file: self._rows[row] for row, file in _pairs(self._rows, keys)}
        groups = [group for file in self._row_of if (group := self._group(file)) is not None]
        self.read = TableRead(path.name, columns, len(self._row_of), len(groups), len(set(groups)))

    def _is_label(self, column: str) -> bool:
        """Whether a column is called as a label is, so that its cells may mark the files that have it."""
        return any(self._taxonomy.match_label(modality, column) for modality in self._modalities)

    def names(self, file: str) -> bool:
        """Whether the table has a row for a file, told relative to the source."""
        return _key(file) in self._row_of

    def without(self, files: Iterable[str]) -> list[Refused]:
        """Rows that name none of these files, in the table's order; no picture is made of them."""
        there = {row.file for file in files if (row := self._row_of.get(_key(file))) is not None}
        named = dict.fromkeys(filter(None, self._named))
        return [Refused(one_line(file), _NO_FILE) for file in named if file not in there]

    def of(self, file: str, modality: str) -> RowLabels:
        """What is told of a file of that modality.

        Raises:
            InputError: a label that the modality does not have, or normal and another at once; a sequence or plane
                that no brain slice has.
        """
        row = self._row_of.get(_key(file))
        if row is None or row.labels is None or self.path is None:
            folders = reversed(file.split("/")[:-1])
            found = next(filter(None, (self._taxonomy.match_label(modality, name) for name in folders)), None)
            named = RowLabels((found.name,) if found else ())
            return named if row is None else self._with_rest(named, row, file, modality)
        own = self._taxonomy.of(modality)
        findings = []
        for word in _words(row.labels):
            finding = self._taxonomy.match_label(modality, word)
            if finding is None and self.read is not None and self.read.columns.marked:
                continue  # a column that is a label of another modality
            if finding is None:
                hint = suggest(word, [finding.name for finding in own])
                raise InputError(f"{file}: label {one_line(word)!r} of {self.path.name}: {hint}")
            findings.append(finding)
        if len(findings) > 1 and any(finding.normal for finding in findings):
            raise InputError(f"{file}: {self.path.name} calls it normal and not")
        order = [finding.name for finding in own]
        labels = tuple(sorted({finding.name for finding in findings}, key=order.index))
        return self._with_rest(RowLabels(labels), row, file, modality)

    def _with_rest(self, named: RowLabels, row: _Row, file: str, modality: str) -> RowLabels:
        """With what a row tells beside labels."""
        told = replace(named, group=self._group(file), split=row.split)
        if modality != "brain_mri":
            return told
        return replace(
            told,
            sequence=self._known("sequence", row.sequence, STATED, file),
            plane=self._known("plane", row.plane, PLANES, file),
        )

    def _known(self, role: str, word: str, known: Sequence[str], file: str) -> str:
        """A word of the table as we write it; "" where the cell is empty, or says "unknown"."""
        if word.casefold() in ("", UNKNOWN):
            return ""
        for one in known:
            if one.casefold() == word.casefold():
                return one
        table = self.path.name if self.path is not None else ""
        raise InputError(f"{file}: {role} {one_line(word)!r} of {table}: {suggest(word, known)}")

    def _group(self, file: str) -> str | None:
        """The file's group by its row, else the patient by whom a folder of its path is called."""
        row = self._row_of[_key(file)]
        return row.group or patient_in_path(row.file) or patient_in_path(file)


def _marked(columns: Sequence[str], marks: Sequence[str]) -> str | None:
    """The labels of a row whose columns are the labels, as a cell of them would say it; None where none is marked."""
    return ";".join(name for name, mark in zip(columns, marks, strict=True) if MARKS[mark.lower()]) or None


def _named(table: Path, root: Path) -> Path:
    """The table that a person named: from where they are, or in the source, as a refused file is told."""
    return root / table if not table.exists() and (root / table).is_file() else table


def _beside(root: Path) -> Path | None:
    """The table in a source, however its name is capitalised."""
    there = sorted(path for path in root.iterdir() if path.name.lower() in NAMES and path.is_file())
    found = min(there, key=lambda path: NAMES.index(path.name.lower()), default=None)
    if found is not None:
        check_inside(root, found)
    return found


def _words(labels: str) -> list[str]:
    """The labels of a cell: parted by ";" or "|"; a list as programs print it, ['edema', 'normal'], by commas."""
    listed = re.fullmatch(r"\[(.*)\]", labels)
    words = re.split("[;|,]", listed[1]) if listed else re.split("[;|]", labels)
    return [word for word in (word.strip().strip("'\"") for word in words) if word]


def _key(file: str) -> str:
    """One spelling of a path: as a spreadsheet of another system may write it."""
    return posixpath.normpath(unicodedata.normalize("NFC", file).replace("\\", "/"))


def _pairs(rows: Collection[str], files: Collection[str]) -> Iterator[tuple[str, str]]:
    """Which row means which file: by the path; else where one ends with the other, and nothing else could be meant.

    So a row may leave out folders or the ending, or begin with folders that are above the source.
    """
    yield from ((key, key) for key in rows if key in files)
    left = _by_spelling(key for key in rows if key not in files)
    free = _by_spelling(file for file in files if file not in rows)
    found = [
        pair for path in left for tail in _tails(path) for pair in product(left[path], free.get(tail, ()))
    ]
    # Paths of one length were compared above.
    found += [
        pair for path in free for tail in _tails(path[1:]) for pair in product(left.get(tail, ()), free[path])
    ]
    by_row, by_file = Counter(key for key, _ in found), Counter(file for _, file in found)
    yield from (pair for pair in found if by_row[pair[0]] == by_file[pair[1]] == 1)


def _by_spelling(paths: Iterable[str]) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        found.setdefault(spelling(path), []).append(path)
    return found


def _tails(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return (path[start:] for start in range(len(path)))
