"""Reading Gemini's answers: text, picture, usage, and why there is none. Works on bodies, online or from a batch."""

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
"""The finish reason by which Google says that it has limited or closed the account."""

NO_PICTURE = frozenset({"NO_IMAGE", "IMAGE_OTHER"})
_IN_WORDS = re.compile(r"data:image/[\w.+-]+;base64,[\w+/=-]+")
FINISHED = frozenset({"", "STOP", "FINISH_REASON_UNSPECIFIED"})


def read_text(body: JsonObject) -> str:
    """Return the answer's words, without thoughts: of the first candidate that has any.

    Raises:
        Fault: blocked before or after generation, cut at its longest, or empty.
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
    """Return the last image of the first candidate that has one: it is paid for, however the answer ended.

    Raises:
        Fault: blocked, or there is no image.
        BadImage: what should be the image is not base64.
    """
    if images := _images(body):
        return from_base64(images[-1])
    candidate = _candidate(body)
    words, reason = one_line(_words(candidate, " ").strip()), text(candidate, "finishReason")
    if reason in FINISHED and not words and not _parts(candidate):
        raise answer_fault(OutcomeKind.NO_IMAGE, "the answer held neither picture nor text")
    why = f"text instead of a picture: {words}" if words else f"no picture ({reason or 'no reason given'})"
    raise answer_fault(OutcomeKind.NO_IMAGE, why)


def _images(body: JsonObject) -> list[str]:
    """Return the images of the first candidate that has any, in base64: thoughts only if there are no others.

    The last image among the thoughts is the final one, rendered: some servers do not send it again.
    """
    for thoughts in (False, True):
        for candidate in objects(body.get("candidates")):
            if text(candidate, "finishReason") in CODES["gemini_refused"]:
                continue
            parts = [part for part in _parts(candidate) if (part.get("thought") is True) is thoughts]
            inline = [child(part, "inlineData") or child(part, "inline_data") for part in parts]
            if images := [text(data, "data") for data in inline if data]:
                return images[-1:] if thoughts else images
    for candidate in objects(body.get("candidates")):  # gateways that speak chat put images into the words
        if images := _IN_WORDS.findall(_words(candidate)):
            return images
    return []


def _words(candidate: JsonObject, between: str = "") -> str:
    return between.join(text(part, "text") for part in _parts(candidate) if part.get("thought") is not True)


def read_usage(body: JsonObject) -> Usage:
    """Tokens, finish reason, served model and thought summary, by the token convention of `Usage`.

    Gemini counts thinking and what tools read beside answer and prompt; its total has all four. Where a part is left
    out, or a gateway has thinking within the answer as well, the total tells it.
    """
    usage = child(body, "usageMetadata")
    candidates = objects(body.get("candidates"))
    candidate = candidates[0] if candidates else {}
    thinking, read = count(usage, "thoughtsTokenCount"), count(usage, "promptTokenCount")
    if read is not None:
        read += count(usage, "toolUsePromptTokenCount") or 0
    # What the details have of an answer, its count has: one that is lower has left the picture out.
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
    """The tier that served: "serviceTier" of the Gemini API, or the traffic type that Vertex AI gives."""
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
    if reason in NO_PICTURE:
        raise answer_fault(OutcomeKind.NO_IMAGE, f"the model made no picture: {reason}")
    return chosen


def _parts(candidate: JsonObject) -> list[JsonObject]:
    return objects(child(candidate, "content").get("parts"))


def _of_images(usage: JsonObject, name: str) -> int | None:
    counts = [
        count(detail, "tokenCount")
        for detail in objects(usage.get(name))
        if text(detail, "modality").upper() == "IMAGE"
    ]
    return add_counts(*counts) or None  # a count of no tokens is none: pictures have some
