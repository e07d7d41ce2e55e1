"""A study's results as a page and as LaTeX, and its answers as files."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plantain.files.opening import open_folder, read_inside, replace_file
from plantain.files.tables import written_csv
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.pages.wording import escaped
from plantain.records import InputError
from plantain.review.ratings import Ratings
from plantain.review.results.rows import DICTIONARY, Row, as_csv, as_table, history_of, rows_of
from plantain.review.study import STUDY, Study

TEMPLATES = Path(__file__).parents[1] / "templates"


def write_results(found: dict[str, Any], path: Path) -> Path:
    """Write the page; return its path. Raise InputError if it cannot be written."""
    environment = page_environment(TEMPLATES, "")
    figures = {block["block"]: figure for block in found["blocks"] if (figure := _figure(block))}
    write_page(
        html_target(path), environment.get_template("results.html.j2").render(found=found, figures=figures)
    )
    return path


def _figure(block: dict[str, Any]) -> str:
    """Return means or strengths with their intervals, one row for each model, as SVG."""
    entries = block.get("models") or block.get("strengths") or block.get("by_model") or {}
    rows = [(name, one) for name, one in entries.items() if one["value"] is not None]
    if not rows:
        return ""
    from matplotlib.figure import Figure

    from plantain.pages.drawing import ACCENT, MUTED, RULE, percent_axis, row_axis, svg

    rows.sort(key=lambda row: row[1]["value"])

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        row_axis(axes, [name for name, _ in rows])
        if block["task"] in ("accept", "describe-ok", "real-or-edited", "real-or-edited-2afc"):
            percent_axis(axes, "x")
        elif block.get("strengths"):
            axes.axvline(0, color=RULE, lw=1)
            axes.set_xlabel("strength (log odds)")
        if block["by_model"]:
            axes.axvline(0.5, color=MUTED, lw=0.8, ls="--")
        for y, (_, one) in enumerate(rows):
            if one["low"] is not None:
                axes.plot([one["low"], one["high"]], [y, y], color=ACCENT, lw=2, solid_capstyle="round")
            axes.plot(one["value"], y, "o", color=ACCENT, ms=6)

    return svg(block["block"], 7.2, 0.9 + 0.42 * len(rows), draw)


def results_latex(found: dict[str, Any]) -> str:
    """Return a booktabs table for each block with models: value and 95 % interval."""
    parts = []
    for block in found["blocks"]:
        entries = block.get("models") or block.get("strengths") or block.get("by_model")
        if not entries:
            continue
        lines = [
            f"% {block['title']}: {block['readers']} readers, readers and cases random",
            r"\begin{tabular}{lrr}",
            r"\toprule",
            r"model & value & 95\,\% interval \\",
            r"\midrule",
        ]
        for name, one in entries.items():
            bounds = "--" if one["low"] is None else f"{one['low']:z.2f} to {one['high']:z.2f}"
            value = "--" if one["value"] is None else f"{one['value']:z.2f}"
            lines.append(rf"{escaped(name)} & {value} & {bounds} \\")
        parts.append("\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""]))
    return "\n".join(parts)


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


FOLDER = "studies"
LEFT_OUT = ("comment", "correction", "cannot")
"""Free text of an answer."""
