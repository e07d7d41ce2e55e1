"""`plantain review import`: ratings that were made elsewhere, as answers of imported readers.

Plain CSV, one line an output: `source` (task or sample) or `case`, `model`, one column a criterion of the study's
rate or accept block, and `reader` (else the file's name). ImagenHub's TSV, one file a rater: a column of ids, and one a
model with cells such as `[1, 0.5]` for semantic consistency and perceptual quality.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from plantain.files.csv_form import read_csv
from plantain.files.opening import read_regular
from plantain.records import InputError
from plantain.review.answers import BadAnswer, checked
from plantain.review.ratings import IMPORTED, Ratings
from plantain.review.study import Block, Item, ItemKind, ReaderTask, Study

LONGEST_CODE = 64
"""Characters of a reader's code."""

HALVES = (0, 2)
"""The scale on which ImagenHub's 0, 0.5 and 1 are whole numbers."""

_YES = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}


def import_ratings(study: Study, ratings: Ratings, files: list[Path]) -> dict[str, int]:
    """Takes files in; how many answers each reader has given. Nothing is stored of a file that is wrong somewhere.

    Raises:
        InputError: names file, line and column, and says what is allowed.
    """
    block = next((one for one in study.blocks if one.task in (ReaderTask.RATE, ReaderTask.ACCEPT)), None)
    if block is None:
        raise InputError(f"{study.folder}: has no rate or accept block for ratings to go into")
    given: dict[str, dict[str, tuple[Item, dict[str, Any]]]] = {}
    for file in files:
        for line, reader, key, model, values in _lines(file, block):
            if not (reader.strip() and reader.isprintable() and len(reader) <= LONGEST_CODE):
                raise InputError(
                    f"{file}: line {line}: reader {reader[:LONGEST_CODE]!r}: up to {LONGEST_CODE} printable characters"
                )
            item = _item(study, block, key, model)
            if item is None:
                raise InputError(
                    f"{file}: line {line}: the study has no case {key!r} with an output of {model!r}"
                )
            field = "scores" if block.task is ReaderTask.RATE else "criteria"
            try:
                value = checked(block, item, study.by_case[item.case], {field: values})
            except BadAnswer as error:
                raise InputError(f"{file}: line {line}: {error}") from error
            if item.id in given.setdefault(reader, {}):
                raise InputError(
                    f"{file}: line {line}: reader {reader!r} rates {key!r} of {model!r} a second time"
                )
            given[reader][item.id] = item, value
    known = {reader.code: reader for reader in ratings.readers()}
    for name in given:
        if name in known and known[name].role != IMPORTED:
            raise InputError(f"{files[0]}: reader {name!r} reads in this study; rename the imported one")
    for name, answers in given.items():
        if name not in known:
            ratings.invite(IMPORTED, name)
        _store(ratings, name, block, list(answers.values()))
    return {name: len(answers) for name, answers in given.items()}


def _store(ratings: Ratings, reader: str, block: Block, answers: list[tuple[Item, dict[str, Any]]]) -> None:
    """Stores what differs from the reader's newest answer; the same file again stores nothing."""
    earlier = {answer.item: answer for answer in ratings.current(reader)}
    for place, (item, value) in enumerate(answers):
        before = earlier.get(item.id)
        if before is not None and before.value == value:
            continue
        # a value that comes back after another one is a new answer
        named = [item.id, value, 0 if before is None else before.id]
        key = hashlib.sha256(orjson.dumps(named)).hexdigest()[:32]
        ratings.save(reader, item.id, key, block.id, list(item.shown), place, value, 0)


def _item(study: Study, block: Block, key: str, model: str) -> Item | None:
    for item in block.items:
        case = study.by_case[item.case]
        if item.kind is ItemKind.MAIN and item.shown == (model,) and key in (case.source, case.id):
            return item
    return None


def _lines(file: Path, block: Block) -> Iterator[tuple[int, str, str, str, dict[str, object]]]:
    """(line, reader, case, model, values) of a file in either form."""
    try:
        text = read_regular(file, str(file)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 text (byte {error.start})") from error
    try:
        table = list(
            read_csv(
                io.StringIO(text, newline=""), "\t" if file.suffix.lower() == ".tsv" else ",", strict=True
            )
        )
    except csv.Error as error:
        raise InputError(f"{file}: not a table: {error}") from error
    if len(table) < 2:
        raise InputError(f"{file}: no ratings in it")
    if twice := sorted(name for name, n in Counter(table[0]).items() if n > 1 and name):
        raise InputError(f"{file}: column {twice[0]!r} is there twice")
    header, names = table[0], [name for name, _ in block.criteria]
    yield from (
        _halves(file, table, block)
        if file.suffix.lower() == ".tsv"
        else _plain(file, header, table, names, block)
    )


def _plain(
    file: Path, header: list[str], table: list[list[str]], names: list[str], block: Block
) -> Iterator[tuple[int, str, str, str, dict[str, object]]]:
    key = next((name for name in ("source", "case") if name in header), None)
    for name in [key or "source", "model", *names]:
        if name not in header:
            raise InputError(f"{file}: no column {name!r}; needed: source or case, model, {', '.join(names)}")
    for line, cells in enumerate(table[1:], 2):
        if len(cells) != len(header):
            raise InputError(f"{file}: line {line}: {len(cells)} cells under {len(header)} columns")
        row = dict(zip(header, cells, strict=True))
        values = {name: _value(file, line, name, row[name], block) for name in names}
        yield line, row.get("reader") or file.stem, row[key or "source"], row["model"], values


def _value(file: Path, line: int, name: str, text: str, block: Block) -> object:
    if block.task is ReaderTask.ACCEPT:
        if text.strip().lower() not in _YES:
            raise InputError(f"{file}: line {line}: {name} {text!r}: yes or no")
        return _YES[text.strip().lower()]
    try:
        number = float(text)
    except ValueError as error:
        raise InputError(f"{file}: line {line}: {name} {text!r} is not a number") from error
    return int(number) if number.is_integer() else number


def _halves(
    file: Path, table: list[list[str]], block: Block
) -> Iterator[tuple[int, str, str, str, dict[str, object]]]:
    names = [name for name, _ in block.criteria]
    if block.task is not ReaderTask.RATE or len(names) != 2 or block.scale != HALVES:
        raise InputError(f"{file}: ImagenHub's ratings need a rate block of two criteria with --scale 0-2")
    for line, cells in enumerate(table[1:], 2):
        for model, cell in zip(table[0][1:], cells[1:], strict=False):
            if not cell.strip():
                continue
            try:
                pair = orjson.loads(cell)
                first, second = (float(part) for part in pair)
            except (orjson.JSONDecodeError, TypeError, ValueError) as error:
                raise InputError(f"{file}: line {line}: {model} {cell!r}: two numbers as [1, 0.5]") from error
            if not {first, second} <= {0.0, 0.5, 1.0}:
                raise InputError(f"{file}: line {line}: {model} {cell!r}: each is 0, 0.5 or 1")
            yield line, file.stem, cells[0], model, {names[0]: int(2 * first), names[1]: int(2 * second)}
