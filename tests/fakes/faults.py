"""Every fault that a provider or the wire can commit, by name, for each wire format.

`FAULTS[name]` is a function of the format ("gemini" or "openai") that gives a `Spoil`, or None where that format cannot
commit it. Steps that a fault makes sense for are in `STEPS`; a name that is not there fits all three.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from fakes import content, gemini_format, openai_format
from fakes.server import Answer, Request, Spoil

NO_QUOTA = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDay", "quotaValue": "0"}],
}
HTML = b"<!doctype html><html><body>upstream trouble</body></html>"

Fault = Callable[[str], Spoil | None]


def status(code: int, text: str = "no", gemini: str = "", openai: str = "", **headers: str) -> Fault:
    """An error answer with a body in the provider's own form."""

    def make(form: str) -> Spoil:
        if form == "gemini":
            return lambda request, good: gemini_format.error(code, text, gemini, **headers)
        return lambda request, good: openai_format.error(code, text, openai, **headers)

    return make


def bare(answer: Callable[[Answer], Answer]) -> Fault:
    """A fault of the wire, the same for every format."""
    return lambda form: lambda request, good: answer(good)


def gemini_only(answer: Callable[[Request], Answer]) -> Fault:
    return lambda form: (lambda request, good: answer(request)) if form == "gemini" else None


def openai_only(answer: Callable[[Request], Answer]) -> Fault:
    return lambda form: (lambda request, good: answer(request)) if form == "openai" else None


def words(change: Callable[[str], str], finish: str = "STOP", cut: str = "") -> Fault:
    """The good answer's words, changed; for the steps that answer in words."""

    def make(form: str) -> Spoil:
        def spoil(request: Request, good: Answer) -> Answer:
            if form == "gemini":
                text = _words(gemini_format.step_of(request), gemini_format.prompt_text(request))
                return gemini_format.text_answer(change(text), finish)
            text = _words(openai_format.step_of(request), openai_format.prompt_text(request))
            return openai_format.text_answer(change(text), chat=openai_format.is_chat(request), cut=cut)

        return spoil

    return make


def other_file(make: Callable[[], bytes]) -> Fault:
    """Another file instead of the edited image."""

    def fault(form: str) -> Spoil:
        answer = gemini_format.image_answer if form == "gemini" else openai_format.image_answer
        return lambda request, good: answer(make())

    return fault


def same_image(form: str) -> Spoil:
    """The original itself, byte for byte."""
    if form == "gemini":
        return lambda request, good: gemini_format.image_answer(gemini_format.images_sent(request)[0])
    return lambda request, good: openai_format.image_answer(openai_format.images_sent(request)[0])


def _words(step: str, prompt: str) -> str:
    return content.report_text(prompt) if step == "judge" else content.instruction(prompt)


def _without(key: str) -> Callable[[str], str]:
    return lambda text: json.dumps({name: value for name, value in json.loads(text).items() if name != key})


def _with(key: str, value: object) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), key: value})


def _bad_base64(form: str) -> Spoil:
    def spoil(request: Request, good: Answer) -> Answer:
        body = good.body.replace(b"iVBOR", b"%%%%%", 1)
        assert body != good.body
        return replace(good, body=body)

    return spoil


