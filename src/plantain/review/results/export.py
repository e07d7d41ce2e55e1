"""`plantain review export`: answers as CSV and Parquet, every answer ever given, regions, the frozen study."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from plantain.files.csv_form import written_csv
from plantain.files.opening import read_inside
from plantain.files.writing import open_folder, replace_file
from plantain.records import InputError
from plantain.review.ratings import Ratings
from plantain.review.results.rows import DICTIONARY, Row, as_csv, as_table, history_of, rows_of
from plantain.review.study import STUDY, Study


def export_files(study: Study, ratings: Ratings) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) of everything but Parquet; the same answers give the same bytes."""
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
    """Write the files into a folder, Parquet too if pyarrow is installed; return their names.

    Raises:
        InputError: the folder contains something else.
    """
    if to.exists() and (not to.is_dir() or any(to.iterdir())) and not (to / "HASH").is_file():
        raise InputError(f"--to {to}: contains something other than the export of a study")
    files = dict(export_files(study, ratings))
    parquet = _parquet(study, rows_of(study, ratings))
    if parquet is not None:
        files["answers.parquet"] = parquet
    for name, data in files.items():
        open_folder(to, str(Path(name).parent))
        replace_file(to / name, data)
    return sorted(files)


def export_archive(study: Study, ratings: Ratings) -> bytes:
    """Return the same files without Parquet as a ZIP, for download."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in export_files(study, ratings):
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def _parquet(study: Study, rows: list[Row]) -> bytes | None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return None
    numbers = {name: pa.int64() for name in ("position", "answers_given")}
    kinds = {**numbers, "focus_s": pa.float64(), "right": pa.bool_()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in DICTIONARY])
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(as_table(study, rows), schema=schema), sink)
    return sink.getvalue()
