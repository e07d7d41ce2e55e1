"""The allowed content of an answer to each task, checked once when the answer arrives: from a reader, or from a table.

A table has one line for each output: `source` (task or sample) or `case`, `model`, one column for each criterion of the
study's rate or accept block, and optionally `reader` (default: the file's name).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import cv2
import numpy as np
import orjson

from plantain.files.tables import read_table
from plantain.pixels.arrays import Mask
from plantain.pixels.decode import declared_size, decode_mask
from plantain.pixels.encode import encode_mask
from plantain.records import InputError
from plantain.review.ratings import IMPORTED, Ratings
from plantain.review.study import Block, Case, Item, ReaderTask, Study

MAX_TEXT = 2000
"""Characters of a text."""
MAX_BYTES = 4 * 2**20
"""Bytes of one answer, including its region."""

LEFT, RIGHT, TIE = "left", "right", "tie"


class BadAnswer(InputError):
    """Raised for an answer that the question does not allow; the message is one line."""


def checked(block: Block, item: Item, case: Case, answer: object) -> dict[str, Any]:
    """Check a reader's answer and return it in the form to store. Raise BadAnswer, naming the invalid field."""
    if not isinstance(answer, dict):
        raise BadAnswer("answer: an object is needed")
    given = dict(answer)
    comment = _text(given.pop("comment", ""), "comment")
    if "cannot" in given:
        value: dict[str, Any] = {"cannot": _text(given.pop("cannot"), "cannot")}
        if not value["cannot"].strip():
            raise BadAnswer("cannot: give the reason in a few words")
    else:
        value = _task_answer(block, item, case, given)
    if given:
        raise BadAnswer(f"{min(map(str, given))}: no such field; known: {', '.join([*value, 'comment'])}")
    return value | ({"comment": comment} if comment else {})


def _task_answer(block: Block, item: Item, case: Case, given: dict[str, Any]) -> dict[str, Any]:
    """Take the fields of the block's task out of `given`; return them checked."""
    names = [name for name, _ in block.criteria]
    match block.task:
        case ReaderTask.ACCEPT:
            criteria, codes = given.pop("criteria", None), given.pop("codes", [])
            if not _has(criteria, names, lambda value: isinstance(value, bool)):
                raise BadAnswer(f"criteria: true or false for each of {', '.join(names)}")
            if not isinstance(codes, list) or any(code not in block.codes for code in codes):
                raise BadAnswer(f"codes: any of {', '.join(block.codes)}")
            return {"criteria": {name: criteria[name] for name in names}, "codes": sorted(set(codes))}
        case ReaderTask.RATE:
            (least, most), scores = block.scale, given.pop("scores", None)
            if not _has(scores, names, lambda value: _whole(value) and least <= value <= most):
                raise BadAnswer(f"scores: {least} to {most} for each of {', '.join(names)}")
            return {"scores": {name: scores[name] for name in names}}
        case ReaderTask.RANK:
            ranks, places = given.pop("ranks", None), len(item.shown)
            if not isinstance(ranks, list) or not (
                len(ranks) == places and all(_whole(rank) and 1 <= rank <= places for rank in ranks)
            ):
                raise BadAnswer(f"ranks: {places} whole numbers from 1 to {places}, ties allowed")
            return {"ranks": ranks}
        case ReaderTask.PAIR:
            return {"better": _one_of(given, "better", (LEFT, RIGHT, TIE))}
        case ReaderTask.REAL_OR_EDITED:
            return {"real": _one_of(given, "real", (True, False))}
        case ReaderTask.DESCRIBE_OK:
            right = _one_of(given, "right", (True, False))
            return {"right": right, "correction": _text(given.pop("correction", ""), "correction")}
        case ReaderTask.CHOOSE_ROI:
            return _region(given.pop("proposal", None), given.pop("mask", None), case)


def region_of(value: Mapping[str, Any]) -> Mask:
    """Decode the region in a stored answer: bool (H, W), True inside."""
    return decode_mask(base64.b64decode(value["mask"]))


