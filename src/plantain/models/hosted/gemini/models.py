"""Gemini's requests and answers as JSON, online and in a batch, the models that use them, and the connection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from plantain.files.secrets import Secret
from plantain.models.hosted.answers import (
    JsonObject,
    add_counts,
    child,
    count,
    from_base64,
    objects,
    stated,
    text,
    to_base64,
    whole_usage,
)
from plantain.models.hosted.connection import Wire
from plantain.models.hosted.editor import ImageModel
from plantain.models.hosted.faults import CODES, answer_fault, cut_short, read_body
from plantain.models.hosted.gemini.provider import GeminiOptions
from plantain.models.hosted.writer_and_judge import LanguageModel, Question
from plantain.models.registry import image_tokens
from plantain.pixels.decode import one_line
from plantain.records import OutcomeKind, Usage
from plantain.records.tasks import USUAL_TIERS
from plantain.roles import EncodedImage
from plantain.roles.options import ProviderOptions

if TYPE_CHECKING:
    from plantain.models.hosted.gemini.batch import GeminiBatch

FILTERS = (
    "HARM_CATEGORY_HARASSMENT",
    "HARM_CATEGORY_HATE_SPEECH",
    "HARM_CATEGORY_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_DANGEROUS_CONTENT",
)
"""The filters that a threshold applies to; others are not adjustable."""

MOST_IMAGES = 14
"""In one request, by the page of the image models."""

_SHARED = ("temperature", "top_p", "use_seed", "max_output_tokens", "safety")
TEXT_SAMPLING = (*_SHARED, "thinking", "media_resolution")
IMAGE_SAMPLING = (*_SHARED, "image_size")
"""Settings that are sent, so that the answer depends on them."""


def language_model(wire: GeminiWire | GeminiBatch, options: GeminiOptions) -> LanguageModel:
    """Make a Gemini language model, for writers, judges and describers."""

    async def send(question: Question) -> JsonObject:
        return await wire.generate(text_request(question, options))

    sampling = options.sampling(*TEXT_SAMPLING)
    return LanguageModel(wire.name, sampling, send, read_text, read_usage, wire.aclose)


def image_model(wire: GeminiWire | GeminiBatch, options: GeminiOptions) -> ImageModel:
    """Make a Gemini image model, for editors; missing image tokens are inferred from the requested size."""

    async def send(parts: Sequence[str | EncodedImage], seed: int) -> JsonObject:
        return await wire.generate(image_request(parts, seed, options))

    def usage(body: JsonObject) -> Usage:
        tokens = image_tokens(options.context.listed or wire.name, options.image_size)
        return read_usage(body).with_image_tokens(tokens)

    sampling = options.sampling(*IMAGE_SAMPLING)
    return ImageModel(wire.name, sampling, send, read_image, usage, wire.aclose, MOST_IMAGES)


def text_request(question: Question, options: GeminiOptions) -> JsonObject:
    """Make the JSON request for a question: for plain text, or for JSON by the question's schema."""
    settings = _sampling(question.seed, options, question.room)
    if question.schema:
        settings |= {"responseMimeType": "application/json", "responseJsonSchema": question.schema}
    if options.thinking == "none":
        settings["thinkingConfig"] = {"thinkingBudget": 0}
    elif options.thinking:
        settings["thinkingConfig"] = {"includeThoughts": True, "thinkingLevel": options.thinking.upper()}
    if options.media_resolution:
        settings["mediaResolution"] = f"MEDIA_RESOLUTION_{options.media_resolution.upper()}"
    return _request(question.parts, settings, options, question.system)


def image_request(parts: Sequence[str | EncodedImage], seed: int, options: GeminiOptions) -> JsonObject:
    """Make the JSON request for one square edited image from texts and images."""
    wanted: JsonObject = {"aspectRatio": "1:1", "imageSize": options.image_size or None}
    settings = _sampling(seed, options)
    settings |= {"responseModalities": ["TEXT", "IMAGE"], "imageConfig": stated(wanted)}
    return _request(parts, settings, options)


def _request(
    parts: Sequence[str | EncodedImage], settings: JsonObject, options: GeminiOptions, system: str = ""
) -> JsonObject:
    body: JsonObject = {
        "contents": [{"role": "user", "parts": [_part(part) for part in parts]}],
        "generationConfig": settings,
    }
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}], "role": "user"}
    if options.safety:
        body["safetySettings"] = [{"category": one, "threshold": options.safety} for one in FILTERS]
    return body


def _part(part: str | EncodedImage) -> JsonObject:
    if isinstance(part, str):
        return {"text": part}
    return {"inlineData": {"mimeType": part.media_type, "data": to_base64(part.data)}}


def _sampling(seed: int, options: GeminiOptions, room: int = 1) -> JsonObject:
    return stated(
        {
            "temperature": options.temperature,
            "topP": options.top_p,
            "seed": seed % 2**31 if options.use_seed else None,
            "maxOutputTokens": options.max_output_tokens * room,
        }
    )


BARRED = "PUP_LIMITED_DISABLED"
"""Finish reason for an account that Google has limited or closed."""

NO_IMAGE = frozenset({"NO_IMAGE", "IMAGE_OTHER"})
_IN_WORDS = re.compile(r"data:image/[\w.+-]+;base64,[\w+/=-]+")
FINISHED = frozenset({"", "STOP", "FINISH_REASON_UNSPECIFIED"})


def read_text(body: JsonObject) -> str:
    """Read the answer's text, without thoughts, from the first candidate that has any.

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
    """Read the answer's image: the last one of the first candidate with an image, whatever its finish reason.

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
            if images := [encoded for data in inline if (encoded := text(data, "data"))]:
                return images[-1:] if thoughts else images
    for candidate in objects(body.get("candidates")):  # gateways put data URLs into the text
        if images := _IN_WORDS.findall(_words(candidate)):
            return images
    return []


def _words(candidate: JsonObject, between: str = "") -> str:
    return between.join(text(part, "text") for part in _parts(candidate) if part.get("thought") is not True)


def read_usage(body: JsonObject) -> Usage:
    """Read token counts, finish reason and served model, by the token convention of `Usage`.

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


ADDRESS = "https://generativelanguage.googleapis.com"


class GeminiWire(Wire):
    """The connection to one Gemini model, with an API key."""

    version = "v1beta"
    """Thinking levels and image settings are not all in v1."""

    def __init__(self, name: str, key: Secret, options: ProviderOptions, address: str = ADDRESS) -> None:
        super().__init__(name, options.base_url or address, options)
        self.key = key
        self.model_path = f"/models/{quote(self.model)}"

    def url_of(self, path: str) -> str:
        return f"{self.address}{path if path.startswith('/upload/') else f'/{self.version}{path}'}"

    async def sign(self) -> dict[str, str]:
        return {"x-goog-api-key": self.key.reveal()}

    async def generate(self, body: JsonObject) -> JsonObject:
        """Send a request and return the answer's body. Raise Fault if there is none."""
        reply = await self.request("POST", f"{self.model_path}:generateContent", body)
        answer = read_body(reply.content)
        if answer.get("error") and "candidates" not in answer:
            raise self.refused(reply)
        return answer
