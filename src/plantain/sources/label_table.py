"""Labels for files that have none: from the folder of a file, or from a table labels.csv in the source.

The table (labels.csv, .tsv or .xlsx, or any that --table names) gives labels of files (several separated by ";" or "|",
or in several rows), and may give a group (the patient, whose images stay together), a split, and the sequence and plane
of brain slices. Its columns may be named as published datasets name them, see `columns`.
"""

from __future__ import annotations

import posixpath
import re
import sys
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product, repeat
from pathlib import Path

from plantain.files.opening import check_inside
from plantain.files.tables import read_table, stated_cell
from plantain.findings import Taxonomy
from plantain.pixels.decode import one_line
from plantain.records import InputError
from plantain.records.messages import suggest
from plantain.sources.brain_slice import PLANES, STATED, UNKNOWN
from plantain.sources.columns import candidates, choose, is_placeholder, patient_in_path, spelling, stem
from plantain.sources.registry import BadRow, Found, Refused, SourceOptions, TableRead, shown, walk

NAMES = ("labels.csv", "labels.tsv", "labels.xlsx")

NO_LABEL = "no label: the source has none"
"""Note of an image that neither table nor folder labels, until a later ingest labels it."""

MASK = re.compile(
    r"(?i)(^|[^a-z])(masks?|[ad]?seg|segmentations?|label[-_ ]?maps?|ground[-_ ]?truths?)([-_ ]?\d+)?(\.[a-z]+)*(/|$)"
)
"""Paths of masks and label maps: x_mask.tif of TCGA-LGG, masks/x.png of the COVID-19 Radiography Database, BraTS."""

MARKS = dict.fromkeys(("1", "1.0", "true", "t", "yes", "y", "x", "+", "positive", "present"), True)
MARKS |= dict.fromkeys(
    ("", "0", "0.0", "false", "f", "no", "n", "-", "negative", "absent", "nan", "na", "-1", "-1.0"), False
)
"""Cells of a table with a column for each label. An uncertain finding (-1) is not a label."""

_NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]?\d+)?%?", re.IGNORECASE)
_NO_FILE = "the table of labels names it, and no such image is there"


@dataclass(frozen=True, slots=True)
class RowLabels:
    """Labels and further fields of one file.

    Attributes:
        labels: labels as in the table.
        group: patient or study; None if neither table nor path names one.
        split, sequence, plane: the dataset's split, the MR sequence and the slice's plane; "" if unknown.
    """

    labels: tuple[str, ...]
    group: str | None = None
    split: str = ""
    sequence: str = ""
    plane: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    """Cells of one file, of all its rows; `labels` is None where the table has no such column."""

    line: int
    file: str
    labels: str | None
    group: str
    split: str
    sequence: str
    plane: str


_FIELDS = ("group", "split", "sequence", "plane")


