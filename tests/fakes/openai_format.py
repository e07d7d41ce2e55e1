"""OpenAI's wire formats: responses, chat completions and image edits."""

from __future__ import annotations

import base64
from typing import Any

from fakes.content import an_image, instruction, report_text
from fakes.server import Answer, Request, Spoil, json_answer

MODEL = "gpt-fake-2026"


def openai_route(request: Request) -> Answer | None:
    """Answer by the path and the requested step."""
    if request.path.endswith("/images/edits"):
        return image_answer(an_image())
    if not request.path.endswith(("/responses", "/chat/completions")):
        return None
    text = prompt_text(request)
    words = report_text(text) if step_of(request) == "judge" else instruction(text)
    return text_answer(words, chat=is_chat(request))


def is_chat(request: Request) -> bool:
    return request.path.endswith("/chat/completions")


def step_of(request: Request) -> str:
    if request.path.endswith("/images/edits"):
        return "edit"
    text = prompt_text(request)
    return "judge" if "has_disease" in text or "editing_accuracy" in text else "write"


def prompt_text(request: Request) -> str:
    if "prompt" in request.fields:
        return str(request.fields["prompt"])
    turns = request.fields.get("input") or request.fields.get("messages") or []
    contents = [turn["content"] for turn in turns if turn["role"] == "user"]
    return "\n".join(part["text"] for content in contents for part in content if "text" in part)


def images_sent(request: Request) -> list[bytes]:
    if request.files:
        return list(request.files.values())
    urls: list[str] = []
    for turn in request.fields.get("input") or request.fields.get("messages") or []:
        for part in turn["content"] if isinstance(turn["content"], list) else []:
            url = part.get("image_url")
            if url:
                urls.append(url["url"] if isinstance(url, dict) else url)
    return [base64.b64decode(url.partition(",")[2]) for url in urls]


def text_answer(text: str | None, *, chat: bool, cut: str = "", refusal: str = "") -> Answer:
    """An answer in words. `cut`: "length" or "content_filter"; `refusal`: the model's own words of declining."""
    if chat:
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal or None}
        choice = {"index": 0, "finish_reason": cut or "stop", "message": message}
        usage = {"prompt_tokens": 900, "completion_tokens": 120, "total_tokens": 1020}
        return json_answer(
            {
                "id": "c-1",
                "object": "chat.completion",
                "created": 1,
                "model": MODEL,
                "choices": [choice],
                "usage": usage,
            }
        )
    part = {"type": "refusal", "refusal": refusal} if refusal else {"type": "output_text", "text": text or ""}
    body: dict[str, Any] = {
        "id": "resp-1",
        "object": "response",
        "status": "incomplete" if cut else "completed",
        "model": MODEL,
        "output": [{"type": "message", "role": "assistant", "content": [part]}] if text or refusal else [],
        "usage": {
            "input_tokens": 900,
            "input_tokens_details": {"cached_tokens": 100},
            "output_tokens": 120,
            "output_tokens_details": {"reasoning_tokens": 30},
        },
    }
    if cut:
        body["incomplete_details"] = {
            "reason": "content_filter" if cut == "content_filter" else "max_output_tokens"
        }
    return json_answer(body)


def saying(text: str) -> Spoil:
    """These words instead of the good answer's."""
    return lambda request, good: text_answer(text, chat=is_chat(request))


def image_answer(data: bytes | None) -> Answer:
    images = [{"b64_json": base64.b64encode(data).decode()}] if data is not None else []
    usage = {
        "input_tokens": 400,
        "input_tokens_details": {"image_tokens": 323, "text_tokens": 77},
        "output_tokens": 1056,
    }
    return json_answer({"created": 1, "data": images, "usage": usage})


def error(status: int, text: str, code: str = "", **headers: str) -> Answer:
    body = {
        "error": {
            "message": text,
            "type": code or "invalid_request_error",
            "param": None,
            "code": code or None,
        }
    }
    return json_answer(body, status, **headers)
