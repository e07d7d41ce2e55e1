"""A study's results as a page, its answers as files, and the study as part of a release.

In a release nothing identifies readers or patients: clusters of patients get codes, and free text is omitted, as are
cases whose task the release does not contain.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from plantain.files.opening import open_folder, read_inside, replace_file
from plantain.files.tables import written_csv
from plantain.journal import BadBlob, JournalReader
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.records import InputError
from plantain.records.messages import counted
from plantain.review.people import saw
from plantain.review.ratings import Ratings
from plantain.review.results.rows import DICTIONARY, Row, as_csv, history_of, rows_of
from plantain.review.run_materials import model_of
from plantain.review.sources import is_final
from plantain.review.study import ORIGINAL, STUDY, Case, ItemKind, ReaderTask, Study, open_study

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
    yield "history.csv", as_csv(study, history_of(study, ratings)).encode()
    yield "dictionary.csv", written_csv([("column", "meaning"), *DICTIONARY.items()]).encode()
    yield STUDY, read_inside(study.folder, study.folder / STUDY)
    yield "HASH", f"{study.digest}  {STUDY}\n".encode()
    for row in rows:  # masks in the benchmark's format, of the image's own size
        if row.value.get("mask"):
            yield f"regions/{row.case}-{row.reader}.png", base64.b64decode(row.value["mask"])


def write_export(study: Study, ratings: Ratings, to: Path) -> list[str]:
    """Write a study's answers into a folder; return the files' names.

    Raises:
        InputError: the folder contains other files.
    """
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

RATINGS = {
    "task": "the edit: task of the release",
    "round": "of the attempt that was shown",
    "model": "whose image was judged",
    "readers": "readers who judged it in the study's main items",
    "accepted": "share of readers for whom every criterion held; empty where none was asked to accept",
    "own": "True: of an edit of this release; False: of another model's, shown with it",
    "criterion": "a criterion of the rubric",
    "held": "share of readers for whom it held",
    "rating": "mean rating of it; the scale is in study.json",
}
"""Columns of `ratings.csv`, one row an edit and criterion."""


def study_for_release(folder: Path, run: Path) -> tuple[dict[str, bytes], str]:
    """Return the files of a study by their path in a release, and a line with the numbers of cases and answers.

    Raises:
        InputError: the folder is not a study, or no case shows the edit of one of the run's closed tasks.
    """
    study = open_study(folder)
    with JournalReader.open(run) as reader:
        closed = {
            case.source: shown
            for case in study.cases
            if is_closed(reader, case.source) and (shown := _shown(reader, study, case))
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
        "study.json": _document(study, codes, set(closed)),
        "HASH": f"{study.digest}  study.json as it was frozen, before groups were given codes\n".encode(),
    }
    files["ratings.csv"] = written_csv([list(RATINGS), *_ratings(rows, closed)]).encode()
    name = folder.resolve().name
    line = f"study {name}: {counted(len(kept), 'case')}, {counted(len(rows), 'answer')}"
    return {f"{FOLDER}/{name}/{file}": data for file, data in files.items()}, line


def is_closed(reader: JournalReader, task: str) -> bool:
    """Return True if a task is closed, so that releases of the run contain it."""
    try:
        return is_final(reader.task(task))
    except InputError:
        return False


def _shown(reader: JournalReader, study: Study, case: Case) -> tuple[int, str] | None:
    """Return round and model of the task's last image; None if the case shows others: runs share ids of tasks."""
    row, own = reader.task(case.source), model_of(reader, case.source)
    made = [(one.round, one.edited) for one in reader.attempts(row.id, row.generation) if one.edited]
    try:
        edited = reader.read_blob(made[-1][1]) if made else b""
    except BadBlob:  # the release omits it
        return None
    models = case.images.keys() - {ORIGINAL} if made else ()
    same = [model for model in models if saw(study, case.id, model, edited)]
    return (made[-1][0], own if own in same else min(same)) if same else None


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


def _ratings(rows: Sequence[Row], shown: Mapping[str, tuple[int, str]]) -> list[tuple[object, ...]]:
    """Return a row of the columns `RATINGS` for each edit and criterion, of main items that were judged."""
    given: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        asked = row.task in (ReaderTask.ACCEPT, ReaderTask.RATE)
        if asked and row.kind is ItemKind.MAIN and not row.cannot and row.model:
            given.setdefault((row.source, row.model), []).append(row)
    found: list[tuple[object, ...]] = []
    for (source, model), mine in sorted(given.items()):
        yes = [row.value["criteria"] for row in mine if row.task is ReaderTask.ACCEPT]
        scores = [row.value["scores"] for row in mine if row.task is ReaderTask.RATE]
        accepted = float(np.mean([all(one.values()) for one in yes])) if yes else None
        for criterion in dict.fromkeys(name for one in (*yes, *scores) for name in one):
            held = float(np.mean([one[criterion] for one in yes])) if yes else None
            rating = float(np.mean([one[criterion] for one in scores])) if scores else None
            readers = len({row.reader for row in mine})
            round, own = shown[source]
            found.append((source, round, model, readers, accepted, model == own, criterion, held, rating))
    return found
