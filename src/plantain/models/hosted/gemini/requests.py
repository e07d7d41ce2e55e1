"""Building Gemini's requests: contents and configuration, the same for the online and the batch transport."""

from __future__ import annotations

from collections.abc import Sequence

from google.genai import types

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.asking import Question
from plantain.models.hosted.gemini.provider import GeminiOptions
from plantain.roles import EncodedImage

FILTERS = (
    types.HarmCategory.HARM_CATEGORY_HARASSMENT,
    types.HarmCategory.HARM_CATEGORY_HATE_SPEECH,
    types.HarmCategory.HARM_CATEGORY_SEXUALLY_EXPLICIT,
    types.HarmCategory.HARM_CATEGORY_DANGEROUS_CONTENT,
)
"""The filters that a threshold applies to. Others are not adjustable."""


_SHARED = ("temperature", "top_p", "use_seed", "max_output_tokens", "safety")
TEXT_SAMPLING = (*_SHARED, "thinking", "thinking_budget", "service_tier", "media_resolution", "shown_side")
PICTURE_SAMPLING = (*_SHARED, "image_size", "service_tier", "output_format")
"""Settings that are sent, so that the answer depends on them beside prompt, pictures and seed."""


BESIDE = ("systemInstruction", "safetySettings", "serviceTier")
"""Parts of a configuration that stand beside `generationConfig` in a request."""

OURS = ("automaticFunctionCalling", "httpOptions", "shouldReturnHttpResponse")
"""Parts that are for the SDK and are never sent."""


def contents(parts: Sequence[str | EncodedImage]) -> list[types.Content]:
    """One user turn of texts and pictures, in order."""
    listed = [
        types.Part(text=part)
        if isinstance(part, str)
        else types.Part(inline_data=types.Blob(data=part.data, mime_type=part.media_type))
        for part in parts
    ]
    return [types.Content(role="user", parts=listed)]


def text_config(question: Question, options: GeminiOptions) -> types.GenerateContentConfig:
    """How a question is asked: plain text, or JSON by its schema."""
    return types.GenerateContentConfig(
        system_instruction=question.system or None,
        temperature=options.temperature,
        top_p=options.top_p,
        seed=_seed(question.seed, options),
        max_output_tokens=options.max_output_tokens * question.room,
        response_mime_type="application/json" if question.schema else None,
        response_json_schema=question.schema,
        thinking_config=_thinking(options),
        media_resolution=_resolution(options),
        service_tier=_tier(options),
        safety_settings=_safety(options),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )


def picture_config(seed: int, options: GeminiOptions) -> types.GenerateContentConfig:
    """How an edit is asked for: one square picture."""
    return types.GenerateContentConfig(
        temperature=options.temperature,
        top_p=options.top_p,
        seed=_seed(seed, options),
        max_output_tokens=options.max_output_tokens,
        response_modalities=["TEXT", "IMAGE"],
        image_config=types.ImageConfig(
            aspect_ratio="1:1",
            image_size=options.image_size or None,
            output_mime_type=f"image/{mime}" if (mime := options.get("output_format")) else None,
        ),
        service_tier=_tier(options),
        safety_settings=_safety(options),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )


def request_body(contents: list[types.Content], config: types.GenerateContentConfig) -> JsonObject:
    """A request as it is posted online, as JSON."""
    settings = config.model_dump(mode="json", by_alias=True, exclude_none=True)
    for name in OURS:
        settings.pop(name, None)
    body: JsonObject = {
        "contents": [turn.model_dump(mode="json", by_alias=True, exclude_none=True) for turn in contents]
    }
    for name in BESIDE:
        if name in settings:
            body[name] = settings.pop(name)
    if isinstance(body.get("systemInstruction"), str):
        body["systemInstruction"] = {"parts": [{"text": body["systemInstruction"]}], "role": "user"}
    body["generationConfig"] = settings
    return body


def _seed(seed: int, options: GeminiOptions) -> int | None:
    return seed % 2**31 if options.use_seed else None


def _thinking(options: GeminiOptions) -> types.ThinkingConfig | None:
    if not options.thinking and options.thinking_budget is None:
        return None
    if options.thinking == "none":
        return types.ThinkingConfig(thinking_budget=0)
    level = types.ThinkingLevel(options.thinking.upper()) if options.thinking else None
    return types.ThinkingConfig(
        include_thoughts=True, thinking_budget=options.thinking_budget, thinking_level=level
    )


def _resolution(options: GeminiOptions) -> types.MediaResolution | None:
    resolution = options.media_resolution
    return types.MediaResolution(f"MEDIA_RESOLUTION_{resolution.upper()}") if resolution else None


def _tier(options: GeminiOptions) -> types.ServiceTier | None:
    return types.ServiceTier(options.service_tier) if options.service_tier else None


def _safety(options: GeminiOptions) -> list[types.SafetySetting] | None:
    if not options.safety:
        return None
    threshold = types.HarmBlockThreshold(options.safety)
    return [types.SafetySetting(category=category, threshold=threshold) for category in FILTERS]
