"""Readers of providers' bodies meet anything that is JSON: a value, a named fault or an unusable image; no crash."""

from __future__ import annotations

import pytest

from plantain.models.hosted.answers import scrub
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.gemini import models as gemini
from plantain.models.hosted.openai import images as openai
from plantain.records import OutcomeKind

THOUGHT = {"inlineData": {"mimeType": "image/png", "data": "YQ=="}, "thought": True}
FINAL = {"inline_data": {"mime_type": "image/png", "data": "Yg=="}}
WORDS = {"text": "Here is the image."}

Candidates = list[tuple[str, list[dict[str, object]]]]


def answer(candidates: Candidates) -> dict[str, object]:
    return {
        "candidates": [{"content": {"parts": parts}, "finishReason": reason} for reason, parts in candidates]
    }


@pytest.mark.parametrize(
    "candidates",
    [
        [("STOP", [{"text": "hm", "thought": True}, {"text": "Add "}, {"text": "air."}])],
        [("OTHER", [{"text": "hm", "thought": True}]), ("STOP", [{"text": "Add air."}])],
    ],
)
def test_thoughts_are_not_an_answer(candidates: Candidates) -> None:
    assert gemini.read_text(answer(candidates)) == "Add air."


def test_images_of_thoughts_are_not_counted() -> None:
    assert gemini.read_usage(answer([("STOP", [FINAL, FINAL, THOUGHT])])).images == 2


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        # "The last image within Thinking is also the final rendered image" (Google's guide to image generation)
        ([("STOP", [{"text": "hm", "thought": True}, {**FINAL, "thought": True}, WORDS])], b"b"),
        ([("STOP", [THOUGHT, {**FINAL, "thought": True}])], b"b"),
        ([("STOP", [{**THOUGHT, "thought": False}, FINAL, THOUGHT])], b"b"),
        ([("OTHER", []), ("STOP", [FINAL])], b"b"),
        ([("STOP", [THOUGHT]), ("STOP", [FINAL])], b"b"),
        ([("IMAGE_SAFETY", []), ("STOP", [WORDS, FINAL])], b"b"),
        ([("NO_IMAGE", [FINAL])], b"b"),
        ([("STOP", [FINAL, {"inlineData": {"mimeType": "image/png", "data": ""}}])], b"b"),
        ([("STOP", [{"text": "Here: ![edited](data:image/png;base64,Yg==)"}])], b"b"),
        ([("MAX_TOKENS", [FINAL, WORDS, THOUGHT])], b"b"),
        ([("IMAGE_SAFETY", [THOUGHT])], None),  # declined: the draft is not the edit
    ],
)
def test_a_paid_image_is_not_lost(candidates: Candidates, expected: bytes | None) -> None:
    if expected is None:
        with pytest.raises(Fault, match="IMAGE_SAFETY"):
            gemini.read_image(answer(candidates))
    else:
        assert gemini.read_image(answer(candidates)) == expected


@pytest.mark.parametrize(
    "images",
    [
        [{"b64_json": "Yg==", "url": "https://host/b.png"}],
        [{"b64_json": "Yg=="}, {"b64_json": None, "url": "https://host/b.png"}],
        [{"url": "data:image/png;base64,Yg=="}],
        [{"b64_json": "data:image/png;base64,Yg=="}],
    ],
)
def test_image_of_an_edit_is_read_and_an_address_next_to_it_ignored(images: list[dict[str, object]]) -> None:
    assert openai.read_image({"data": images}) == b"b"


def test_image_behind_an_address_is_not_fetched() -> None:
    with pytest.raises(Fault, match="an address came") as caught:
        openai.read_image({"data": [{"url": "https://host/b.png"}]})
    assert caught.value.outcome.kind is OutcomeKind.MALFORMED
    parts: list[dict[str, object]] = [
        {"fileData": {"mimeType": "image/png", "fileUri": "https://host/b.png"}}
    ]
    with pytest.raises(Fault, match="an address came"):
        gemini.read_image(answer([("STOP", parts)]))


@pytest.mark.parametrize("length", [999, 1001, 10**6])
def test_images_are_removed_from_recorded_bodies(length: int) -> None:
    kept = scrub({"a": [{"data": "A" * length}, "some words " * 10]})
    assert isinstance(kept, dict)
    kept_data = kept["a"][0]["data"]
    assert kept_data == ("A" * length if length <= 1000 else f"({length} characters of data)")
    assert kept["a"][1] == "some words " * 10