class LabelTable:
    """Look up labels of files in a table, or else in the names of their folders.

    Attributes:
        path: the table; None if the source has none.
        read: the roles of its columns; None without a table.
    """

    def __init__(self, root: Path, taxonomy: Taxonomy, files: Iterable[str], options: SourceOptions) -> None:
        """Read the table.

        Args:
            root: the source; the table may be in it.
            taxonomy: of the labels.
            files: of the source, relative to it.
            options: name table and columns.

        Raises:
            InputError: the table cannot be read or names no files; or a column is named without a table.
        """
        self._taxonomy = taxonomy
        self._modalities = (options.modality,) if options.modality else taxonomy.modalities
        self.path = _table_in(root) if options.table is None else _named(options.table, root)
        self.read: TableRead | None = None
        self._bad: list[Refused] = []
        self._files: Sequence[str] = ()
        self._lines = array("I")
        self._row_of: dict[str, _Row] = {}
        if self.path is not None:
            self._read(self.path, files, options.columns)
        elif options.columns:
            raise InputError(
                f"--column: no table to read it from: {root} has no {NAMES[0]}; name one with --table"
            )

    def _read(self, path: Path, files: Iterable[str], asked: Mapping[str, str]) -> None:
        table = read_table(
            path, lambda name: name in asked.values() or bool(candidates([name], {}, path, False)["file"])
        )
        header = table.columns
        may = candidates(header, asked, path, "brain_mri" in self._modalities)
        # A published table may have a million rows: only the columns that may be needed are kept.
        cells: dict[str, list[str]] = {name: [] for names in may.values() for name in names}
        marks = (
            [] if may["labels"] else [name for name in header if name not in cells and self._is_label(name)]
        )
        cells |= {name: [] for name in marks}
        repeated = {*marks} | {name for role, names in may.items() if role != "file" for name in names}
        for line, row, fault in table.rows:
            if fault:
                self._bad.append(Refused(path.name, fault, row=line))
                continue
            self._lines.append(line)
            for name, column in cells.items():
                cell = row.get(name, "")
                column.append(sys.intern(cell) if name in repeated else cell)
        keys = {_key(file): None for file in files}
        stems = {stem(key) for key in keys}
        columns = choose(header, may, cells, stems, asked, path)
        self._files = cells[columns.file]
        marks = [name for name in marks if _are_marks(cells[name])]
        columns = replace(
            columns, marked=tuple(marks), unused=tuple(n for n in columns.unused if n not in marks)
        )
        marked = map(_marked, repeat(marks), zip(*(cells[name] for name in marks), strict=True))
        labels = marked if marks else repeat(None) if columns.labels is None else cells[columns.labels]
        used = [getattr(columns, field) for field in _FIELDS]
        stated: list[Iterable[str]] = [
            repeat("") if name is None else map(stated_cell, cells[name]) for name in used
        ]
        if columns.patient:
            stated[0] = (
                "" if is_placeholder(cell) and not re.search(r"\d", cell) else cell for cell in stated[0]
            )
        rows: dict[str, _Row] = {}
        for line, file, label, *rest in zip(self._lines, self._files, labels, *stated, strict=False):
            if file and stem(key := _key(file)) in stems:
                row_made = _Row(line, file, label, *rest)
                rows[key] = self._joined(rows[key], row_made) if key in rows else row_made
        self._row_of = {file: rows[row] for row, file in _pairs(rows, keys)}
        groups = [group for file in self._row_of if (group := self._group(file)) is not None]
        self.read = TableRead(path.name, columns, len(self._row_of), len(groups), len(set(groups)))

    def _joined(self, first: _Row, more: _Row) -> _Row:
        """Return two rows of one file as one, with all their labels; a row that contradicts the first is rejected."""
        fuller = []
        for field in _FIELDS:
            before, now = getattr(first, field), getattr(more, field)
            if before and now and before != now:
                why = f"{field} {one_line(now)!r} in row {more.line}, but {one_line(before)!r} in row {first.line}"
                self._bad.append(Refused(one_line(more.file), f"{why}, which counts", 0, more.line, field))
                return first
            fuller.append(before or now)
        labels = dict.fromkeys(label for label in (first.labels, more.labels) if label)
        return _Row(first.line, first.file, ";".join(labels) or first.labels, *fuller)

    def _is_label(self, column: str) -> bool:
        """Return True if a column is named like a label, so that its cells may mark the files that have it."""
        return any(self._taxonomy.match_label(modality, column) for modality in self._modalities)

    def names(self, file: str) -> bool:
        """Return True if the table has a row for a file, whose path is relative to the source."""
        return _key(file) in self._row_of

    def rejected(self, files: Iterable[str]) -> list[Refused]:
        """Return the table's rows that cannot be used or that name none of these files."""
        there = {row.file for file in files if (row := self._row_of.get(_key(file))) is not None}
        there.add("")
        found = list(self._bad)
        for line, file in zip(self._lines, self._files, strict=True):
            if file not in there:
                there.add(file)
                found.append(Refused(one_line(file), _NO_FILE, row=line))
        return found

    def of(self, file: str, modality: str) -> RowLabels:
        """Return the labels and further fields of one file.

        Raises:
            BadRow: the modality has no such label, sequence or plane, or "normal" is combined with another label.
        """
        row = self._row_of.get(_key(file))
        if row is None or row.labels is None:
            folders = reversed(file.split("/")[:-1])
            found = next(filter(None, (self._taxonomy.match_label(modality, name) for name in folders)), None)
            labels: tuple[str, ...] = (found.name,) if found else ()
        else:
            labels = self._labels(file, modality, row)
        if row is None:
            return RowLabels(labels)
        slices = ("", "")
        if modality == "brain_mri":
            slices = self._known(file, row, "sequence", STATED), self._known(file, row, "plane", PLANES)
        return RowLabels(labels, self._group(file), row.split, *slices)

    def _labels(self, file: str, modality: str, row: _Row) -> tuple[str, ...]:
        own, findings = self._taxonomy.of(modality), []
        assert self.path is not None and self.read is not None
        for word in _words(row.labels or ""):
            finding = None if "?" in word else self._taxonomy.match_label(modality, word)
            if finding is not None:
                findings.append(finding)
            elif not self.read.columns.marked:  # such a column may be a label of another modality
                hint = suggest(word, [finding.name for finding in own])
                raise BadRow(
                    f"{file}: label {one_line(word)!r} of {self.path.name}: {hint}", row.line, "labels"
                )
            elif "=" in word:
                column, _, cell = word.partition("=")
                why = f"{column} {one_line(cell)!r} of {self.path.name}: 1 or 0"
                raise BadRow(f"{file}: {why}", row.line, column)
        if len({finding.name for finding in findings}) > 1 and any(finding.normal for finding in findings):
            raise BadRow(f"{file}: {self.path.name} calls it normal and not", row.line, "labels")
        order = [finding.name for finding in own]
        return tuple(sorted({finding.name for finding in findings}, key=order.index))

    def _known(self, file: str, row: _Row, field: str, known: Sequence[str]) -> str:
        """Return a word of the table as we write it; "" if the cell is empty or "unknown"."""
        word = getattr(row, field)
        if word.casefold() in ("", UNKNOWN):
            return ""
        for one in known:
            if one.casefold() == word.casefold():
                return one
        assert self.path is not None
        why = f"{field} {one_line(word)!r} of {self.path.name}: {suggest(word, known)}"
        raise BadRow(f"{file}: {why}", row.line, field)

    def _group(self, file: str) -> str | None:
        """Return the file's group by its row, else the patient that a folder of its path names."""
        row = self._row_of[_key(file)]
        return row.group or patient_in_path(row.file) or patient_in_path(file)


