"""Gemini's requests as JSON, the same online and in a batch, and the models made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.asking import LanguageModel, Question
from plantain.models.hosted.bodies import stated
from plantain.models.hosted.editor import ImageModel
from plantain.models.hosted.gemini.provider import GeminiOptions
from plantain.models.hosted.gemini.replies import read_image, read_text, read_usage
from plantain.models.hosted.images import to_base64
from plantain.models.hosted.known import image_tokens
from plantain.records import Usage
from plantain.roles import EncodedImage

if TYPE_CHECKING:
    from plantain.models.hosted.gemini.batch import GeminiBatch
    from plantain.models.hosted.gemini.wire import GeminiWire

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
TEXT_SAMPLING = (*_SHARED, "thinking", "thinking_budget", "service_tier", "media_resolution", "shown_side")
IMAGE_SAMPLING = (*_SHARED, "image_size", "service_tier", "output_format")
"""Settings that are sent, so that the answer depends on them."""


def language_model(wire: GeminiWire | GeminiBatch, options: GeminiOptions) -> LanguageModel:
    """Return a Gemini model that answers with text."""

    async def send(question: Question) -> JsonObject:
        return await wire.generate(text_request(question, options))

    sampling = options.sampling(*TEXT_SAMPLING)
    return LanguageModel(wire.name, sampling, send, read_text, read_usage, wire.aclose)


def image_model(wire: GeminiWire | GeminiBatch, options: GeminiOptions) -> ImageModel:
    """Return a Gemini model that edits images; missing image tokens are inferred from the requested size."""

    async def send(parts: Sequence[str | EncodedImage], seed: int, mask: EncodedImage | None) -> JsonObject:
        return await wire.generate(image_request(parts, seed, options))

    def usage(body: JsonObject) -> Usage:
        tokens = image_tokens(options.listed or wire.name, options.image_size)
        return read_usage(body).with_image_tokens(tokens)

    sampling = options.sampling(*IMAGE_SAMPLING)
    return ImageModel(wire.name, sampling, send, read_image, usage, wire.aclose, MOST_IMAGES)


def text_request(question: Question, options: GeminiOptions) -> JsonObject:
    """Return a question's request: for plain text, or for JSON by its schema."""
    settings = _sampling(question.seed, options, question.room)
    if question.schema:
        settings |= {"responseMimeType": "application/json", "responseJsonSchema": question.schema}
    if options.thinking == "none":
        settings["thinkingConfig"] = {"thinkingBudget": 0}
    elif options.thinking or options.thinking_budget is not None:
        level = options.thinking.upper() or None
        budget = options.thinking_budget
        thinking = {"includeThoughts": True, "thinkingBudget": budget, "thinkingLevel": level}
        settings["thinkingConfig"] = stated(thinking)
    if options.media_resolution:
        settings["mediaResolution"] = f"MEDIA_RESOLUTION_{options.media_resolution.upper()}"
    return _request(question.parts, settings, options, question.system)


def image_request(parts: Sequence[str | EncodedImage], seed: int, options: GeminiOptions) -> JsonObject:
    """Return the request for one square edited image."""
    wanted: JsonObject = {"aspectRatio": "1:1", "imageSize": options.image_size or None}
    if output_format := options.get("output_format"):
        wanted["imageOutputOptions"] = {"mimeType": f"image/{output_format}"}
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
    if options.service_tier:
        body["serviceTier"] = options.service_tier
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
