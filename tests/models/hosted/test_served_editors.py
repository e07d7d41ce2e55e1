"""What each kind of server is sent, and how requests are spread over several."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable

import numpy as np
import pytest
from test_hosted_requests import ask

from fakes.caller import options_of
from fakes.requests import edit_request, judge_request, original
from fakes.served import Served
from fakes.server import Answer, json_answer
from plantain.files.secrets import Secret
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.openai.endpoints import Endpoints
from plantain.models.hosted.openai.servers import server_named, servers
from plantain.models.hosted.openai.wire import CompatibleWire
from plantain.models.resolver import resolve_editor, resolve_judge
from plantain.pixels.decode import decode_untrusted
from plantain.pixels.encode import encode_mask, encode_png
from plantain.records import InputError, Outcome, OutcomeKind
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


class Wire(CompatibleWire):
    """A connection that answers, or fails, as it is told."""

    def __init__(self, address: str) -> None:
        super().__init__("e/m", Secret(""), options_of("openai-compatible"), address)
        self.fault: Fault | None = None
        self.posts = 0
        self.gate: asyncio.Event | None = None
        self.version = "1"
        self.called: str = "m"
        self.silent: Callable[[str], Fault | None] = lambda path: None

    async def get(self, path: str) -> dict[str, object]:
        if fault := self.silent(path):
            raise fault
        return (
            {"version": self.version}
            if path.endswith("/version")
            else {"data": [{"id": "m", "root": "org/m"}]}
        )

    async def post(self, path: str, body: dict[str, object]) -> dict[str, object]:
        self.posts += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return {"model": self.called}


def full() -> Fault:
    return Fault(Outcome(OutcomeKind.TRANSPORT, "503: full", unbilled=True), 503)


def spread(count: int, clock: Callable[[], float]) -> tuple[Endpoints, list[Wire]]:
    wires = [Wire(f"http://127.0.0.1:{8000 + n}/v1") for n in range(count)]
    return Endpoints(wires, server_named("vllm", ""), named=True, clock=clock), wires


async def settled() -> None:
    """Lets every task go on until it waits for something."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_requests_go_to_the_server_with_the_fewest() -> None:
    async def scene() -> None:
        ends, wires = spread(2, lambda: 0.0)
        for wire in wires:
            wire.gate = asyncio.Event()
        tasks = [asyncio.create_task(ends.post("/x", {})) for _ in range(6)]
        await settled()
        assert [wire.posts for wire in wires] == [3, 3]
        wires[1].gate.set()  # type: ignore[union-attr]
        await settled()
        later = [asyncio.create_task(ends.post("/x", {})) for _ in range(2)]
        await settled()
        assert [wire.posts for wire in wires] == [3, 5]
        wires[0].gate.set()  # type: ignore[union-attr]
        await asyncio.gather(*tasks, *later)

    asyncio.run(scene())


def test_a_server_that_fails_rests_and_is_tried_again() -> None:
    """Rests of 2, 4, 8 ... s: at 0 it fails and is passed over until 2, fails again and is passed over until 6."""
    now = [0.0]

    async def scene() -> None:
        ends, (bad, good) = spread(2, lambda: now[0])
        bad.fault = full()

        async def at(moment: float, posts: tuple[int, int]) -> None:
            now[0] = moment
            body = await ends.post("/x", {})
            assert (bad.posts, good.posts) == posts
            assert body["_endpoint"] == (good if bad.fault else bad).address
            assert body["model"] == f"org/m vllm {bad.version if body['_endpoint'] == bad.address else '1'}"

        await at(0.0, (1, 1))
        await at(1.9, (1, 2))
        await at(2.0, (2, 3))
        await at(5.9, (2, 4))
        await at(6.0, (3, 5))
        bad.fault, bad.version = None, "2"  # it comes back as another version, and is asked who it is
        await at(14.0, (4, 5))
        await at(14.1, (5, 5))
        bad.fault = good.fault = full()
        with pytest.raises(Fault):
            await ends.post("/x", {})
        assert (bad.posts, good.posts) == (6, 6)  # each once, then it is for the caller to wait

    asyncio.run(scene())


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(OutcomeKind.TRANSPORT, "no answer within 3 s", timed_out=True),
        Outcome(OutcomeKind.MALFORMED, "400: bad size", unbilled=True),
        Outcome(OutcomeKind.TRANSPORT, "401: no key", unbilled=True, fatal=True),
    ],
)
def test_what_a_server_may_have_worked_on_is_not_sent_to_another(outcome: Outcome) -> None:
    async def scene() -> None:
        ends, (bad, good) = spread(2, lambda: 0.0)
        bad.fault = Fault(outcome)
        with pytest.raises(Fault):
            await ends.post("/x", {})
        assert (bad.posts, good.posts) == (1, 0)

    asyncio.run(scene())


def test_a_server_is_asked_again_what_it_serves_where_it_may_have_come_back_as_another() -> None:
    """After it was idle for half a minute, and when its answers bear another name; its list's name counts."""
    now = [100.0]

    async def scene() -> None:
        ends, (one,) = spread(1, lambda: now[0])

        async def served(moment: float) -> object:
            now[0] = moment
            return (await ends.post("/x", {}))["model"]

        assert await served(100.0) == "org/m vllm 1"
        one.version = "2"
        assert await served(130.0) == "org/m vllm 1"
        assert await served(160.1) == "org/m vllm 2"
        one.called, one.version = "m-fp8", "3"
        assert await served(161.0) == "org/m vllm 3"
        one.called = "m-int4"
        assert await served(162.0) == "org/m vllm 3 (answers as m-int4)"

    asyncio.run(scene())


@pytest.mark.parametrize("path", ["/models", "/version"])
@pytest.mark.parametrize("status", [0, 503])
def test_a_server_that_does_not_say_what_it_serves_was_not_asked_for_anything(path: str, status: int) -> None:
    """Silence is not another version: it would stop the run. Another server has the request, and nothing is billed."""
    late = Outcome(OutcomeKind.TRANSPORT, "no answer within 3 s; it may have been billed", timed_out=True)

    async def scene() -> None:
        ends, (bad, good) = spread(2, lambda: 0.0)
        bad.silent = lambda asked: Fault(late, status) if asked.endswith(path) else None
        assert (await ends.post("/x", {}))["_endpoint"] == good.address and bad.posts == 0
        alone, (only,) = spread(1, lambda: 0.0)
        only.silent = bad.silent
        with pytest.raises(Fault) as caught:
            await alone.post("/x", {})
        outcome = caught.value.outcome
        assert outcome.unbilled and outcome.reason == "asked for its models: no answer within 3 s"

    asyncio.run(scene())


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
