"""`plantain review export`: rows as CSV and Parquet, all answers ever given, regions, the frozen study and its hash."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import orjson

from plantain.files.csv_form import written_csv
from plantain.files.opening import read_inside
from plantain.files.writing import open_folder, replace_file
from plantain.records import InputError
from plantain.review.ratings import Ratings
from plantain.review.results.rows import DICTIONARY, Row, as_csv, as_table, history_of, rows_of
from plantain.review.study import STUDY, ReaderTask, Study


def export_files(study: Study, ratings: Ratings) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of everything but Parquet; the same answers give the same bytes."""
    rows = rows_of(study, ratings)
    yield "answers.csv", as_csv(study, rows).encode()
    yield "history.csv", as_csv(study, history_of(study, ratings)).encode()
    yield "dictionary.csv", written_csv([("column", "meaning"), *DICTIONARY.items()]).encode()
    yield STUDY, read_inside(study.folder, study.folder / STUDY)
    yield "HASH", f"{study.digest}  {STUDY}\n".encode()
    yield from _regions(rows)


def write_export(study: Study, ratings: Ratings, to: Path) -> list[str]:
    """Writes the files into a folder, Parquet too where pyarrow is installed; returns their names.

    Raises:
        InputError: the folder holds something else.
    """
    if to.exists() and (not to.is_dir() or any(to.iterdir())) and not (to / "HASH").is_file():
        raise InputError(f"--to {to}: holds something other than the export of a study")
    names = []
    for name, data in export_files(study, ratings):
        open_folder(to, str(Path(name).parent))
        replace_file(to / name, data)
        names.append(name)
    parquet = _parquet(study, rows_of(study, ratings))
    if parquet is not None:
        replace_file(to / "answers.parquet", parquet)
        names.append("answers.parquet")
    return sorted(names)


def export_archive(study: Study, ratings: Ratings) -> bytes:
    """The same files in a ZIP, for download."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in export_files(study, ratings):
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def _regions(rows: list[Row]) -> Iterator[tuple[str, bytes]]:
    """Drawn regions as masks in the benchmark's format, of the picture's own size."""
    for row in rows:
        if row.task is ReaderTask.CHOOSE_ROI and row.value.get("mask"):
            yield f"regions/{row.case}-{row.reader}.png", base64.b64decode(row.value["mask"])


def _parquet(study: Study, rows: list[Row]) -> bytes | None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return None
    kinds = {
        "position": pa.int64(),
        "answers_given": pa.int64(),
        "focus_s": pa.float64(),
        "right": pa.bool_(),
    }
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in DICTIONARY])
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(as_table(study, rows), schema=schema), sink)
    return sink.getvalue()


def summary_of(names: list[str], to: Path, answers: int, study: Study) -> bytes:
    """What the command says as JSON."""
    return orjson.dumps(
        {"to": str(to), "files": names, "answers": answers, "hash": study.digest}, option=orjson.OPT_INDENT_2
    )
