"""Answers of providers in the shapes that they document, with the counts that a test wants.

Totals follow the providers' own rules: google-genai's `GenerateContentResponseUsageMetadata.total_token_count` is the
sum of prompt, candidates, tool use and thoughts; `total_tokens` of openai's usages is input and output.
"""

from __future__ import annotations

PIXEL = "iVBORw0KGgo="

Body = dict[str, object]


def gemini(
    prompt: int | None = 3_800,
    candidates: int | None = 350,
    thoughts: int | None = None,
    *,
    cached: int | None = None,
    tool: int | None = None,
    prompt_image: int | None = None,
    image: int | None = None,
    images: int = 0,
    traffic: str = "",
    finish: str = "STOP",
    blocked: str = "",
    total: int | None = None,
) -> Body:
    """An answer of `models.generateContent`; `image` tokens are in the details, which are missing without it."""
    usage: Body = {}
    for name, value in (
        ("promptTokenCount", prompt),
        ("candidatesTokenCount", candidates),
        ("thoughtsTokenCount", thoughts),
        ("cachedContentTokenCount", cached),
        ("toolUsePromptTokenCount", tool),
    ):
        if value is not None:
            usage[name] = value
    usage["totalTokenCount"] = (
        sum(n or 0 for n in (prompt, candidates, thoughts, tool)) if total is None else total
    )
    if prompt_image is not None:
        usage["promptTokensDetails"] = [
            {"modality": "TEXT", "tokenCount": (prompt or 0) - prompt_image},
            {"modality": "IMAGE", "tokenCount": prompt_image},
        ]
    if image is not None:
        usage["candidatesTokensDetails"] = [{"modality": "IMAGE", "tokenCount": image}]
    if traffic:
        usage["trafficType"] = traffic
    body: Body = {"usageMetadata": usage, "modelVersion": "m-001", "responseId": "r1"}
    if blocked:
        return body | {"promptFeedback": {"blockReason": blocked}}
    parts: list[Body] = [{"text": "words"}]
    parts += [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}] * images
    return body | {
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": finish, "index": 0}]
    }


def responses(
    read: int = 3_800,
    written: int = 1_250,
    reasoning: int = 900,
    *,
    cached: int = 0,
    cache_write: int = 0,
    tier: str = "default",
    status: str = "completed",
    why: str = "",
    refusal: str = "",
) -> Body:
    """An answer of `POST /v1/responses`."""
    content = {"type": "refusal", "refusal": refusal} if refusal else {"type": "output_text", "text": "words"}
    return {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "model": "m-2026",
        "service_tier": tier,
        "incomplete_details": {"reason": why} if why else None,
        "output": [{"type": "reasoning", "summary": []}, {"type": "message", "content": [content]}],
        "usage": {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": cache_write},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": read + written,
        },
    }


def chat(read: int, written: int, reasoning: int, total: int, *, cached: int = 0) -> Body:
    """An answer of `POST /v1/chat/completions`; servers differ in whether `written` holds the reasoning."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "words"}}
        ],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": total,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        },
    }


def images(
    text: int | None = 40,
    image: int = 323,
    written: int = 0,
    *,
    of_text: int | None = None,
    cached: int | None = None,
    cached_image: int | None = None,
    number: int = 1,
    quality: str = "",
) -> Body:
    """An answer of `POST /v1/images/edits`; without `text` no usage, without `of_text` no details of the output."""
    body: Body = {"created": 1, "data": [{"b64_json": PIXEL}] * number}
    if quality:
        body["quality"] = quality
    if text is None:
        return body
    details: Body = {"text_tokens": text, "image_tokens": image}
    if cached is not None:
        details["cached_tokens"] = cached
    if cached_image is not None:
        details["cached_tokens_details"] = {
            "text_tokens": (cached or 0) - cached_image,
            "image_tokens": cached_image,
        }
    usage: Body = {
        "input_tokens": text + image,
        "input_tokens_details": details,
        "output_tokens": written,
        "total_tokens": text + image + written,
    }
    if of_text is not None:
        usage["output_tokens_details"] = {"text_tokens": of_text, "image_tokens": written - of_text}
    return body | {"usage": usage}
