"""Requests to each kind of server.

Fields are those of vLLM-Omni's docs/serving/image_edit_api.md and of SGLang's entrypoints/openai/image_api.py.
"""

from __future__ import annotations

import pytest

from fakes.caller import ask, options_of, resolve_editor, resolve_judge
from fakes.requests import edit_request, judge_request, original
from fakes.server import FakeProvider
from plantain.models.hosted.openai.compatible import SERVERS
from plantain.roles import Demonstration

ALL = {"steps": 4, "guidance": 2.5, "true_cfg_scale": 4.0, "negative_prompt": "text", "image_quality": "high"}
SENT = {
    "vllm": {
        "num_inference_steps": "4",
        "guidance_scale": "2.5",
        "true_cfg_scale": "4.0",
        "negative_prompt": "text",
        "seed": str((2**62 + 5) % 2**31),
    },
    "other": {"quality": "high"},
}
SENT["sglang"] = {**SENT["vllm"], "quality": "high"}
LEFT_OUT = {
    "vllm": "quality",
    "sglang": None,
    "other": "num_inference_steps,guidance_scale,true_cfg_scale,negative_prompt,seed",
}


@pytest.mark.parametrize("kind", ["vllm", "sglang", "other"])
def test_an_editor_is_sent_the_fields_of_its_server(server: FakeProvider, kind: str) -> None:
    editor = resolve_editor(
        "openai-compatible/m",
        options_of("openai-compatible", base_url=f"{server.url}/v1", server=kind, **ALL),
    )
    shot = Demonstration(original(256), "Add a spot.", original(256))
    request = edit_request(original(256))
    assert ask(editor, request).outcome.ok
    assert ask(editor, type(request)(request.image, request.original, "Add.", 1, (shot,))).outcome.ok
    one, several = server.calls
    usual = {"model": "m", "n": "1", "size": "1024x1024", "response_format": "b64_json"}
    assert {k: v for k, v in one.fields.items() if k != "prompt"} == usual | SENT[kind]
    assert [data for _, data in one.parts] == [original(256).data]
    name = "image" if kind == "vllm" else "image[]"
    assert [part for part, _ in several.parts] == [name] * 3
    text = editor.fingerprint
    assert (f"left_out={LEFT_OUT[kind]}" in text) if LEFT_OUT[kind] else ("left_out" not in text)


@pytest.mark.parametrize("kind", sorted(SERVERS))
def test_an_answer_is_bounded_by_the_field_that_the_server_has(server: FakeProvider, kind: str) -> None:
    """vLLM marks max_tokens as deprecated and SGLang too; pages of other servers name it alone."""
    judge = resolve_judge(
        "openai-compatible/m", options_of("openai-compatible", base_url=f"{server.url}/v1", server=kind)
    )
    assert ask(judge, judge_request()).outcome.ok
    newer = kind in ("vllm", "sglang", "gateway")
    fields = server.calls[0].fields
    assert ("max_completion_tokens" in fields, "max_tokens" in fields) == (newer, not newer)
