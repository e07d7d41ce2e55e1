"""A study's results as a page, and its answers as files."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plantain.files.opening import open_folder, read_inside, replace_file
from plantain.files.tables import written_csv
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.records import InputError
from plantain.review.ratings import Ratings
from plantain.review.results.rows import DICTIONARY, as_csv, rows_of
from plantain.review.study import STUDY, Study

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