FAULTS: dict[str, Fault] = {
    "400 bad key": gemini_only(
        lambda r: gemini_format.error(
            400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"
        )
    ),
    "400 setting": openai_only(lambda r: openai_format.error(400, "Unknown parameter", "unknown_parameter")),
    "400 moderation": openai_only(
        lambda r: openai_format.error(400, "blocked by safety", "moderation_blocked")
    ),
    "401": status(401, "who are you", "UNAUTHENTICATED", "invalid_api_key"),
    "403": status(403, "not for you", "PERMISSION_DENIED", "unsupported_country_region_territory"),
    "404 retired": status(404, "model is not found", "NOT_FOUND", "model_not_found"),
    "429 seconds": status(429, "slow down", "RESOURCE_EXHAUSTED", "rate_limit_exceeded", Retry_After="7"),
    "429 ms": status(429, "slow down", "RESOURCE_EXHAUSTED", "rate_limit_exceeded", retry_after_ms="1500"),
    "429 bare": status(429, "slow down", "RESOURCE_EXHAUSTED", "rate_limit_exceeded"),
    "429 no quota": gemini_only(lambda r: gemini_format.error(429, "no", "RESOURCE_EXHAUSTED", [NO_QUOTA])),
    "429 spent": openai_only(lambda r: openai_format.error(429, "pay first", "insufficient_quota")),
    "500": status(500, "oops", "INTERNAL", "server_error"),
    "502 html": bare(lambda good: Answer(HTML, 502, {"Content-Type": "text/html"})),
    "503": status(503, "overloaded", "UNAVAILABLE", "overloaded", Retry_After="3"),
    "dropped": bare(lambda good: Answer(close=True)),
    "hung": bare(lambda good: replace(good, latency_s=1.0)),
    "dripping": bare(lambda good: replace(good, drip_s=0.05)),
    "truncated body": bare(lambda good: replace(good, cut=20)),
    "error 200": bare(
        lambda good: Answer(
            b'{"error": {"message": "oops", "code": "server_error"}}',
            200,
            {"Content-Type": "application/json"},
        )
    ),
    "garbage 200": bare(lambda good: Answer(b"\xff\xfe\x00{", 200, {"Content-Type": "application/json"})),
    "201": bare(lambda good: replace(good, status=201)),
    "nothing in it": bare(lambda good: Answer(b"{}", 200, {"Content-Type": "application/json"})),
    "blocked before": gemini_only(lambda r: gemini_format.blocked_before()),
    "blocked after": gemini_only(lambda r: gemini_format.text_answer("", "SAFETY")),
    "IMAGE_SAFETY": gemini_only(lambda r: gemini_format.text_answer("", "IMAGE_SAFETY")),
    "NO_IMAGE": gemini_only(lambda r: gemini_format.text_answer("", "NO_IMAGE")),
    "text, no image": gemini_only(lambda r: gemini_format.text_answer("I would rather describe it.")),
    "no data": openai_only(lambda r: openai_format.image_answer(None)),
    "declined": openai_only(
        lambda r: openai_format.text_answer(None, chat=openai_format.is_chat(r), refusal="I will not")
    ),
    "content filter": openai_only(
        lambda r: openai_format.text_answer("so", chat=openai_format.is_chat(r), cut="content_filter")
    ),
    "wide image": other_file(lambda: content.an_image(".png", 384, 256)),
    "no image file": other_file(lambda: b"not an image at all"),
    "bad base64": _bad_base64,
    "same image": same_image,
    "webp image": other_file(lambda: content.an_image(".webp")),
    "fenced": words(lambda text: f"```json\n{text}\n```"),
    "prose around": words(lambda text: f"Here is what I see.\n{text}\nI hope that helps."),
    "true as text": words(_with("has_disease", "True")),
    "cut words": words(lambda text: text[: len(text) // 2], "MAX_TOKENS", "length"),
    "missing key": words(_without("realism")),
    "number as flag": words(_with("other_disease", 0)),
    "empty words": words(lambda text: ""),
    "two reports": words(
        lambda text: f"{text}\n{_with('has_disease', 'False')(text).replace('true', 'false')}"
    ),
}

TEXT = ("write", "judge")
IMAGES = ("wide image", "no image file", "bad base64", "same image", "webp image")
REPORTS = ("fenced", "prose around", "true as text", "missing key", "number as flag", "two reports")
STEPS: dict[str, tuple[str, ...]] = {
    "IMAGE_SAFETY": ("edit",),
    "NO_IMAGE": ("edit",),
    "text, no image": ("edit",),
    "no data": ("edit",),
    "400 moderation": ("edit",),
    "declined": TEXT,
    "content filter": TEXT,
    "cut words": TEXT,
    "empty words": TEXT,
    **dict.fromkeys(IMAGES, ("edit",)),
    **dict.fromkeys(REPORTS, ("judge",)),
}
