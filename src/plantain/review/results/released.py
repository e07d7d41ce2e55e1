"""A study as part of a release: its questions, every answer, and ratings by task, without anything that identifies.

Clusters of patients have codes of their own; free text is left out, and so are cases whose task the release does not
have.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import orjson

from plantain.files.tables import written_csv
from plantain.journal import JournalReader
from plantain.records import InputError
from plantain.review.ratings import Ratings
from plantain.review.results.rows import DICTIONARY, Row, as_csv, rows_of
from plantain.review.results.writing import FOLDER, LEFT_OUT
from plantain.review.run_materials import model_of
from plantain.review.sources import is_final
from plantain.review.study import ItemKind, ReaderTask, Study, open_study

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


def study_for_release(folder: Path, run: Path) -> dict[str, bytes]:
    """Return the files of a study by their path in a release: its questions, every answer and its ratings.

    Raises:
        InputError: no study, or one without a case of the run's closed tasks.
    """
    study = open_study(folder)
    with JournalReader.open(run) as reader:
        closed = {
            case.source: round_shown(reader, case.source)
            for case in study.cases
            if is_closed(reader, case.source)
        }
        own = {task: model_of(reader, task) for task in closed}
    kept = [case for case in study.cases if case.source in closed]
    if not kept:
        raise InputError(f"--study {folder}: none of its cases is a closed task of {run}")
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
    table = _ratings(rows, closed, own)
    files["ratings.csv"] = written_csv([list(RATINGS), *table]).encode()
    files["ratings.parquet"] = _ratings_parquet(table)
    name = folder.resolve().name
    return {f"{FOLDER}/{name}/{file}": data for file, data in files.items()}


def is_closed(reader: JournalReader, task: str) -> bool:
    """Return True if a release of the run has the task."""
    try:
        return is_final(reader.task(task))
    except InputError:
        return False


def round_shown(reader: JournalReader, task: str) -> int:
    """Return the round of the attempt that studies show: the last one with an image."""
    row = reader.task(task)
    return max((one.round for one in reader.attempts(row.id, row.generation) if one.edited), default=0)


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
        "groups": study.groups,
        "cases": cases,
        "blocks": blocks,
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def _ratings(
    rows: Sequence[Row], rounds: Mapping[str, int], own: Mapping[str, str]
) -> list[tuple[object, ...]]:
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
            own_edit = model == own[source]
            found.append(
                (source, rounds[source], model, readers, accepted, own_edit, criterion, held, rating)
            )
    return found


def _ratings_parquet(table: Sequence[tuple[object, ...]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, whole, real = pa.string(), pa.int64(), pa.float64()
    kinds = (text, whole, text, whole, real, pa.bool_(), text, real, real)
    columns = list(zip(*table, strict=True)) or [()] * len(RATINGS)
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, kinds, strict=True)]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=list(RATINGS)), sink)
    return sink.getvalue()
