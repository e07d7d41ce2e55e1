"""OpenAI's Responses format: building a request, asking, reading the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plantain.models.hosted.answers import JsonObject, child, count, objects, stated, text, whole_usage
from plantain.models.hosted.faults import Fault, answer_fault, cut_short, failed_answer
from plantain.models.hosted.openai.provider import OpenAIOptions
from plantain.models.hosted.openai.wire import OpenAIWire, data_url
from plantain.models.hosted.writer_and_judge import LanguageModel, Question
from plantain.pixels.decode import one_line
from plantain.records import OutcomeKind, Usage
from plantain.records.tasks import USUAL_TIERS
from plantain.roles import EncodedImage

if TYPE_CHECKING:
    from plantain.models.hosted.openai.batch import OpenAIBatch

PATH = "/responses"

SAMPLING = ("temperature", "top_p", "thinking", "max_output_tokens", "media_resolution")
"""Settings that the answer depends on, in addition to the question; this format takes no seed."""


def language_model(wire: OpenAIWire | OpenAIBatch, options: OpenAIOptions) -> LanguageModel:
    """Make an OpenAI language model, for writers, judges and describers."""

    async def send(question: Question) -> JsonObject:
        return await wire.post(PATH, _request(wire.model, question, options))

    sampling = options.sampling(*SAMPLING)
    return LanguageModel(wire.name, sampling, send, read_text, read_usage, wire.aclose)


def _request(model: str, question: Question, options: OpenAIOptions) -> JsonObject:
    """Return a request; the provider is asked to store nothing."""
    content = [_part(part, options) for part in question.parts]
    body: JsonObject = {
        "model": model,
        "instructions": question.system,
        "input": [{"role": "user", "content": content}],
        "max_output_tokens": options.max_output_tokens * question.room,
        "store": False,
    }
    if question.schema:
        form = {"type": "json_schema", "name": "report", "strict": True, "schema": question.schema}
        body["text"] = {"format": form}
    if options.thinking:
        body["reasoning"] = {"effort": options.thinking}
    return body | stated({"temperature": options.temperature, "top_p": options.top_p})


def read_text(body: JsonObject) -> str:
    """Read the answer's text. Raise Fault if it was refused, failed, was cut at its limit, or is empty."""
    contents = _contents(body)
    refusals = [text(part, "refusal") for part in contents if part.get("type") == "refusal"]
    if refusals:
        raise answer_fault(OutcomeKind.REFUSED, f"the model declined: {one_line(' '.join(refusals))}")
    status = text(body, "status")
    if status == "incomplete":
        why = text(child(body, "incomplete_details"), "reason")
        if why == "content_filter":
            raise answer_fault(OutcomeKind.REFUSED, "stopped by the provider's content filter")
        if why == "max_output_tokens":
            raise cut_short()
        raise answer_fault(OutcomeKind.MALFORMED, f"the answer was cut ({why or 'no reason given'})")
    if status in ("failed", "cancelled"):
        raise Fault(failed_answer(text(body, "model") or "this model", child(body, "error")), 200)
    answer = "".join(text(part, "text") for part in contents if part.get("type") == "output_text")
    if not answer.strip():
        raise answer_fault(OutcomeKind.MALFORMED, "the answer was empty")
    return answer


def read_usage(body: JsonObject) -> Usage:
    """Read token counts, finish reason and served model; output tokens include thinking."""
    usage = child(body, "usage")
    read = child(usage, "input_tokens_details")
    written, cached = count(usage, "output_tokens"), count(read, "cached_tokens")
    all_read, all_written = whole_usage(
        count(usage, "input_tokens"),
        written,
        count(usage, "total_tokens"),
        least=written,
        cached=cached,
        answered=bool(_contents(body)),
    )
    return Usage(
        served_model=text(body, "model"),
        input_tokens=all_read,
        output_tokens=all_written,
        thinking_tokens=count(child(usage, "output_tokens_details"), "reasoning_tokens"),
        cached_tokens=cached,
        cache_write_tokens=count(read, "cache_write_tokens"),
        tier=served_tier(body),
        finish_reason=text(child(body, "incomplete_details"), "reason") or text(body, "status"),
        response_id=text(body, "id"),
    )


def _contents(body: JsonObject) -> list[JsonObject]:
    """Return the parts of all messages of an answer."""
    messages = [item for item in objects(body.get("output")) if item.get("type") == "message"]
    messages = [item for item in messages if item.get("phase") != "commentary"]
    return [part for item in messages for part in objects(item.get("content"))]


def served_tier(body: JsonObject) -> str:
    """Read the service tier of an answer; "" for the usual one."""
    tier = text(body, "service_tier").casefold()
    return "" if tier in USUAL_TIERS else tier


def _part(part: str | EncodedImage, options: OpenAIOptions) -> JsonObject:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    detail = options.media_resolution or "high"
    return {"type": "input_image", "image_url": data_url(part), "detail": detail}
