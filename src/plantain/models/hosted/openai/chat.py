"""OpenAI's chat format, as many servers speak it: building a request, asking, reading the answer."""

from __future__ import annotations

from plantain.models.hosted.answers import (
    JsonObject,
    child,
    count,
    objects,
    reported_cost,
    stated,
    text,
    whole_usage,
)
from plantain.models.hosted.faults import Fault, answer_fault, cut_short
from plantain.models.hosted.openai.compatible import Settings
from plantain.models.hosted.openai.responses import served_tier
from plantain.models.hosted.openai.wire import OpenAIWire, data_url
from plantain.models.hosted.writer_and_judge import LanguageModel, Question
from plantain.pixels.decode import one_line
from plantain.records import OutcomeKind, Usage
from plantain.roles import EncodedImage

PATH = "/chat/completions"

SAMPLING = ("temperature", "top_p", "use_seed", "thinking", "max_output_tokens", "media_resolution")
"""Settings that the answer depends on, in addition to the question."""

CUT = ("length", "max_tokens", "model_length", "model_context_window_exceeded")
BROKEN = ("abort", "error", "network_error", "insufficient_system_resource")
"""Finish reasons of half an answer, by OpenAI, Mistral, Z.ai, SGLang, OpenRouter and DeepSeek."""

CACHED = ("prompt_cache_hit_tokens", "cached_tokens")
"""Names of the cached token count of DeepSeek and Moonshot, outside of the prompt's details."""


def language_model(wire: OpenAIWire, options: Settings, limit: str) -> LanguageModel:
    """Make a language model of a server that is compatible with OpenAI, for writers, judges and describers.

    Once a server has refused a JSON schema, later requests omit it: the prompt describes the format too, and the caller
    checks every answer.
    """
    takes_schema = True

    async def send(question: Question) -> JsonObject:
        nonlocal takes_schema
        body = _request(wire.model, question, options, limit)
        if "response_format" in body and takes_schema:
            try:
                return await wire.post(PATH, body)
            except Fault as fault:
                if not _refuses_schema(fault):
                    raise
                takes_schema = False
        body.pop("response_format", None)
        return await wire.post(PATH, body)

    sampling = options.sampling(*SAMPLING)
    return LanguageModel(wire.name, sampling, send, read_text, read_usage, wire.aclose)


def _request(model: str, question: Question, options: Settings, limit: str) -> JsonObject:
    """Return a request; `limit` is the field that bounds its answer's tokens."""
    content = [_part(part, options) for part in question.parts]
    messages: list[JsonObject] = [{"role": "system", "content": question.system}] if question.system else []
    body: JsonObject = {
        "model": model,
        "messages": [*messages, {"role": "user", "content": content}],
        limit: options.max_output_tokens * question.room,
    }
    if question.schema:
        form = {"name": "report", "strict": True, "schema": question.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    seed = question.seed % 2**31 if options.use_seed else None
    settings = {"temperature": options.temperature, "top_p": options.top_p, "seed": seed}
    return body | stated({**settings, "reasoning_effort": options.thinking})


def read_text(body: JsonObject) -> str:
    """Read the answer's text. Raise Fault if it was refused, filtered, cut at its limit, or is empty."""
    choice = next(iter(objects(body.get("choices"))), {})
    message = child(choice, "message")
    refusal, reason = text(message, "refusal"), text(choice, "finish_reason").casefold()
    if refusal:
        raise answer_fault(OutcomeKind.REFUSED, f"the model declined: {one_line(refusal)}")
    if reason in ("content_filter", "sensitive"):
        raise answer_fault(OutcomeKind.REFUSED, "stopped by the provider's content filter")
    if reason in CUT:
        raise cut_short()
    if reason in BROKEN or child(choice, "error"):
        raise answer_fault(OutcomeKind.MALFORMED, f"the answer ended with {reason or 'an error'}")
    parts = [part for part in objects(message.get("content")) if part.get("type", "text") == "text"]
    answer = "".join(text(part, "text") for part in parts) or text(message, "content")
    if not answer.strip():
        raise answer_fault(OutcomeKind.MALFORMED, "the answer was empty")
    return answer


def read_usage(body: JsonObject) -> Usage:
    """Read token counts, finish reason and served model.

    OpenAI counts thinking within the completion; some servers count it separately, so that the total is larger.
    """
    usage = child(body, "usage")
    details, read = child(usage, "completion_tokens_details"), child(usage, "prompt_tokens_details")
    choice = next(iter(objects(body.get("choices"))), {})
    message = child(choice, "message")
    written = count(usage, "completion_tokens")
    counts = (count(read, "cached_tokens"), *(count(usage, name) for name in CACHED))
    cached = next((tokens for tokens in counts if tokens is not None), None)
    all_read, all_written = whole_usage(
        count(usage, "prompt_tokens"),
        written,
        count(usage, "total_tokens"),
        least=written,
        cached=cached,
        answered=bool(message.get("content") or message.get("refusal")),
    )
    return Usage(
        served_model=text(body, "model"),
        input_tokens=all_read,
        output_tokens=all_written,
        thinking_tokens=count(details, "reasoning_tokens"),
        cached_tokens=cached,
        cache_write_tokens=count(read, "cache_write_tokens"),
        input_image_tokens=count(read, "image_tokens"),
        tier=served_tier(body),
        finish_reason=text(choice, "finish_reason"),
        response_id=text(body, "id"),
        reported_usd=reported_cost(usage),
    )


def _part(part: str | EncodedImage, options: Settings) -> JsonObject:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    image = {"url": data_url(part), "detail": options.media_resolution or "high"}
    return {"type": "image_url", "image_url": image}


def _refuses_schema(fault: Fault) -> bool:
    reason = fault.outcome.reason.casefold()
    named = any(word in reason for word in ("response_format", "json_schema", "guided", "schema"))
    return fault.status in (400, 404, 422, 501) and named
