"""The blind form of a judge: it compares two images without the instruction, which a second call adds.

The seed of the call decides which image is shown as A; the order is recorded, so that position bias can be measured. In
both turns the fixed text comes before the images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from plantain.models.hosted.answers import JsonObject, Unreadable, object_schema, read_object
from plantain.models.hosted.prompts import with_images
from plantain.records import InputError, Rubric
from plantain.roles import EncodedImage, JudgeRequest, LookRequest

BLIND_TEMPLATES = "look", "blind"
"""Prompts of the two turns of the blind form."""

OWN_FORM = frozenset({"judge_add", "judge_remove", "rubric"})
"""Our prompts for a rubric's questions; a rubric that names another prompt has a wording of its own."""

_TEXT: JsonObject = {"type": "string"}
_FLAG: JsonObject = {"type": "boolean"}
_NUMBER: JsonObject = {"type": "number"}
_LISTS: dict[str, JsonObject] = {
    "differences": {"place": _TEXT, "in_a": _TEXT, "in_b": _TEXT, "confidence": _NUMBER},
    "findings": {"evidence": _TEXT, "name": _TEXT, "in_a": _FLAG, "in_b": _FLAG, "confidence": _NUMBER},
}


def look_schema() -> JsonObject:
    """Return the JSON schema of the first turn's answer, with the evidence first."""
    return object_schema(
        {name: {"type": "array", "items": object_schema(entry)} for name, entry in _LISTS.items()}
    )


@dataclass(frozen=True, slots=True)
class BlindDescription:
    """A blind judge's description of two images.

    Attributes:
        edited_first: True if the edit was shown as image A.
        lines: one for each difference and finding, in the judge's words.
    """

    edited_first: bool
    lines: tuple[str, ...]

    @property
    def letters(self) -> tuple[str, str]:
        """Return the letters of (original, edit): ("A", "B"), or ("B", "A") if the edit was shown first."""
        return ("B", "A") if self.edited_first else ("A", "B")

    def description(self) -> str:
        """Return the description as text, for the record of a verdict."""
        original, edited = self.letters
        return "\n".join((f"Image {original} is the original, image {edited} the edit.", *self.lines))


def check_blind(rubric: Rubric) -> None:
    """Raise InputError for a rubric with a wording of its own: the blind form has its own prompts."""
    other = [name for name in rubric.asked.templates if name not in OWN_FORM]
    if any(criterion.key for criterion in rubric.criteria):
        other = ["bare answers"]
    if other or rubric.asked.system != "system":
        raise InputError(
            f'form = "blind": the rubric {rubric.name} uses {other[0] if other else rubric.asked.system}, a wording of '
            'its own; the blind form is for the judge of a build: use form = "plain" here'
        )


def blindly_shown(
    text: str, request: LookRequest | JudgeRequest, edited_first: bool
) -> list[str | EncodedImage]:
    """Return a prompt's text with the two images at their marks, `<a>` and `<b>`."""
    a, b = (request.edited, request.original) if edited_first else (request.original, request.edited)
    return with_images(text, {"a": [a], "b": [b]})


def read_look(text: str, *, edited_first: bool) -> str:
    """Parse a blind judge's first answer; return it as JSON with order, differences and findings.

    Raises:
        Unreadable: no such object was found, or a field of an entry is missing or invalid.
    """
    found = read_object(text, set(_LISTS))
    kept: JsonObject = {"edited_first": edited_first}
    for name, asked in _LISTS.items():
        entries = found.get(name)
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise Unreadable(f"{name} must be a list of objects")
        kept[name] = [_entry(entry, name, asked) for entry in entries]
    return orjson.dumps(kept).decode()


def _entry(entry: JsonObject, name: str, asked: JsonObject) -> JsonObject:
    shown: JsonObject = {}
    for key, schema in asked.items():
        value = entry.get(key)
        if schema == _TEXT and not (isinstance(value, str) and value.strip()):
            raise Unreadable(f"{name}: {key} must be a text")
        if schema == _FLAG and not isinstance(value, bool):
            raise Unreadable(f"{name}: {key} must be true or false")
        if schema == _NUMBER and not _is_share(value):
            continue  # the confidence is optional
        shown[key] = value
    return shown


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def seen_of(look: str) -> BlindDescription:
    """Read a description back from the journal's text (`read_look`). Raise ValueError if `look` is empty."""
    if not look:
        raise ValueError("a judge that looks first needs its first answer in `seen`")
    report = orjson.loads(look)
    lines = [
        f"Difference, {one['place']}: in A {one['in_a']}; in B {one['in_b']}{_sure(one)}"
        for one in report["differences"]
    ] or ["No difference between A and B."]
    lines += [
        f"Finding, {one['name']}, in {_where(one)}: {one['evidence']}{_sure(one)}"
        for one in report["findings"]
    ] or ["No finding in A or in B."]
    return BlindDescription(report["edited_first"], tuple(lines))


def _where(entry: dict[str, object]) -> str:
    letters: Sequence[str] = [letter for letter, key in (("A", "in_a"), ("B", "in_b")) if entry[key]]
    return " and ".join(letters) or "neither"


def _sure(entry: dict[str, object]) -> str:
    return f" (sure to {entry['confidence']:g})" if "confidence" in entry else ""
