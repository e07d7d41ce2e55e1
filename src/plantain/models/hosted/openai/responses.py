"""OpenAI's Responses format: building a request, asking, reading the answer."""

from __future__ import annotations

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.asking import Heard, Question, hear
from plantain.models.hosted.faults import Fault, cut_short, failed_answer
from plantain.models.hosted.openai.provider import OpenAIOptions
from plantain.models.hosted.openai.wire import OpenAITransport
from plantain.models.hosted.pictures import to_base64
from plantain.models.hosted.scrub import child, count, objects, read_and_written, text
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind, Usage
from plantain.records.prices import USUAL_TIERS
from plantain.roles import EncodedImage

PATH = "/responses"

SAMPLING = (
    "temperature",
    "top_p",
    "thinking",
    "max_output_tokens",
    "service_tier",
    "media_resolution",
    "shown_side",
)
"""Settings that the answer depends on, beside prompt and pictures; this format takes no seed."""


class ResponsesConversation:
    """Asks one OpenAI model."""

    def __init__(self, wire: OpenAITransport, options: OpenAIOptions) -> None:
        self._wire = wire
        self._options = options
        self.name = wire.name
        self.sampling = options.sampling(*SAMPLING)

    async def ask(self, question: Question) -> Heard:
        """The answer's words, or why there are none."""
        sent = self._wire.post(PATH, request_body(self._wire.model, question, self._options))
        return await hear(sent, read_text, read_usage, self._wire.scrub)

    async def aclose(self) -> None:
        await self._wire.aclose()


def request_body(model: str, question: Question, options: OpenAIOptions) -> JsonObject:
    """A request, the same for the online and the batch transport. The provider is asked to store nothing."""
    body: JsonObject = {
        "model": model,
        "instructions": question.system,
        "input": [{"role": "user", "content": [_part(part, options) for part in question.parts]}],
        "max_output_tokens": options.max_output_tokens * question.room,
        "store": False,
    }
    if question.schema:
        body["text"] = {
            "format": {"type": "json_schema", "name": "report", "strict": True, "schema": question.schema}
        }
    if options.temperature is not None:
        body["temperature"] = options.temperature
    if options.top_p is not None:
        body["top_p"] = options.top_p
    if options.thinking:
        body["reasoning"] = {"effort": options.thinking}
    if options.service_tier:
        body["service_tier"] = options.service_tier
    return body


def read_text(body: JsonObject) -> str:
    """The answer's words.

    Raises:
        Fault: refused, failed, cut at its longest, or empty.
    """
    contents = _contents(body)
    refusals = [text(part, "refusal") for part in contents if part.get("type") == "refusal"]
    if refusals:
        raise Fault(Outcome(OutcomeKind.REFUSED, f"the model declined: {one_line(' '.join(refusals))}"), 200)
    status = text(body, "status")
    if status == "incomplete":
        why = text(child(body, "incomplete_details"), "reason")
        if why == "content_filter":
            raise Fault(Outcome(OutcomeKind.REFUSED, "stopped by the provider's content filter"), 200)
        if why == "max_output_tokens":
            raise cut_short()
        raise Fault(Outcome(OutcomeKind.MALFORMED, f"the answer was cut ({why or 'no reason given'})"), 200)
    if status in ("failed", "cancelled"):
        raise Fault(failed_answer(text(body, "model") or "this model", child(body, "error")), 200)
    answer = "".join(text(part, "text") for part in contents if part.get("type") == "output_text")
    if not answer.strip():
        raise Fault(Outcome(OutcomeKind.MALFORMED, "the answer was empty"), 200)
    return answer


def read_usage(body: JsonObject) -> Usage:
    """Tokens, finish reason, served model and thought summary; thinking is within the output, as it is billed."""
    usage = child(body, "usage")
    read = child(usage, "input_tokens_details")
    thoughts = [
        text(part, "text")
        for item in objects(body.get("output"))
        if item.get("type") == "reasoning"
        for part in objects(item.get("summary"))
    ]
    written, cached = count(usage, "output_tokens"), count(read, "cached_tokens")
    all_read, all_written = read_and_written(
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
        thought_summary="\n".join(filter(None, thoughts))[:20_000],
    )


def _contents(body: JsonObject) -> list[JsonObject]:
    """The parts of all messages of an answer."""
    messages = [item for item in objects(body.get("output")) if item.get("type") == "message"]
    return [part for item in messages for part in objects(item.get("content"))]


def served_tier(body: JsonObject) -> str:
    """The service tier that an answer names; "" for the usual one. Fast mode is billed, and named, as priority."""
    tier = text(body, "service_tier").casefold()
    return "" if tier in USUAL_TIERS else {"fast": "priority"}.get(tier, tier)


def _part(part: str | EncodedImage, options: OpenAIOptions) -> JsonObject:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    url = f"data:{part.media_type};base64,{to_base64(part.data)}"
    return {"type": "input_image", "image_url": url, "detail": options.media_resolution or "high"}