class LabelledFiles:
    """The files of a source, a folder or one file, with their labels by a table and folders.

    Attributes:
        files: each file with its name, relative to the source; labels: the labels of these files.
        findings: the roles of the table's columns, and its rows that cannot be used.
        dataset: the folder's name.
    """

    def __init__(
        self, options: SourceOptions, taxonomy: Taxonomy, wanted: Callable[[Path], bool], nothing: str
    ) -> None:
        single = options.path.is_file()
        root = options.path.parent if single else options.path
        found = [path for path in ([options.path] if single else walk(root)) if wanted(path)]
        if not found:
            raise InputError(f"{options.path}: {nothing}")
        names = [shown(path, root) for path in found]
        self.files = [(path, one_line(name)) for path, name in zip(found, names, strict=True)]
        self.labels = LabelTable(root, taxonomy, names, options)
        # Of one file among many that the table names, the others are not wanted.
        self.findings: list[Found] = [] if single else [*self.labels.rejected(names)]
        if self.labels.read is not None:
            self.findings.insert(0, self.labels.read)
        self.dataset = one_line(root.resolve().name)

    def count(self) -> int:
        """Return the number of all files plus the number of table rows that cannot be used."""
        return len(self.files) + sum(isinstance(item, Refused) for item in self.findings)


def _marked(columns: Sequence[str], marks: Sequence[str]) -> str | None:
    """Return the marked columns as a cell of labels, with cells that are no mark as "COLUMN=CELL"; None if empty."""
    labels = []
    for name, mark in zip(columns, marks, strict=True):
        if MARKS.get(mark.lower(), True):
            labels.append(name if mark.lower() in MARKS else f"{name}={re.sub('[;|]', ',', mark)}")
    return ";".join(labels) or None


def _are_marks(cells: Sequence[str]) -> bool:
    """Return True if cells are marks but for a few words; other numbers are probabilities or measurements."""
    others = [cell for cell in cells if cell.lower() not in MARKS]
    marks = sum(bool(cell) for cell in cells) - len(others)
    return len(others) <= marks and not any(map(_NUMBER.fullmatch, set(others)))


def _named(table: Path, root: Path) -> Path:
    """Return the table that was named, relative to the working folder or to the source."""
    return root / table if not table.exists() and (root / table).is_file() else table


def _table_in(root: Path) -> Path | None:
    """Return the table in a source, whatever the case of its name."""
    there = sorted(path for path in root.iterdir() if path.name.lower() in NAMES and path.is_file())
    found = min(there, key=lambda path: NAMES.index(path.name.lower()), default=None)
    if found is not None:
        check_inside(root, found)
    return found


def _words(labels: str) -> list[str]:
    """Split a cell by ";" or "|"; a list as programs print it, ['edema', 'normal'], also by commas."""
    words = [word for part in labels.split(";") for word in _listed(part)]
    return [word for word in (word.strip().strip("'\"") for word in words) if word]


def _listed(labels: str) -> list[str]:
    listed = re.fullmatch(r"\s*\[(.*)\]\s*", labels)
    return re.split("[|,]", listed[1]) if listed else labels.split("|")


def _key(file: str) -> str:
    """Return one spelling of a path, however a spreadsheet of another system writes it."""
    return posixpath.normpath(unicodedata.normalize("NFC", file).replace("\\", "/"))


def _pairs(rows: Collection[str], files: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield which row means which file: by the path; else if one ends with the other and no other could be meant.

    So a row may leave out folders or the ending, or begin with folders above the source. Masks give way to images.
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
    named = {row for row, file in found if not MASK.search(file)}
    found = [(row, file) for row, file in found if row not in named or not MASK.search(file)]
    by_row, by_file = Counter(key for key, _ in found), Counter(file for _, file in found)
    yield from (pair for pair in found if by_row[pair[0]] == by_file[pair[1]] == 1)


def _by_spelling(paths: Iterable[str]) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        found.setdefault(spelling(path), []).append(path)
    return found


def _tails(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return (path[start:] for start in range(len(path)))
