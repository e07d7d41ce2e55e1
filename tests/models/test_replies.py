"""Readers of providers' bodies meet anything that is JSON: a value, a named fault or an unusable picture; no crash."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plantain.models.hosted.bodies import scrub
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.gemini import replies as gemini
from plantain.models.hosted.openai import chat, images, responses
from plantain.pixels.decode import BadImage
from plantain.records import Usage

NAMES = [
    "candidates",
    "content",
    "parts",
    "text",
    "thought",
    "inlineData",
    "inline_data",
    "data",
    "finishReason",
    "finishMessage",
    "promptFeedback",
    "blockReason",
    "usageMetadata",
    "promptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "promptTokensDetails",
    "modality",
    "tokenCount",
    "modelVersion",
    "responseId",
    "output",
    "type",
    "status",
    "incomplete_details",
    "reason",
    "error",
    "code",
    "message",
    "refusal",
    "usage",
    "input_tokens",
    "output_tokens_details",
    "reasoning_tokens",
    "summary",
    "choices",
    "finish_reason",
    "b64_json",
    "url",
    "id",
    "model",
    "reasoning_content",
]
WORDS = [
    "STOP",
    "SAFETY",
    "MAX_TOKENS",
    "NO_IMAGE",
    "IMAGE",
    "message",
    "output_text",
    "refusal",
    "reasoning",
    "failed",
]
LEAF = (
    st.none()
    | st.booleans()
    | st.integers(-5, 10**6)
    | st.floats(allow_nan=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=5)
)
BODY = st.recursive(
    st.dictionaries(st.sampled_from(NAMES), LEAF, max_size=5),
    lambda inner: st.dictionaries(
        st.sampled_from(NAMES), inner | st.lists(inner | LEAF, max_size=3) | LEAF, max_size=5
    ),
    max_leaves=12,
)

READERS: list[Callable[[dict[str, object]], object]] = [
    gemini.read_text,
    gemini.read_image,
    responses.read_text,
    chat.read_text,
    images.read_image,
]
USAGES = [gemini.read_usage, responses.read_usage, chat.read_usage, images.read_usage]


@settings(max_examples=150, deadline=None)
@given(BODY)
def test_any_body_is_read_or_named(body: dict[str, object]) -> None:
    for read in READERS:
        try:
            assert read(body)
        except Fault as fault:
            assert not fault.outcome.ok
            assert fault.outcome.reason
            assert "\n" not in fault.outcome.reason
        except BadImage:
            pass
    for usage in USAGES:
        seen = usage(body)
        assert isinstance(seen, Usage)
        for count in (seen.input_tokens, seen.output_tokens, seen.thinking_tokens, seen.images):
            assert count is None or count >= 0


def test_thoughts_are_no_answer_and_are_kept_apart() -> None:
    parts = [{"text": "hm", "thought": True}, {"text": "Add "}, {"text": "air."}]
    body: dict[str, object] = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    assert gemini.read_text(body) == "Add air."
    assert gemini.read_usage(body).thought_summary == "hm"


def test_last_picture_that_is_no_thought_is_taken() -> None:
    def part(data: str, **more: object) -> dict[str, object]:
        return {"inlineData": {"mimeType": "image/png", "data": data}, **more}

    parts = [part("YQ=="), part("Yg=="), part("Yw==", thought=True)]
    body: dict[str, object] = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    assert gemini.read_image(body) == b"b"
    assert gemini.read_usage(body).images == 2


THOUGHT = {"inlineData": {"mimeType": "image/png", "data": "YQ=="}, "thought": True}
FINAL = {"inline_data": {"mime_type": "image/png", "data": "Yg=="}}
WORDS = {"text": "Here is the image."}


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        # "The last image within Thinking is also the final rendered image" (Google's guide to image generation)
        ([("STOP", [{"text": "hm", "thought": True}, {**FINAL, "thought": True}, WORDS])], b"b"),
        ([("STOP", [THOUGHT, {**FINAL, "thought": True}])], b"b"),
        ([("OTHER", []), ("STOP", [FINAL])], b"b"),
        ([("STOP", [THOUGHT]), ("STOP", [FINAL])], b"b"),
        ([("IMAGE_SAFETY", []), ("STOP", [WORDS, FINAL])], b"b"),
        ([("NO_IMAGE", [FINAL])], b"b"),
        ([("STOP", [{"text": "Here: ![edited](data:image/png;base64,Yg==)"}])], b"b"),
        ([("MAX_TOKENS", [FINAL, WORDS, THOUGHT])], b"b"),
        ([("IMAGE_SAFETY", [THOUGHT])], None),  # declined: the draft is not the edit
    ],
)
def test_image_that_is_paid_for_is_not_lost(
    candidates: list[tuple[str, list[dict[str, object]]]], expected: bytes | None
) -> None:
    body: dict[str, object] = {
        "candidates": [{"content": {"parts": parts}, "finishReason": reason} for reason, parts in candidates]
    }
    if expected is None:
        with pytest.raises(Fault, match="IMAGE_SAFETY"):
            gemini.read_image(body)
    else:
        assert gemini.read_image(body) == expected


def test_words_of_a_second_candidate_are_read() -> None:
    body: dict[str, object] = {
        "candidates": [
            {"content": {"parts": [{"text": "hm", "thought": True}]}, "finishReason": "OTHER"},
            {"content": {"parts": [{"text": "Add air."}]}, "finishReason": "STOP"},
        ]
    }
    assert gemini.read_text(body) == "Add air."


def test_thinking_is_billed_within_the_output_for_both_providers() -> None:
    """Gemini: 150 answered + 40 thought. OpenAI: 120, of which 30 thought."""
    ours = gemini.read_usage({"usageMetadata": {"candidatesTokenCount": 150, "thoughtsTokenCount": 40}})
    theirs = responses.read_usage(
        {"usage": {"output_tokens": 120, "output_tokens_details": {"reasoning_tokens": 30}}}
    )
    assert (ours.output_tokens, ours.thinking_tokens) == (190, 40)
    assert (theirs.output_tokens, theirs.thinking_tokens) == (120, 30)


@pytest.mark.parametrize("length", [999, 1001, 10**6])
def test_pictures_are_not_kept_in_what_is_recorded(length: int) -> None:
    kept = scrub({"a": [{"data": "A" * length}, "some words " * 10]})
    assert isinstance(kept, dict)
    said = kept["a"][0]["data"]
    assert said == ("A" * length if length <= 1000 else f"({length} characters of data)")
    assert kept["a"][1] == "some words " * 10


def test_long_words_are_cut() -> None:
    kept = scrub({"a": "a word " * 5000, "b": "my word"})
    assert isinstance(kept, dict)
    assert kept["a"].endswith("(cut from 35000 characters)")
    assert kept["b"] == "my word"
