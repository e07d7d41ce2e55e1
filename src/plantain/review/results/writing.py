"""A study's results as a page, its answers as files, and the study as part of a release.

In a release nothing identifies readers or patients: clusters of patients get codes, and free text is omitted, as are
cases whose task the release does not contain.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from plantain.files.opening import open_folder, read_inside, replace_file
from plantain.files.tables import written_csv
from plantain.journal import BadBlob, JournalReader
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.records import InputError
from plantain.records.messages import counted
from plantain.review.people import saw
from plantain.review.ratings import Ratings
from plantain.review.results.rows import DICTIONARY, Row, as_csv, rows_of
from plantain.review.sources import is_final
from plantain.review.study import ORIGINAL, STUDY, Case, Study, open_study

TEMPLATES = Path(__file__).parents[1] / "templates"


def write_results(found: dict[str, Any], path: Path) -> Path:
    """Write a study's results as an HTML page; return its path. Raise InputError if it cannot be written."""
    environment = page_environment(TEMPLATES, "")
    write_page(html_target(path), environment.get_template("results.html.j2").render(found=found))
    return path


def export_files(study: Study, ratings: Ratings) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) of each exported file; the same answers give the same bytes."""
    rows = rows_of(study, ratings)
    yield "answers.csv", as_csv(study, rows).encode()
    yield "dictionary.csv", written_csv([("column", "meaning"), *DICTIONARY.items()]).encode()
    yield STUDY, read_inside(study.folder, study.folder / STUDY)
    yield "HASH", f"{study.digest}  {STUDY}\n".encode()
    for row in rows:  # masks in the benchmark's format, of the image's own size
        if row.value.get("mask"):
            yield f"regions/{row.case}-{row.reader}.png", base64.b64decode(row.value["mask"])


def write_export(study: Study, ratings: Ratings, to: Path) -> list[str]:
    """Write a study's answers into a folder; return the files' names. InputError if it contains other files."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())) and not (to / "HASH").is_file():
        raise InputError(f"--to {to}: contains something other than the export of a study")
    files = dict(export_files(study, ratings))
    for name, data in files.items():
        open_folder(to, str(Path(name).parent))
        replace_file(to / name, data)
    return sorted(files)


FOLDER = "studies"
LEFT_OUT = ("comment", "correction", "cannot")
"""Free text of an answer."""


def study_for_release(folder: Path, run: Path) -> tuple[dict[str, bytes], str]:
    """Return the files of a study by their path in a release, and a line with the numbers of cases and answers.

    Raises:
        InputError: the folder is not a study, or no case shows the edit of one of the run's closed tasks.
    """
    study = open_study(folder)
    with JournalReader.open(run) as reader:
        closed = {
            case.source
            for case in study.cases
            if is_closed(reader, case.source) and _shows_last(reader, study, case)
        }
    kept = [case for case in study.cases if case.source in closed]
    if not kept:
        raise InputError(
            f"--study {folder}: is not a study of {run}: none of its cases shows an edit of a closed task"
        )
    codes = {name: f"g{n:04d}" for n, name in enumerate(sorted({case.cluster for case in kept}), 1)}
    ratings = Ratings.open(study)
    try:
        rows = [_plain(row, codes) for row in rows_of(study, ratings) if row.source in closed]
    finally:
        ratings.close()
    files = {
        "answers.csv": as_csv(study, rows).encode(),
        "dictionary.csv": written_csv([("column", "meaning"), *DICTIONARY.items()]).encode(),
        "study.json": _document(study, codes, closed),
        "HASH": f"{study.digest}  study.json as it was frozen, before groups were given codes\n".encode(),
    }
    name = folder.resolve().name
    line = f"study {name}: {counted(len(kept), 'case')}, {counted(len(rows), 'answer')}"
    return {f"{FOLDER}/{name}/{file}": data for file, data in files.items()}, line


def is_closed(reader: JournalReader, task: str) -> bool:
    """Return True if a task is closed, so that releases of the run contain it."""
    try:
        return is_final(reader.task(task))
    except InputError:
        return False


def _shows_last(reader: JournalReader, study: Study, case: Case) -> bool:
    """Return True if a case shows the task's last image, and not others: runs share ids of tasks."""
    row = reader.task(case.source)
    made = [one.edited for one in reader.attempts(row.id, row.generation) if one.edited]
    try:
        edited = reader.read_blob(made[-1]) if made else b""
    except BadBlob:  # the release omits it
        return False
    return bool(made) and any(saw(study, case.id, model, edited) for model in case.images.keys() - {ORIGINAL})


def _plain(row: Row, codes: Mapping[str, str]) -> Row:
    value = {key: answer for key, answer in row.value.items() if key not in LEFT_OUT}
    cannot = "reason left out" if row.cannot else ""
    return replace(row, cluster=codes[row.cluster], comment="", cannot=cannot, value=value, at=row.at[:10])


def _document(study: Study, codes: Mapping[str, str], tasks: Collection[str]) -> bytes:
    """Return the frozen study without file names."""
    cases = [
        {
            **asdict(case),
            "cluster": codes[case.cluster],
            "images": sorted(case.images),
            "image": "",
            "ground_truth": "",
            "proposals": [],
        }
        for case in study.cases
        if case.source in tasks
    ]
    names = {str(case["id"]) for case in cases}
    blocks = [
        {**asdict(block), "items": [asdict(item) for item in block.items if item.case in names]}
        for block in study.blocks
    ]
    document = {
        "name": study.name,
        "seed": study.seed,
        "cases": cases,
        "blocks": blocks,
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"
