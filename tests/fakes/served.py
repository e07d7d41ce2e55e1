"""Servers of open models as they speak OpenAI's formats, with their differences; each refuses what it does not know.

Fields of forms are those of vLLM-Omni's docs/serving/image_edit_api.md and of SGLang's entrypoints/openai/image_api.py;
errors are theirs too (FastAPI's `detail`, vLLM's `error`). Real servers are laxer than these with unknown fields; a
strict one shows what we send.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace

from fakes import openai_format
from fakes.server import Answer, FakeProvider, Request, json_answer

COMMON = {"model", "prompt", "n", "size", "response_format", "output_format", "user"}
DIFFUSION = {"seed", "num_inference_steps", "guidance_scale", "true_cfg_scale", "negative_prompt"}
FORMS = {
    "vllm": (
        COMMON | DIFFUSION | {"background", "output_compression"},
        {"image", "mask_image", "reference_image"},
    ),
    "sglang": (COMMON | DIFFUSION | {"background", "quality"}, {"image", "image[]", "mask"}),
    "other": (COMMON | {"quality"}, {"image", "image[]"}),
}
CHAT = {
    "model", "messages", "response_format", "temperature", "top_p", "seed", "reasoning_effort"
}  # fmt: skip
LIMITS = {"vllm": "max_completion_tokens", "sglang": "max_completion_tokens"}


class Served:
    """One server on a port of its own; a context manager like `FakeProvider`.

    Args:
        kind: which server it is.
        model: what it serves, under that id.
        edits: it makes edits, and no words; else words and no edits.

    Attributes:
        trouble: asked with the number of a POST, from 1; an answer instead of the good one, or None.
        forms: names of fields and of files of every edit, in order.
    """

    def __init__(self, kind: str, model: str, *, edits: bool = False) -> None:
        self.kind, self.model, self.edits = kind, model, edits
        self.trouble: Callable[[int], Answer | None] = lambda number: None
        self.forms: list[tuple[set[str], list[str]]] = []
        self._posts = 0
        self._lock = threading.Lock()
        self.provider = FakeProvider([self.route], checks_key=lambda path: False)

    def __enter__(self) -> Served:
        self.provider.__enter__()
        return self

    def __exit__(self, *ended: object) -> None:
        self.provider.__exit__()

    @property
    def url(self) -> str:
        return f"{self.provider.url}/v1"

    @property
    def asked(self) -> list[Request]:
        return self.provider.calls

    def route(self, request: Request) -> Answer | None:
        with self._lock:
            self._posts += 1
            spoilt = self.trouble(self._posts)
        if spoilt is not None:
            return spoilt
        if request.fields.get("model") != self.model:
            return json_answer({"error": {"message": f"The model `{request.fields.get('model')}` does not exist.",
                                          "type": "NotFoundError", "code": 404}}, 404)  # fmt: skip
        if request.path.endswith("/images/edits") and self.edits:
            return self._edit(request)
        if request.path.endswith("/chat/completions") and not self.edits:
            return self._chat(request)
        return json_answer({"detail": "Not Found"}, 404)

    def _edit(self, request: Request) -> Answer:
        fields, files = FORMS[self.kind]
        names = [name for name, _ in request.parts]
        self.forms.append((set(request.fields), names))
        unknown = (set(request.fields) - fields) | (set(names) - files)
        if unknown:
            wrong = [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
                     for name in sorted(unknown)]  # fmt: skip
            return json_answer({"detail": wrong}, 422)
        answer = json.loads(openai_format.picture_answer(openai_format.picture()).body)
        entry = {"b64_json": answer["data"][0]["b64_json"], "url": None, "revised_prompt": None}
        return json_answer({"created": 1, "data": [entry], "output_format": None, "size": None})

    def _chat(self, request: Request) -> Answer | None:
        unknown = set(request.fields) - CHAT - {LIMITS.get(self.kind, "max_tokens")}
        if unknown:
            said = f"Unrecognized request argument supplied: {', '.join(sorted(unknown))}"
            return json_answer(
                {"error": {"message": said, "type": "invalid_request_error", "code": None}}, 400
            )
        answer = openai_format.openai_route(request)
        assert answer is not None
        return replace(answer, body=json.dumps({**json.loads(answer.body), "model": self.model}).encode())


def still_loading() -> Answer:
    """llama.cpp's words while it reads its weights."""
    return json_answer({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, 503)
