"""What an answer may say, task by task: checked when it arrives, since a browser can send anything."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, TypeGuard

import cv2
import numpy as np

from plantain.pixels.arrays import Mask
from plantain.pixels.decode import declared_size, decode_mask
from plantain.pixels.encode import encode_mask
from plantain.records import InputError
from plantain.review.study import Block, Case, Item, ReaderTask

LONGEST = 2000
"""Characters of a text."""
MOST_MARKS = 100
MOST_BYTES = 4 * 2**20
"""Bytes of one answer, its region included."""

LEFT, RIGHT, TIE = "left", "right", "tie"
NO_FINDING = "none"


class BadAnswer(InputError):
    """An answer that the question does not allow; one line."""


def checked(block: Block, item: Item, case: Case, answer: object) -> dict[str, Any]:
    """The answer as it is stored.

    Raises:
        BadAnswer: what is wrong, naming the field.
    """
    if not isinstance(answer, dict):
        raise BadAnswer("answer: an object is needed")
    value: dict[str, Any] = {}
    common = {
        "comment": _text(answer, "comment"),
        "marks": _marks(answer.get("marks", []), block, item, case),
    }
    if "cannot" in answer:
        reason = _text(answer, "cannot")
        if not reason.strip():
            raise BadAnswer("cannot: say in a few words why this cannot be judged")
        _only(answer, {"cannot", "comment", "marks"})
        return {"cannot": reason} | {key: kept for key, kept in common.items() if kept}
    match block.task:
        case ReaderTask.ACCEPT:
            value["criteria"] = _each(
                answer, "criteria", block, lambda v: isinstance(v, bool), "true or false"
            )
            value["codes"] = _codes(answer.get("codes", []), block)
        case ReaderTask.RATE:
            least, most = block.scale
            value["scores"] = _each(
                answer, "scores", block, lambda v: _whole(v) and least <= v <= most, f"{least} to {most}"
            )
        case ReaderTask.PAIR:
            value["better"] = _one_of(answer, "better", (LEFT, RIGHT, TIE))
        case ReaderTask.TWO_CHOICES:
            value["real"] = _one_of(answer, "real", (LEFT, RIGHT))
        case ReaderTask.REAL_OR_EDITED:
            value["real"] = _one_of(answer, "real", (True, False))
        case ReaderTask.RANK:
            ranks = answer.get("ranks")
            places = len(item.shown)
            if (
                not isinstance(ranks, list)
                or len(ranks) != places
                or not all(_whole(rank) and 1 <= rank <= places for rank in ranks)
            ):
                raise BadAnswer(f"ranks: {places} whole numbers from 1 to {places}, ties allowed")
            value["ranks"] = ranks
        case ReaderTask.WHICH_FINDING:
            value["finding"] = _one_of(answer, "finding", (*block.choices, NO_FINDING))
        case ReaderTask.DESCRIBE_OK:
            value["right"] = _one_of(answer, "right", (True, False))
            value["correction"] = _text(answer, "correction")
        case ReaderTask.CHOOSE_ROI:
            value |= _region(answer, block, case)
    _only(
        answer,
        {*value, "comment", "marks", *(("mask", "proposal") if block.task is ReaderTask.CHOOSE_ROI else ())},
    )
    return value | {key: kept for key, kept in common.items() if kept}


def region_of(value: Mapping[str, Any]) -> Mask:
    """The region of a stored answer, bool (H, W)."""
    return decode_mask(base64.b64decode(value["mask"]))


def is_right(block: Block, item: Item, slots: list[str], value: Mapping[str, Any]) -> bool | None:
    """Whether an answer is the known truth; None where none is known or the answer is none."""
    if not item.truth or "cannot" in value:
        return None
    return meant(block, slots, value) == item.truth


def meant(block: Block, slots: list[str], value: Mapping[str, Any]) -> str:
    """An answer in words that do not depend on places: which model, which finding, yes or no."""
    match block.task:
        case ReaderTask.ACCEPT:
            return "yes" if all(value["criteria"].values()) else "no"
        case ReaderTask.RATE:
            return " ".join(str(score) for score in value["scores"].values())
        case ReaderTask.PAIR | ReaderTask.TWO_CHOICES:
            where = value["better" if block.task is ReaderTask.PAIR else "real"]
            return TIE if where == TIE else slots[(LEFT, RIGHT).index(where)]
        case ReaderTask.REAL_OR_EDITED:
            return "real" if value["real"] else "edited"
        case ReaderTask.WHICH_FINDING:
            return str(value["finding"])
        case ReaderTask.DESCRIBE_OK:
            return "yes" if value["right"] else "no"
        case ReaderTask.RANK:
            return " ".join(
                f"{rank}:{model}" for rank, model in sorted(zip(value["ranks"], slots, strict=True))
            )
        case ReaderTask.CHOOSE_ROI:
            return f"proposal {value['proposal'] + 1}" if value.get("proposal") is not None else "drawn"


def _each(answer: dict[str, Any], field: str, block: Block, good: Any, allowed: str) -> dict[str, Any]:
    given = answer.get(field)
    names = [name for name, _ in block.criteria]
    if not isinstance(given, dict) or sorted(given) != sorted(names):
        raise BadAnswer(f"{field}: an answer to each of {', '.join(names)}")
    for name in names:
        if not good(given[name]):
            raise BadAnswer(f"{field}.{name}: {allowed}")
    return {name: given[name] for name in names}


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _one_of(answer: dict[str, Any], field: str, allowed: tuple[object, ...]) -> Any:
    value = answer.get(field)
    if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
        raise BadAnswer(f"{field}: one of {', '.join(map(str, allowed))}")
    return value


def _text(answer: dict[str, Any], field: str) -> str:
    value = answer.get(field, "")
    if not isinstance(value, str) or len(value) > LONGEST:
        raise BadAnswer(f"{field}: text of at most {LONGEST} characters")
    return value


def _codes(given: object, block: Block) -> list[str]:
    if not isinstance(given, list) or not all(
        isinstance(code, str) and code in block.codes for code in given
    ):
        raise BadAnswer(f"codes: any of {', '.join(block.codes)}")
    return sorted(set(given))


def _only(answer: dict[str, Any], known: set[str]) -> None:
    if strange := sorted(set(map(str, answer)) - known):
        raise BadAnswer(f"{strange[0]}: no such field; known: {', '.join(sorted(known))}")


def _marks(given: object, block: Block, item: Item, case: Case) -> list[dict[str, Any]]:
    """Points and boxes in pixels of the picture, each in a place and with a code of the rubric."""
    if not isinstance(given, list) or len(given) > MOST_MARKS:
        raise BadAnswer(f"marks: a list of at most {MOST_MARKS}")
    width, height = case.size
    places = max(1, len(item.shown))
    for mark in given:
        good = (
            isinstance(mark, dict)
            and set(mark) == {"x", "y", "w", "h", "code", "slot"}
            and all(isinstance(mark[k], (int, float)) and not isinstance(mark[k], bool) for k in "xywh")
            and 0 <= mark["x"] <= mark["x"] + mark["w"] <= width
            and 0 <= mark["y"] <= mark["y"] + mark["h"] <= height
            and mark["w"] >= 0
            and mark["h"] >= 0
            and _whole(mark["slot"])
            and 0 <= mark["slot"] < places
            and (mark["code"] in block.codes or mark["code"] == "other")
        )
        if not good:
            raise BadAnswer("marks: x, y, w, h inside the picture, a place and a code of the rubric")
    return given


def _region(answer: dict[str, Any], block: Block, case: Case) -> dict[str, Any]:
    """A proposal, or a drawn mask of the picture's own size, as the benchmark's format of masks has it."""
    proposal = answer.get("proposal")
    if proposal is not None and not (_whole(proposal) and 0 <= proposal < len(case.proposals)):
        raise BadAnswer(f"proposal: a number from 0 to {len(case.proposals) - 1}")
    mask = answer.get("mask")
    if mask is None:
        if proposal is None:
            raise BadAnswer("mask: draw a region, or choose a proposal")
        return {"proposal": proposal, "mask": None}
    if not block.own_region:
        raise BadAnswer("mask: this study lets readers choose only")
    if not isinstance(mask, str):
        raise BadAnswer("mask: a PNG as base64")
    try:
        data = base64.b64decode(mask, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadAnswer("mask: not base64") from error
    if declared_size(data) != tuple(case.size):
        raise BadAnswer(f"mask: a PNG of {case.size[0]} x {case.size[1]} pixels")
    plane = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
    if plane is None or not np.isin(plane, (0, 255)).all() or not plane.any() or plane.all():
        raise BadAnswer("mask: black outside, white inside, a part of the picture")
    return {"proposal": proposal, "mask": base64.b64encode(encode_mask(plane > 0)).decode("ascii")}
