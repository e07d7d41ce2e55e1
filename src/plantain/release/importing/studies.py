"""Reader studies that came with a release: an imported run keeps them, and a re-export takes them along."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import orjson

from plantain.files.csv_form import read_csv, written_csv
from plantain.files.opening import MAX_TEXT_BYTES, read_inside
from plantain.files.writing import replace_file
from plantain.records import InputError
from plantain.release.plan import CriterionRating, EditRating, ExportOptions

STUDIES = "studies"
"""Folder of a release with a folder for each reader study."""

IMPORTED_STUDIES = "imported-studies"
"""The same in a run that was imported."""

STUDY_FILES = ("HASH", "answers.csv", "dictionary.csv", "ratings.csv", "ratings.parquet", "study.json")
"""What a release has of a study."""

_RATINGS, _ANSWERS, _ASKED = "ratings.csv", "answers.csv", "study.json"


def with_imported(run: Path, options: ExportOptions) -> ExportOptions:
    """The options with the studies that an import brought; one that is named again counts as it is now.

    Raises:
        InputError: a study that came along is broken.
    """
    named = {path.split("/")[1] for path in options.beside}
    files = {
        path: data
        for path, data in study_files(run, IMPORTED_STUDIES).items()
        if path.split("/")[1] not in named
    }
    if not files:
        return options
    ratings = tuple(rating for path, data in files.items() for rating in _ratings_in(path, data))
    return replace(options, beside={**files, **options.beside}, people=(*options.people, *ratings))


def study_files(root: Path, folder: str = STUDIES) -> dict[str, bytes]:
    """Files of the studies of a release, or of a run that was one, by their path in a release.

    Raises:
        InputError: a file is too large, a name cannot be printed, or ratings cannot be read. Links are not followed.
    """
    files: dict[str, bytes] = {}
    if (root / folder).is_symlink() or not (root / folder).is_dir():
        return files
    for study in sorted((root / folder).iterdir()):
        if not study.name.isprintable():
            raise InputError(f"{root}/{folder}: {study.name!r} is no name of a study")
        for name in STUDY_FILES:
            path = study / name
            if path.is_file() and not path.is_symlink() and not study.is_symlink():
                files[f"{STUDIES}/{study.name}/{name}"] = read_inside(root, path, MAX_TEXT_BYTES)
    for kept, data in files.items():
        list(_ratings_in(kept, data))
    return files


def keep_studies(run: Path, files: Mapping[str, bytes]) -> None:
    """Puts the studies of a release beside an imported run's journal."""
    for path, data in files.items():
        target = run / IMPORTED_STUDIES / path.removeprefix(f"{STUDIES}/")
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, data)


def cut_studies(run: Path, tasks: Collection[str]) -> None:
    """Takes cases, answers and ratings of withdrawn tasks out of the studies that an import brought."""
    for path, data in study_files(run, IMPORTED_STUDIES).items():
        target = run / IMPORTED_STUDIES / path.removeprefix(f"{STUDIES}/")
        kept = _without(target.name, data, tasks)
        if kept != data:
            replace_file(target, kept)


def _without(name: str, data: bytes, tasks: Collection[str]) -> bytes:
    if name == _ASKED:
        document = orjson.loads(data)
        document["cases"] = [case for case in document["cases"] if case["source"] not in tasks]
        cases = {case["id"] for case in document["cases"]}
        for block in document["blocks"]:
            block["items"] = [item for item in block["items"] if item["case"] in cases]
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"
    if name in (_RATINGS, _ANSWERS):
        header, *rows = _rows(data)
        place = header.index("task" if name == _RATINGS else "source")
        return written_csv([header, *(row for row in rows if row[place] not in tasks)]).encode()
    if name == "ratings.parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pq.read_table(io.BytesIO(data))
        mask = pa.array([task not in tasks for task in table.column("task").to_pylist()], pa.bool_())
        if all(mask.to_pylist()):
            return data
        sink = io.BytesIO()
        pq.write_table(table.filter(mask), sink)
        return sink.getvalue()
    return data


def _rows(data: bytes) -> list[list[str]]:
    return list(read_csv(io.StringIO(data.decode(), newline="")))


def _ratings_in(path: str, data: bytes) -> Iterator[EditRating]:
    """Ratings of the release's own edits in a study's `ratings.csv`; nothing from any other file."""
    _, study, name = path.split("/")
    if name != _RATINGS:
        return
    try:
        header, *rows = _rows(data)
        records = [dict(zip(header, row, strict=True)) for row in rows]
        own = [record for record in records if record["own"] == "True"]
        for (task, number), group in groupby(own, key=lambda record: (record["task"], int(record["round"]))):
            asked = list(group)
            criteria = tuple(
                CriterionRating(one["criterion"], _number(one["held"]), _number(one["rating"]))
                for one in asked
            )
            accepted = _number(asked[0]["accepted"])
            yield EditRating(study, task, number, int(asked[0]["readers"]), accepted, criteria)
    except (KeyError, ValueError, csv.Error) as error:
        raise InputError(f"{path}: not the ratings of a study as plantain exports them ({error})") from error


def _number(text: str) -> float | None:
    if not text:
        return None
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is no rating")
    return value
