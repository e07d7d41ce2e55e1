"""Raw pairs as a collector keeps them: two folders of pictures and one table that says what they show.

The folder holds `pairs.csv`, `before/` and `after/`. The table has one row a pair; see `COLUMNS`. Where the columns
`before` and `after` are absent or empty, the pictures are `before/ID.*` and `after/ID.*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plantain.bench.benchmark.entries import is_inside
from plantain.bench.benchmark.medebench import canonical_organ
from plantain.bench.prepare.describers import GIVEN
from plantain.files.opening import check_inside
from plantain.files.tables import read_table
from plantain.pixels.decode import one_line
from plantain.records import InputError, Licence
from plantain.records.counts import counted
from plantain.records.suggestions import suggest

TABLE = "pairs.csv"

COLUMNS = {
    "id": "names the pair; letters, digits, '.', '_' and '-'",
    "organ": "what was treated; MedEBench's thirteen organs, or one's own",
    "task": "what kind of change it is; tables group by it",
    "prompt": "the instruction; may be empty where a describer writes it",
    "rephrased": "a paraphrase of it",
    "detailed": "the expected change in one sentence",
    "modality": "how the pictures were taken",
    "action": "what was done, in the past tense",
    "entity": "to what",
    "region": "where",
    "context": "what stayed as it was",
    "key_concept": "the words whose attention should lie on the region",
    "licence": "open, attribution, credentialed or unknown",
    "patient": "anything that is the same for pictures of one person; only its hash is kept",
    "url": "where the pair comes from; only its hash is kept unless asked otherwise",
    "before": "file name in the folder before/",
    "after": "file name in the folder after/",
}
NEEDED = ("id", "organ", "task")
INDEX = ("index", "level_0")
"""Columns that pandas writes for the index of a table; they are ignored."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
LONGEST = 4000


@dataclass(frozen=True, slots=True)
class RawPair:
    """One row of the table with its two files."""

    id: str
    organ: str
    task: str
    prompt: str
    rephrased: str
    detailed: str
    key_concept: str
    given: dict[str, str]
    licence: Licence
    patient: str
    url: str
    before: Path
    after: Path


def read_raw(raw: Path) -> list[RawPair]:
    """Every row of `pairs.csv`, checked before anything is made of it.

    Raises:
        InputError: the first row that cannot be used, with its line and column, and how many more there are.
    """
    path = raw / TABLE
    if not path.is_file():
        raise InputError(f"{path}: no such file; it needs the columns {', '.join(NEEDED)}")
    check_inside(raw, path)
    problems: list[str] = []
    pairs: list[RawPair] = []
    seen: dict[str, int] = {}
    for line, row in _rows(path):
        try:
            pair = _pair(raw, row)
            if pair.id.casefold() in seen:
                raise InputError(f"id: {pair.id!r} is in line {seen[pair.id.casefold()]} too")
        except InputError as error:
            problems.append(f"line {line}: {error}")
            continue
        seen[pair.id.casefold()] = line
        pairs.append(pair)
    if problems:
        more = f" (and {len(problems) - 1} more lines)" if problems[1:] else ""
        raise InputError(f"{path}: {problems[0]}{more}")
    if not pairs:
        raise InputError(f"{path}: there is no row")
    return pairs


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    table = read_table(path)
    names = {column: column.casefold().replace(" ", "_") for column in table.columns}
    for name in names.values():
        if name not in COLUMNS and name not in INDEX:
            raise InputError(f"{path}: column {one_line(name)!r} is not known; {suggest(name, COLUMNS)}")
    missing = [name for name in NEEDED if name not in names.values()]
    if missing or len(set(names.values())) < len(names):
        what = f"{missing[0]!r} is missing" if missing else "one is there twice"
        raise InputError(f"{path}: columns: {what}")
    for line, cells, _ in table.whole_rows():
        yield line, {names[column]: cell for column, cell in cells.items()}


def _pair(raw: Path, row: dict[str, str]) -> RawPair:
    for name in NEEDED:
        if not row[name]:
            raise InputError(f"{name}: is empty")
    for name, value in row.items():
        if len(value) > LONGEST:
            raise InputError(f"{name}: {len(value)} characters; at most {LONGEST}")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", row["id"]):
        raise InputError(f"id: {one_line(row['id'])[:60]!r}; an id becomes a file name: {COLUMNS['id']}")
    licence = row.get("licence", "") or Licence.UNKNOWN.value
    if licence not in set(Licence):
        raise InputError(f"licence: {one_line(licence)[:40]!r}; choose one of {', '.join(Licence)}")
    return RawPair(
        id=row["id"],
        organ=canonical_organ(row["organ"])[0],
        task=row["task"].rstrip(". "),
        prompt=row.get("prompt", ""),
        rephrased=row.get("rephrased", ""),
        detailed=row.get("detailed", ""),
        key_concept=row.get("key_concept", ""),
        given={name: row.get(name, "") for name in GIVEN},
        licence=Licence(licence),
        patient=row.get("patient", ""),
        url=row.get("url", ""),
        before=_file(raw / "before", row, "before"),
        after=_file(raw / "after", row, "after"),
    )


def _file(folder: Path, row: dict[str, str], column: str) -> Path:
    named = row.get(column, "")
    if named:
        if not is_inside(named):
            raise InputError(f"{column}: {one_line(named)[:80]!r} lies outside {folder.name}/")
        if not (folder / named).is_file():
            raise InputError(f"{column}: {folder.name}/{one_line(named)[:80]}: no such file")
        return folder / named
    found = [folder / f"{row['id']}{s}" for suffix in SUFFIXES for s in (suffix, suffix.upper())]
    found = [path for path in found if path.is_file()]
    if len(found) != 1:
        what = "no picture" if not found else f"{counted(len(found), 'picture')}"
        raise InputError(f"{column}: {what} {folder.name}/{row['id']}.* ({', '.join(SUFFIXES)})")
    return found[0]