def in_words(block: Block, slots: Sequence[str], value: Mapping[str, Any]) -> str:
    """Format an answer in words that name no positions: a model, yes or no.

    `slots` lists the models in the order of their positions on the page, `value` is the answer as `checked` returns it.
    """
    match block.task:
        case ReaderTask.ACCEPT:
            return "yes" if all(value["criteria"].values()) else "no"
        case ReaderTask.RATE:
            return " ".join(str(score) for score in value["scores"].values())
        case ReaderTask.PAIR:
            where = value["better"]
            return TIE if where == TIE else slots[(LEFT, RIGHT).index(where)]
        case ReaderTask.REAL_OR_EDITED:
            return "real" if value["real"] else "edited"
        case ReaderTask.DESCRIBE_OK:
            return "yes" if value["right"] else "no"
        case ReaderTask.RANK:
            return " ".join(
                f"{rank}:{model}" for rank, model in sorted(zip(value["ranks"], slots, strict=True))
            )
        case ReaderTask.CHOOSE_ROI:
            return f"proposal {value['proposal'] + 1}" if value.get("proposal") is not None else "drawn"


def _has(given: object, names: Sequence[str], good: Any) -> bool:
    return (
        isinstance(given, dict) and set(given) == set(names) and all(good(value) for value in given.values())
    )


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _one_of(given: dict[str, Any], field: str, allowed: tuple[object, ...]) -> Any:
    value = given.pop(field, None)
    if not any(type(value) is type(one) and value == one for one in allowed):
        raise BadAnswer(f"{field}: one of {', '.join(map(str, allowed))}")
    return value


def _text(value: object, field: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise BadAnswer(f"{field}: text of at most {MAX_TEXT} characters")
    return value


def _region(proposal: object, mask: object, case: Case) -> dict[str, Any]:
    """Check a proposal, or a drawn mask of the image's own size, as in the benchmark's format of masks."""
    if proposal is not None and not (_whole(proposal) and 0 <= proposal < len(case.proposals)):
        raise BadAnswer(f"proposal: a number from 0 to {len(case.proposals) - 1}")
    if mask is None:
        if proposal is None:
            raise BadAnswer("mask: draw a region, or choose a proposal")
        return {"proposal": proposal, "mask": None}
    try:
        data = base64.b64decode(mask, validate=True) if isinstance(mask, str) else b""
    except (binascii.Error, ValueError):
        data = b""
    if declared_size(data) != case.size:
        raise BadAnswer(f"mask: a PNG of {case.size[0]} x {case.size[1]} pixels as base64")
    plane = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
    if plane is None or not np.isin(plane, (0, 255)).all() or not plane.any() or plane.all():
        raise BadAnswer("mask: black outside, white inside, a part of the image")
    return {"proposal": proposal, "mask": base64.b64encode(encode_mask(plane > 0)).decode("ascii")}


MAX_CODE = 64
"""Characters of a reader's code."""

_YES = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}

Given = dict[str, dict[str, tuple[Item, dict[str, Any]]]]
"""Reader -> item -> the item and its answer."""


def import_ratings(study: Study, ratings: Ratings, files: Sequence[Path]) -> dict[str, int]:
    """Store ratings from files; return the number of answers by reader. An invalid file changes nothing.

    Raises:
        InputError: a rating is invalid; the message names file, line, column and the allowed values.
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
        for key in (study.by_case[item.case].id, study.by_case[item.case].source)
    }
    for line, row, _ in read_table(file).require("model", *names).whole_rows():
        where = f"{file}: line {line}"
        reader, key = row.get("reader") or file.stem, row.get("source") or row.get("case") or ""
        if not (reader.strip() and reader.isprintable() and len(reader) <= MAX_CODE):
            raise InputError(f"{where}: reader {reader[:MAX_CODE]!r}: up to {MAX_CODE} printable characters")
        item = items.get((key, row["model"]))
        if item is None:
            models = ", ".join(sorted({model for _, model in items})[:9])
            cases = ", ".join(sorted({study.by_case[one.case].id for one in items.values()})[:9])
            raise InputError(
                f"{where}: the study has no case {key!r} with an output of {row['model']!r}; models: {models}; "
                f"cases: {cases}"
            )
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
            named = [item.id, value, before.id if before else 0]  # a value that returns is a new answer
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
