"""Read Gemini's answers, online or from a batch: text, image, usage and refusals."""

from __future__ import annotations

import re

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.bodies import add_counts, child, count, objects, text, whole_usage
from plantain.models.hosted.faults import CODES, answer_fault, cut_short
from plantain.models.hosted.images import from_base64
from plantain.pixels.decode import one_line
from plantain.records import OutcomeKind, Usage
from plantain.records.prices import USUAL_TIERS

BARRED = "PUP_LIMITED_DISABLED"
"""Finish reason for an account that Google has limited or closed."""

NO_IMAGE = frozenset({"NO_IMAGE", "IMAGE_OTHER"})
_IN_WORDS = re.compile(r"data:image/[\w.+-]+;base64,[\w+/=-]+")
FINISHED = frozenset({"", "STOP", "FINISH_REASON_UNSPECIFIED"})


def read_text(body: JsonObject) -> str:
    """Return the text of the first candidate that has any, without thoughts.

    Raises:
        Fault: blocked before or after generation, cut at the token limit, or empty.
    """
    candidate = _candidate(body)
    answer = _words(candidate)
    reason = text(candidate, "finishReason")
    if reason == "MAX_TOKENS":
        raise cut_short()
    if reason not in FINISHED:
        raise answer_fault(OutcomeKind.MALFORMED, f"the answer ended with {reason}")
    if not answer.strip():
        raise answer_fault(OutcomeKind.MALFORMED, "the answer was empty")
    return answer


def read_image(body: JsonObject) -> bytes:
    """Return the last image of the first candidate that has one, whatever its finish reason: it is billed.

    Raises:
        Fault: blocked, or without an image.
        BadImage: its data is not base64.
    """
    if images := _images(body):
        return from_base64(images[-1])
    candidate = _candidate(body)
    words, reason = one_line(_words(candidate, " ").strip()), text(candidate, "finishReason")
    if any("fileData" in part or "file_data" in part for part in _parts(candidate)):
        raise answer_fault(OutcomeKind.MALFORMED, "an address came instead of an image")
    if reason in FINISHED and not words and not _parts(candidate):
        raise answer_fault(OutcomeKind.NO_IMAGE, "the answer contained neither an image nor text")
    why = f"text instead of an image: {words}" if words else f"no image ({reason or 'no reason given'})"
    raise answer_fault(OutcomeKind.NO_IMAGE, why)


def _images(body: JsonObject) -> list[str]:
    """Return the images of the first candidate that has any, in base64; of thoughts only the last, if no others exist.

    The last image among the thoughts is the final one: some servers do not send it again.
    """
    for thoughts in (False, True):
        for candidate in objects(body.get("candidates")):
            if text(candidate, "finishReason") in CODES["gemini_refused"]:
                continue
            parts = [part for part in _parts(candidate) if (part.get("thought") is True) is thoughts]
            inline = [child(part, "inlineData") or child(part, "inline_data") for part in parts]
            if images := [text(data, "data") for data in inline if data]:
                return images[-1:] if thoughts else images
    for candidate in objects(body.get("candidates")):  # gateways put data URLs into the text
        if images := _IN_WORDS.findall(_words(candidate)):
            return images
    return []


def _words(candidate: JsonObject, between: str = "") -> str:
    return between.join(text(part, "text") for part in _parts(candidate) if part.get("thought") is not True)


def read_usage(body: JsonObject) -> Usage:
    """Return tokens, finish reason, served model and thought summary, by the token convention of `Usage`.

    Gemini counts thinking and tool use in addition to answer and prompt; its total includes all four. If a count is
    missing, or a gateway counts thinking within the answer, the total decides.
    """
    usage = child(body, "usageMetadata")
    candidates = objects(body.get("candidates"))
    candidate = candidates[0] if candidates else {}
    thinking, read = count(usage, "thoughtsTokenCount"), count(usage, "promptTokenCount")
    if read is not None:
        read += count(usage, "toolUsePromptTokenCount") or 0
    # A count below the sum of its details has left out the image.
    in_detail = add_counts(
        *(count(part, "tokenCount") for part in objects(usage.get("candidatesTokensDetails")))
    )
    answered = max(
        (n for n in (count(usage, "candidatesTokenCount"), in_detail) if n is not None), default=None
    )
    cached = count(usage, "cachedContentTokenCount")
    read, written = whole_usage(
        read,
        add_counts(answered, thinking),
        count(usage, "totalTokenCount"),
        least=answered,
        cached=cached,
        answered=any(map(_parts, candidates)),
    )
    thoughts = [text(part, "text") for part in _parts(candidate) if part.get("thought") is True]
    return Usage(
        served_model=text(body, "modelVersion"),
        input_tokens=read,
        output_tokens=written,
        thinking_tokens=thinking,
        cached_tokens=cached,
        cached_image_tokens=_of_images(usage, "cacheTokensDetails"),
        input_image_tokens=_of_images(usage, "promptTokensDetails"),
        output_image_tokens=_of_images(usage, "candidatesTokensDetails"),
        images=len(_images(body)) or None,
        tier=_tier(usage),
        finish_reason=text(candidate, "finishReason") or text(child(body, "promptFeedback"), "blockReason"),
        response_id=text(body, "responseId"),
        thought_summary="\n".join(filter(None, thoughts))[:20_000],
    )


def _tier(usage: JsonObject) -> str:
    """Return the served tier: "serviceTier" of the Gemini API or "trafficType" of Vertex AI."""
    tier = (text(usage, "serviceTier") or text(usage, "trafficType")).casefold().removeprefix("on_demand_")
    return "" if tier in USUAL_TIERS or tier.endswith("unspecified") else tier


def _candidate(body: JsonObject) -> JsonObject:
    blocked = text(child(body, "promptFeedback"), "blockReason")
    if blocked:
        raise answer_fault(OutcomeKind.REFUSED, f"blocked before generation: {blocked}")
    candidates = objects(body.get("candidates"))
    if not candidates:
        raise answer_fault(OutcomeKind.TRANSPORT, "the answer was empty")
    chosen = next((each for each in candidates if _words(each).strip()), candidates[0])
    reason = text(chosen, "finishReason")
    if reason in CODES["gemini_refused"]:
        message = one_line(text(chosen, "finishMessage"))
        raise answer_fault(
            OutcomeKind.REFUSED, f"declined by the provider: {reason}{f', {message}' if message else ''}"
        )
    if reason == BARRED:
        why = f"{reason}: this account is limited or disabled for violations of Google's policy"
        raise answer_fault(OutcomeKind.TRANSPORT, why, fatal=True)
    if reason in NO_IMAGE:
        raise answer_fault(OutcomeKind.NO_IMAGE, f"the model made no image: {reason}")
    return chosen


def _parts(candidate: JsonObject) -> list[JsonObject]:
    return objects(child(candidate, "content").get("parts"))


def _of_images(usage: JsonObject, name: str) -> int | None:
    counts = [
        count(detail, "tokenCount")
        for detail in objects(usage.get(name))
        if text(detail, "modality").upper() == "IMAGE"
    ]
    return add_counts(*counts) or None  # 0 means unknown: an image has tokens
