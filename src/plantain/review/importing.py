"""Import ratings made outside plantain as answers of imported readers.

A table has one line for each output: `source` (task or sample) or `case`, `model`, one column for each criterion of the
study's rate or accept block, and optionally `reader` (default: the file's name).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from plantain.files.tables import read_table
from plantain.records import InputError
from plantain.review.answers import BadAnswer, checked
from plantain.review.ratings import IMPORTED, Ratings
from plantain.review.study import Block, Item, ItemKind, ReaderTask, Study

MAX_CODE = 64
"""Characters of a reader's code."""

_YES = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}

Given = dict[str, dict[str, tuple[Item, dict[str, Any]]]]
"""Reader -> item -> the item and its answer."""


def import_ratings(study: Study, ratings: Ratings, files: Sequence[Path]) -> dict[str, int]:
    """Store ratings from files; return the number of answers by reader. An invalid file changes nothing.

    Raises:
        InputError: names file, line, column and the allowed values.
    """
    block = next((one for one in study.blocks if one.task in (ReaderTask.RATE, ReaderTask.ACCEPT)), None)
    if block is None:
        raise InputError(f"{study.folder}: no rate or accept block to import ratings into")
    given: Given = {}
    for file in files:
        _read(study, block, file, given)
    known = {reader.code: reader for reader in ratings.readers()}
    for name in given:
        if name in known and known[name].role != IMPORTED:
            raise InputError(f"{files[0]}: reader {name!r} reads in this study; rename the imported one")
    for name, answers in given.items():
        if name not in known:
            ratings.invite(IMPORTED, name)
        _store(ratings, name, block, answers.values())
    return {name: len(answers) for name, answers in given.items()}


def _read(study: Study, block: Block, file: Path, given: Given) -> None:
    names = [name for name, _ in block.criteria]
    items = {
        (key, item.shown[0]): item
        for item in block.items
        if item.kind is ItemKind.MAIN
        for key in (study.by_case[item.case].id, study.by_case[item.case].source)
    }
    for line, row, _ in read_table(file).require("model", *names).whole_rows():
        where = f"{file}: line {line}"
        reader, key = row.get("reader") or file.stem, row.get("source") or row.get("case") or ""
        if not (reader.strip() and reader.isprintable() and len(reader) <= MAX_CODE):
            raise InputError(f"{where}: reader {reader[:MAX_CODE]!r}: up to {MAX_CODE} printable characters")
        item = items.get((key, row["model"]))
        if item is None:
            raise InputError(f"{where}: the study has no case {key!r} with an output of {row['model']!r}")
        field = "scores" if block.task is ReaderTask.RATE else "criteria"
        values = {name: _value(where, name, row[name], block) for name in names}
        try:
            value = checked(block, item, study.by_case[item.case], {field: values})
        except BadAnswer as error:
            raise InputError(f"{where}: {error}") from error
        if item.id in given.setdefault(reader, {}):
            raise InputError(f"{where}: reader {reader!r} rates {key!r} of {row['model']!r} a second time")
        given[reader][item.id] = item, value


def _store(
    ratings: Ratings, reader: str, block: Block, answers: Iterable[tuple[Item, dict[str, Any]]]
) -> None:
    """Store the answers that differ from the reader's newest ones; the same file again stores nothing."""
    earlier = {answer.item: answer for answer in ratings.current(reader)}
    for place, (item, value) in enumerate(answers):
        before = earlier.get(item.id)
        if before is None or before.value != value:
            named = [
                item.id,
                value,
                0 if before is None else before.id,
            ]  # a value that returns is a new answer
            key = hashlib.sha256(orjson.dumps(named)).hexdigest()[:32]
            ratings.save(reader, item.id, key, block.id, list(item.shown), place, value, 0)


def _value(where: str, name: str, text: str, block: Block) -> object:
    if block.task is ReaderTask.ACCEPT:
        if text.strip().lower() not in _YES:
            raise InputError(f"{where}: {name} {text!r}: yes or no")
        return _YES[text.strip().lower()]
    try:
        number = float(text)
    except ValueError as error:
        raise InputError(f"{where}: {name} {text!r} is not a number") from error
    return int(number) if number.is_integer() else number
