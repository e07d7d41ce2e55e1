"""What each kind of server is sent, and what it is said to serve."""

from __future__ import annotations

import asyncio
import base64
from types import SimpleNamespace

import numpy as np
import pytest
from test_hosted_requests import ask

from fakes.caller import options_of
from fakes.requests import edit_request, judge_request, original
from fakes.served import Served, queue_full, still_loading
from fakes.server import Answer, json_answer
from plantain.files.secrets import Secret
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.openai import served
from plantain.models.hosted.openai.served import ServedWire
from plantain.models.hosted.openai.servers import server_named, servers
from plantain.models.resolver import resolve_editor, resolve_judge
from plantain.pixels.decode import decode_untrusted
from plantain.pixels.encode import encode_mask, encode_png
from plantain.records import InputError, OutcomeKind
from plantain.roles import Demonstration, EncodedImage

ALL = {
    "steps": 4,
    "guidance": 2.5,
    "true_cfg_scale": 4.0,
    "negative_prompt": "text",
    "output_format": "png",
    "image_quality": "high",
    "background": "opaque",
}
SENT = {
    "vllm": {
        "num_inference_steps": "4",
        "guidance_scale": "2.5",
        "true_cfg_scale": "4.0",
        "negative_prompt": "text",
        "output_format": "png",
        "seed": str((2**62 + 5) % 2**31),
    },
    "other": {"output_format": "png", "quality": "high"},
}
SENT["sglang"] = {**SENT["vllm"], "quality": "high", "background": "opaque"}
HELLO = {"messages": [{"role": "user", "content": "hello"}], "max_completion_tokens": 9}
LEFT_OUT = {
    "vllm": "quality,background",
    "sglang": None,
    "other": "background,num_inference_steps,guidance_scale,true_cfg_scale,negative_prompt,seed",
}


@pytest.mark.parametrize("kind", ["vllm", "sglang", "other"])
def test_an_editor_is_sent_what_its_server_takes(kind: str) -> None:
    with Served(kind, "m", edits=True) as server:
        options = options_of("openai-compatible", base_url=server.url, server=kind, **ALL)
        editor = resolve_editor("openai-compatible/m", options)
        shot = Demonstration(original(256), "Add a spot.", original(256))
        request = edit_request(original(256))
        assert ask(editor, request).outcome.ok
        assert ask(editor, type(request)(request.image, request.original, "Add.", 1, (shot,))).outcome.ok
        one, several = server.asked
        usual = {"model": "m", "n": "1", "size": "1024x1024", "response_format": "b64_json"}
        assert {k: v for k, v in one.fields.items() if k != "prompt"} == usual | SENT[kind]
        assert [data for _, data in one.parts] == [original(256).data]
        name = "image" if kind == "vllm" else "image[]"
        assert [part for part, _ in several.parts] == [name] * 3
        said = editor.fingerprint
        assert (f"left_out={LEFT_OUT[kind]}" in said) if LEFT_OUT[kind] else ("left_out" not in said)


@pytest.mark.parametrize(("kind", "field"), [("vllm", "mask_image"), ("sglang", "mask")])
def test_a_mask_is_white_where_the_change_belongs(kind: str, field: str) -> None:
    with Served(kind, "m", edits=True) as server:
        options = options_of("openai-compatible", base_url=server.url, server=kind, mask=True)
        editor = resolve_editor("openai-compatible/m", options)
        request = edit_request(original(256))
        assert ask(editor, request).outcome.kind is OutcomeKind.NOT_APPLICABLE
        region = np.zeros((256, 256), bool)
        region[40:80, 100:130] = True
        shown = EncodedImage(encode_mask(region), "image/png")
        assert ask(editor, type(request)(request.image, request.original, "x", 1, region=shown)).outcome.ok
        name, data = server.asked[-1].parts[-1]
        assert name == field
        assert (decode_untrusted(data, "mask")[:, :, 0] == 255).tolist() == region.tolist()
        with pytest.raises(InputError, match="other takes no masks"):
            resolve_editor(
                "openai-compatible/m", options_of("openai-compatible", base_url=server.url, mask=True)
            )
        with pytest.raises(InputError, match="ollama makes no edits"):
            resolve_editor(
                "openai-compatible/m", options_of("openai-compatible", base_url=server.url, server="ollama")
            )


