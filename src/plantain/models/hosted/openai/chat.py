"""OpenAI's chat format, as many servers speak it: building a request, asking, reading the answer."""

from __future__ import annotations

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.asking import Heard, Question, hear
from plantain.models.hosted.faults import Fault, cut_short
from plantain.models.hosted.openai.compatible import Settings
from plantain.models.hosted.openai.responses import served_tier
from plantain.models.hosted.openai.servers import ServerProfile
from plantain.models.hosted.openai.wire import OpenAITransport
from plantain.models.hosted.pictures import to_base64
from plantain.models.hosted.scrub import child, count, objects, read_and_written, text
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind, Usage
from plantain.roles import EncodedImage

PATH = "/chat/completions"

SAMPLING = (
    "temperature",
    "top_p",
    "use_seed",
    "thinking",
    "max_output_tokens",
    "media_resolution",
    "shown_side",
)
"""Settings that the answer depends on, beside prompt, pictures and seed."""

CACHED = ("prompt_cache_hit_tokens", "cached_tokens")
"""Names by which DeepSeek and Moonshot count what was read from a cache, beside the prompt's details."""


class ChatConversation:
    """Asks one model of a compatible server.

    A server that does not know JSON schemas is asked without one from then on: the prompt says the form in words, and
    every report is checked by us in any case.
    """

    def __init__(self, wire: OpenAITransport, options: Settings, server: ServerProfile) -> None:
        self._limit = server.limit
        self._wire = wire
        self._options = options
        self._takes_schema = True
        self.name = wire.name
        self.sampling = options.sampling(*SAMPLING)

    async def ask(self, question: Question) -> Heard:
        """The answer's words, or why there are none."""
        return await hear(self._send(question), read_text, read_usage, self._wire.scrub)

    async def _send(self, question: Question) -> JsonObject:
        body = request_body(self._wire.model, question, self._options, self._limit)
        if self._takes_schema or "response_format" not in body:
            try:
                return await self._wire.post(PATH, body)
            except Fault as fault:
                if "response_format" not in body or not _refuses_schema(fault):
                    raise
                self._takes_schema = False
        del body["response_format"]
        return await self._wire.post(PATH, body)

    async def aclose(self) -> None:
        await self._wire.aclose()


def request_body(model: str, question: Question, options: Settings, limit: str) -> JsonObject:
    """A request; `limit` is the field that bounds its answer's tokens."""
    body: JsonObject = {
        "model": model,
        "messages": [
            {"role": "system", "content": question.system},
            {"role": "user", "content": [_part(part, options) for part in question.parts]},
        ],
        limit: options.max_output_tokens * question.room,
    }
    if question.schema:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "report", "strict": True, "schema": question.schema},
        }
    if options.temperature is not None:
        body["temperature"] = options.temperature
    if options.top_p is not None:
        body["top_p"] = options.top_p
    if options.use_seed:
        body["seed"] = question.seed % 2**31
    if options.thinking:
        body["reasoning_effort"] = options.thinking
    return body


def read_text(body: JsonObject) -> str:
    """The answer's words.

    Raises:
        Fault: refused, filtered, cut at its longest, or empty.
    """
    choices = objects(body.get("choices"))
    choice = choices[0] if choices else {}
    message = child(choice, "message")
    refusal, reason = text(message, "refusal"), text(choice, "finish_reason")
    if refusal:
        raise Fault(Outcome(OutcomeKind.REFUSED, f"the model declined: {one_line(refusal)}"), 200)
    if reason == "content_filter":
        raise Fault(Outcome(OutcomeKind.REFUSED, "stopped by the provider's content filter"), 200)
    if reason == "length":
        raise cut_short()
    content = message.get("content")
    answer = "".join(text(part, "text") for part in objects(content)) or (
        content if isinstance(content, str) else ""
    )
    if not answer.strip():
        raise Fault(Outcome(OutcomeKind.MALFORMED, "the answer was empty"), 200)
    return answer


def read_usage(body: JsonObject) -> Usage:
    """Tokens, finish reason, served model, and the thoughts that some servers send beside the answer.

    OpenAI counts thinking within the completion, some servers beside it: then their total is larger than its parts.
    """
    usage = child(body, "usage")
    details, read = child(usage, "completion_tokens_details"), child(usage, "prompt_tokens_details")
    choices = objects(body.get("choices"))
    choice = choices[0] if choices else {}
    message = child(choice, "message")
    written = count(usage, "completion_tokens")
    told = (count(read, "cached_tokens"), *(count(usage, name) for name in CACHED))
    cached = next((tokens for tokens in told if tokens is not None), None)
    all_read, all_written = read_and_written(
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
        thought_summary=(text(message, "reasoning_content") or text(message, "reasoning"))[:20_000],
    )


def _part(part: str | EncodedImage, options: Settings) -> JsonObject:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    url = f"data:{part.media_type};base64,{to_base64(part.data)}"
    return {"type": "image_url", "image_url": {"url": url, "detail": options.media_resolution or "high"}}


def _refuses_schema(fault: Fault) -> bool:
    reason = fault.outcome.reason.casefold()
    named = any(word in reason for word in ("response_format", "json_schema", "guided", "schema"))
    return fault.status in (400, 404, 422, 501) and named
