"""Recognises the output folders of public benchmarks by content: GEdit-Bench, ImgEdit, MedGEN-Bench, MieDB-100k.

| benchmark | files, as its own scripts write and read them | source |
|---|---|---|
| GEdit-Bench | `[MODEL/]fullset/TASK/LANGUAGE/KEY.png` and `KEY_SRCIMG.png` | stepfun-ai/Step1X-Edit, GEdit-Bench |
| ImgEdit | `basic_edit.json` or `UGE_edit.json`, `original_images/`, `edited_images/KEY.png` | PKU-YuanGroup/ImgEdit |
| MedGEN-Bench | JSON Lines of results that name `input_image` and `output_image` | yangjj007/MedGEN-Bench-eval |
| MieDB-100k | `dataBenchmark/metadata.json`, `inference/eval_results/MODEL/NAME_N.png` | Raiiyf/MieDB-100k |

None of them names a finding, and only MedGEN-Bench names a modality: the rest is unknown unless `--set` gives it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from plantain.files.opening import files_like, is_inside
from plantain.files.parquet import rows_of_table
from plantain.files.tables import read_table
from plantain.records import InputError
from plantain.release.importing.pair_rows import (
    Originals,
    PairRow,
    RejectedRow,
    RowImage,
    TableRules,
    check_roles,
    direction_in,
)
from plantain.release.importing.reading import LARGEST_IMAGE, LARGEST_LINE

_DRAW = re.compile(r"(?P<key>.+?)(?:_sample\d+)?")
_STATED = {"subject-add": "add", "subject-remove": "remove", "add": "add", "remove": "remove"}
"""Directions by GEdit-Bench's task and ImgEdit's type of edit; every other one is a change."""

_IMGEDIT = ("id", "prompt")
_MIEDB = ("input_image", "output_image", "prompt")
_MEDGEN = ("instruction", "input_image", "output_image", "response")
"""Fields of an entry; the inputs of MedGEN-Bench have no `response` and no `output_image`."""

_Rows = Iterator[PairRow | RejectedRow]


def benchmark_rows(root: Path, rules: TableRules) -> _Rows | None:
    """Read the edits in a benchmark's output folder; return None for any other path.

    Args:
        root: the folder.
        rules: without columns; constants apply instead of the folder's values.

    Raises:
        InputError: a role is unknown, or a column is given.
    """
    read = _reader(root)
    if read is None:
        return None
    check_roles(rules.columns, rules.constants)
    if rules.columns:
        raise InputError(f"--column: {root} is a benchmark's output folder and has no columns")
    return (_completed(row, rules.constants, rules.originals) for row in read(root))


def is_benchmark(root: Path) -> bool:
    """Return True if a folder is the output of a benchmark that `benchmark_rows` can read."""
    return _reader(root) is not None


def _reader(root: Path) -> Callable[[Path], _Rows] | None:
    return next((read for read in _READERS if next(read(root), None) is not None), None)


def _completed(
    row: PairRow | RejectedRow, constants: Mapping[str, str], joined: Originals | None
) -> PairRow | RejectedRow:
    if isinstance(row, RejectedRow):
        return row
    if row.original is None and joined is not None:
        row = replace(row, original=joined.find(row.original_name))
    row = replace(row, **constants, own_modality="modality" not in constants)  # type: ignore[arg-type]
    if not row.instruction and not row.finding:
        why = (
            "instruction: not in the folder; GEdit-Bench has them in its Parquet files: copy those into data/"
        )
        return RejectedRow(row.row, row.id, why)
    if not row.direction and not direction_in(row.instruction):
        row = replace(row, direction="change")
    return replace(row, modality=row.modality or "unknown")


def _row(root: Path, dataset: str, original: str, edited: Path, **known: Any) -> PairRow:
    """Return a row; `original` is a path below the folder, or only the name of an image that is not there."""
    name = edited.relative_to(root).as_posix()
    return PairRow(
        original=RowImage(original) if (root / original).is_file() else None,
        original_name=Path(original).stem,
        edited=RowImage(name),
        dataset=dataset,
        finding="",
        **{"id": name.rpartition(".")[0], "modality": "", "direction": "", **known},
    )


def _files(root: Path, pattern: str) -> list[Path]:
    """Return regular files below the folder: no pipes, and no links that lead out of it."""
    return [path for path in files_like(root, pattern) if path.is_file() and is_inside(path, root)]


def _json(path: Path) -> Any:
    """Return a JSON document; None if it is not JSON or too large."""
    try:
        return orjson.loads(path.read_bytes()) if path.stat().st_size <= LARGEST_IMAGE else None
    except orjson.JSONDecodeError:
        return None


def _all_have(entries: Iterable[object], *names: str) -> bool:
    return all(_has(entry, *names) for entry in entries)


def _has(entry: object, *names: str) -> bool:
    return isinstance(entry, dict) and all(isinstance(entry.get(name), str) for name in names)


def _gedit(root: Path) -> _Rows:
    files = [*_files(root, "fullset/*/*/*.png"), *_files(root, "*/fullset/*/*/*.png")]
    edits = [path for path in files if not path.stem.endswith("_SRCIMG")]
    if len(edits) == len(files):
        return
    instructions: dict[str, str] = {}
    for table in (*_files(root, "*.parquet"), *_files(root, "data/*.parquet")):
        instructions |= {
            str(row["key"]): str(row["instruction"]) for row in rows_of_table(table, ("key", "instruction"))
        }
    for scores in _files(root, "**/*_gpt_score*.csv"):
        for _, cells, _ in read_table(scores).rows:
            instructions[_key(Path(str(cells.get("edited_image", ""))))] = str(cells.get("instruction", ""))
    for number, path in enumerate(edits, 1):
        key, task = _key(path), path.parents[1].name
        original = path.with_name(f"{key}_SRCIMG.png").relative_to(root).as_posix()
        yield _row(
            root,
            "GEdit-Bench",
            original,
            path,
            row=number,
            instruction=instructions.get(key, ""),
            model=path.parents[3].resolve().name,
            direction=_STATED.get(task, "change"),
        )


def _key(path: Path) -> str:
    match = _DRAW.fullmatch(path.stem)
    return match["key"] if match else ""


def _imgedit(root: Path) -> _Rows:
    documents = map(_json, _files(root, "*.json"))
    entries = next(
        (one for one in documents if one and isinstance(one, dict) and _all_have(one.values(), *_IMGEDIT)), {}
    )
    edits = [path for path in _files(root, "*/*.png") if path.stem in entries]
    for number, path in enumerate(edits, 1):
        entry = entries[path.stem]
        yield _row(
            root,
            "ImgEdit",
            f"original_images/{entry['id']}",
            path,
            row=number,
            instruction=entry["prompt"],
            model="" if path.parent.name == "edited_images" else path.parent.name,
            direction=_STATED.get(entry.get("edit_type"), "change"),
        )


def _miedb(root: Path) -> _Rows:
    documents = map(_json, _files(root, "dataBenchmark/metadata.json"))
    listed = next((one for one in documents if isinstance(one, list) and _all_have(one, *_MIEDB)), [])
    entries = {Path(entry["output_image"]).stem: entry for entry in listed}
    found = [(path, path.stem.rpartition("_")[0]) for path in _files(root, "inference/eval_results/*/*.png")]
    edits = [(path, entries[name]) for path, name in found if name in entries]
    for number, (path, entry) in enumerate(edits, 1):
        yield _row(
            root,
            "MieDB-100k",
            f"dataBenchmark/{entry['input_image']}",
            path,
            row=number,
            instruction=entry["prompt"],
            model=path.parent.name,
        )


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield number and document of each line; None if it is not JSON."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LARGEST_LINE):
            number += 1
            try:
                yield number, orjson.loads(line)
            except orjson.JSONDecodeError:
                yield number, None


def _medgen(root: Path) -> _Rows:
    paths = [path for depth in ("*", "*/*", "*/*/*") for path in _files(root, f"{depth}.jsonl")]
    stems = {path.stem for path in paths}
    for path in paths:
        scored = path.stem.removesuffix("_with_vlm").removesuffix("_local_metrics")  # eval.py's copies
        if not _has(next(_lines(path), (0, None))[1], *_MEDGEN) or scored in stems - {path.stem}:
            continue  # not a list of results
        for number, record in _lines(path):
            id = f"{path.stem} line {number}"
            if not _has(record, *_MEDGEN):
                yield RejectedRow(number, id, "not a result of MedGEN-Bench")
            elif record.get("category") == "VQA" or record.get("eval_smoke_fixture"):
                continue  # questions without an edit, and the reference images themselves
            elif record.get("error") or not record["output_image"]:
                yield RejectedRow(number, id, f"edited: none; {record.get('error') or 'no image'}"[:200])
            else:
                yield _row(
                    root,
                    "MedGEN-Bench",
                    _placed(root, record["input_image"]).relative_to(root).as_posix(),
                    _placed(root, record["output_image"]),
                    row=number,
                    id=str(record.get("sample_id") or id),
                    instruction=record["instruction"],
                    model=path.stem,
                    modality=str(record.get("modality") or ""),
                )


def _placed(root: Path, name: str) -> Path:
    """Return an image that is named from the folder, or else from the data set's folder in it."""
    name = name.lstrip("/")
    inside = (folder / name for folder in (root, *files_like(root, "*")))
    return next((path for path in inside if path.is_file()), root / name)


_READERS = (_gedit, _imgedit, _miedb, _medgen)