@pytest.mark.parametrize("kind", sorted(servers()))
def test_an_answer_is_bounded_by_the_field_that_the_server_has(kind: str) -> None:
    """vLLM marks max_tokens as deprecated and SGLang too; Ollama's, llama.cpp's and LM Studio's pages name it alone."""
    with Served(kind if kind != "gateway" else "vllm", "m") as server:
        judge = resolve_judge(
            "openai-compatible/m", options_of("openai-compatible", base_url=server.url, server=kind)
        )
        assert ask(judge, judge_request()).outcome.ok
        newer = kind in ("vllm", "sglang", "gateway")
        fields = server.asked[0].fields
        assert ("max_completion_tokens" in fields, "max_tokens" in fields) == (newer, not newer)


def test_a_server_is_asked_again_what_it_serves_where_it_may_have_come_back_as_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After it was idle for half a minute, and after a failure."""
    now = [100.0]
    monkeypatch.setattr(served, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with Served("vllm", "m") as server:
        options = options_of("openai-compatible", base_url=server.url, server="vllm")
        wire = ServedWire("e/m", Secret(""), options, server_named("vllm", ""), named=True)

        async def answered_by(moment: float) -> object:
            now[0] = moment
            try:
                return (await wire.post("/chat/completions", {"model": server.model, **HELLO}))["model"]
            finally:
                await wire.aclose()

        assert asyncio.run(answered_by(100.0)) == "m vllm 0.30.0"
        server.version = ("/version", {"version": "2"})
        assert asyncio.run(answered_by(130.0)) == "m vllm 0.30.0"
        assert asyncio.run(answered_by(160.1)) == "m vllm 2"
        server.trouble = lambda number: queue_full()
        server.version = ("/version", {"version": "4"})
        with pytest.raises(Fault):
            asyncio.run(answered_by(163.0))
        server.trouble = lambda number: None
        assert asyncio.run(answered_by(164.0)) == "m vllm 4"


@pytest.mark.parametrize("path", ["/v1/models", "/version"])
def test_a_server_that_does_not_say_what_it_serves_was_not_asked_for_anything(path: str) -> None:
    """Silence is not another version, which would stop the run. Nothing is sent, and nothing is billed."""
    with Served("vllm", "m") as server:
        good = server.provider.routes[0]
        server.provider.routes[0] = lambda request: still_loading() if request.path == path else good(request)
        options = options_of("openai-compatible", base_url=server.url, server="vllm")
        reply = ask(resolve_judge("openai-compatible/m", options), judge_request())
    assert reply.outcome.kind is OutcomeKind.TRANSPORT and reply.outcome.unbilled
    assert reply.outcome.reason.startswith("asked for its models: 503") and not server.asked


def body(**fields: object) -> Answer:
    return json_answer({"created": 1, **fields})


def test_pictures_come_in_other_wrappings_and_errors_under_a_status_of_success() -> None:
    """As data URLs (also in `url`), and in lines as MIME has them; an error beside no picture costs no round."""
    picture = encode_png(np.random.default_rng(1).integers(0, 255, (256, 256, 3), np.uint8))
    plain, lines = base64.b64encode(picture).decode(), base64.encodebytes(picture).decode()
    oom = {"message": "CUDA out of memory", "type": "InternalServerError", "code": 500}
    answers = [
        body(data=[{"b64_json": lines}]),
        body(data=[{"b64_json": f"data:image/png;base64,{plain}"}]),
        body(data=[{"b64_json": None, "url": f"data:image/png;base64,{plain}"}]),
        body(data=[], error=oom),
        body(data=None, error=oom),
    ]
    with Served("vllm", "m", edits=True) as server:
        server.trouble = lambda number: answers[number - 1]
        editor = resolve_editor(
            "openai-compatible/m", options_of("openai-compatible", base_url=server.url, server="vllm")
        )
        replies = [ask(editor, edit_request(original(256))) for _ in answers]
    assert [reply.value.image.data for reply in replies[:3] if reply.value] == [picture] * 3
    for reply in replies[3:]:
        assert reply.outcome.kind is OutcomeKind.TRANSPORT and "CUDA out of memory" in reply.outcome.reason
