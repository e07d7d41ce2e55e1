"""Gemini's wire format: generateContent."""

from __future__ import annotations

import base64
from typing import Any

from fakes.content import an_image, instruction, report_text
from fakes.server import Answer, Request, json_answer

MODEL = "gemini-fake-001"


def gemini_route(request: Request) -> Answer | None:
    """Answer `:generateContent` with an image, a report or an instruction, as requested."""
    if not request.path.endswith(":generateContent"):
        return None
    text = prompt_text(request)
    if step_of(request) == "edit":
        return json_answer(content([image_part(an_image())], images=1))
    words = report_text(text) if step_of(request) == "judge" else instruction(text)
    return json_answer(content([{"text": "thinking about it", "thought": True}, {"text": words}]))


def step_of(request: Request) -> str:
    config = request.fields.get("generationConfig", {})
    if "IMAGE" in (config.get("responseModalities") or []):
        return "edit"
    return "judge" if "responseJsonSchema" in config else "write"


def prompt_text(request: Request) -> str:
    return "\n".join(prompt_parts(request))


def prompt_parts(request: Request) -> list[str]:
    return [p["text"] for c in request.fields.get("contents", []) for p in c["parts"] if "text" in p]


def images_sent(request: Request) -> list[bytes]:
    parts = [p for c in request.fields.get("contents", []) for p in c["parts"]]
    return [base64.urlsafe_b64decode(p["inlineData"]["data"]) for p in parts if "inlineData" in p]


def content(parts: list[dict[str, Any]], finish: str = "STOP", images: int = 0) -> dict[str, Any]:
    usage: dict[str, Any] = {
        "promptTokenCount": 1200,
        "candidatesTokenCount": 1290 if images else 150,
        "thoughtsTokenCount": 40,
        "totalTokenCount": 2530 if images else 1390,
        "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 684},
            {"modality": "IMAGE", "tokenCount": 516},
        ],
    }
    if images:
        usage["candidatesTokensDetails"] = [{"modality": "IMAGE", "tokenCount": 1290}]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}],
        "usageMetadata": usage,
        "modelVersion": MODEL,
        "responseId": "r-1",
    }


def image_part(data: bytes, kind: str = "image/png") -> dict[str, Any]:
    return {
        "inlineData": {"mimeType": kind, "data": base64.b64encode(data).decode()},
        "thoughtSignature": "c2ln" * 400,
    }


def text_answer(text: str, finish: str = "STOP") -> Answer:
    return json_answer(content([{"text": text}] if text else [], finish))


def image_answer(data: bytes) -> Answer:
    return json_answer(content([image_part(data)], images=1))


def blocked_before() -> Answer:
    body = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 1200},
    }
    return json_answer(body)


def error(
    status: int, text: str, code: str = "", details: list[dict[str, Any]] | None = None, **headers: str
) -> Answer:
    body = {"error": {"code": status, "message": text, "status": code or "UNKNOWN", "details": details or []}}
    return json_answer(body, status, **headers)
