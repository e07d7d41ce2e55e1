"""Requests of hosted adapters, by the real SDKs against a loopback server, and their use of the environment."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest
from google import genai
from google.genai import types

from fakes import gemini_format, openai_format
from fakes.away import Anything
from fakes.caller import ask, options_at, options_of, resolve_editor, resolve_judge, resolve_writer
from fakes.content import an_image
from fakes.requests import edit_request, original, scale_request, write_request
from fakes.server import KEY, Answer, FakeProvider, Request
from plantain.files.secrets import Secret
from plantain.models.hosted.editor import HostedEditor
from plantain.models.hosted.gemini import models
from plantain.models.hosted.gemini.models import GeminiWire
from plantain.models.hosted.reports import report_schema
from plantain.models.hosted.writer_and_judge import Question
from plantain.pixels.decode import decode, decode_untrusted
from plantain.records import OutcomeKind
from plantain.roles import Demonstration, EditRequest, EncodedImage, TakesDemonstrations
from plantain.rubrics import MED_BANANA


@pytest.mark.parametrize("name", ["temperature", "top_p", "thinking", "max_output_tokens", "safety"])
def test_settings_change_the_fingerprint(server: FakeProvider, name: str) -> None:
    value = {"thinking": "low", "max_output_tokens": 999, "safety": "BLOCK_ONLY_HIGH"}.get(name, 0.2)
    one, plain = (
        resolve_judge("gemini/m", options_at(server, "gemini", **stated)) for stated in ({name: value}, {})
    )
    assert one.fingerprint != plain.fingerprint


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 0.3, "top_p": 0.9, "thinking": "low", "safety": "BLOCK_NONE"}]
)
def test_gemini_bodies_equal_those_of_the_sdk(server: FakeProvider, settings: dict[str, Any]) -> None:
    """Ours are passed to it whole; its own are made of the same contents and configuration."""
    chosen = options_at(server, "gemini", **settings)
    image = original()
    parts = ("Original:", image, "and", image)
    question = Question("who you are", parts, 7, report_schema(MED_BANANA))
    asked = [
        (models.text_request(question, chosen), parts, sdk_text(chosen, 7, question.schema, "who you are")),
        (
            models.text_request(Question("", ("words", image), 3), chosen),
            ("words", image),
            sdk_text(chosen, 3),
        ),
        (models.image_request((image, "edit it"), 3, chosen), (image, "edit it"), sdk_image(chosen, 3)),
    ]

    async def send() -> None:
        wire = GeminiWire("gemini/m", Secret(KEY), chosen)
        sdk = genai.Client(
            vertexai=False,
            api_key=KEY,
            http_options=types.HttpOptions(base_url=server.url, api_version="v1beta"),
        )
        for body, shown, config in asked:
            await wire.generate(body)
            turn = types.Content(role="user", parts=[sdk_part(part) for part in shown])
            await sdk.aio.models.generate_content(model="m", contents=[turn], config=config)
        await wire.aclose()
        await sdk.aio.aclose()

    asyncio.run(send())
    assert len(server.calls) == 6
    for ours, theirs in zip(server.calls[::2], server.calls[1::2], strict=True):
        assert ours.path == theirs.path
        assert in_camel_case(ours.fields) == in_camel_case(theirs.fields)


def sdk_part(part: str | EncodedImage) -> types.Part:
    if isinstance(part, str):
        return types.Part(text=part)
    return types.Part.from_bytes(data=part.data, mime_type=part.media_type)


def sdk_shared(chosen: Any, seed: int) -> dict[str, Any]:
    return {
        "temperature": chosen.temperature,
        "top_p": chosen.top_p,
        "seed": seed,
        "max_output_tokens": chosen.max_output_tokens,
        "safety_settings": [
            types.SafetySetting(category=name, threshold=chosen.safety)
            for name in types.HarmCategory
            if name.value.split("_")[2] in ("HARASSMENT", "HATE", "SEXUALLY", "DANGEROUS")
        ]
        if chosen.safety
        else None,
    }


def sdk_text(chosen: Any, seed: int, schema: object = None, system: str = "") -> Any:
    thinking = None
    if chosen.thinking:
        level = types.ThinkingLevel(chosen.thinking.upper())
        thinking = types.ThinkingConfig(include_thoughts=True, thinking_level=level)
    return types.GenerateContentConfig(
        **sdk_shared(chosen, seed),
        system_instruction=system or None,
        response_mime_type="application/json" if schema else None,
        response_json_schema=schema,
        thinking_config=thinking,
    )


def sdk_image(chosen: Any, seed: int) -> Any:
    return types.GenerateContentConfig(
        **sdk_shared(chosen, seed),
        response_modalities=["TEXT", "IMAGE"],
        image_config=types.ImageConfig(aspect_ratio="1:1"),
    )


def in_camel_case(value: Any) -> Any:
    """Gemini takes two spellings of names and of base64, and its SDK mixes them; names in a schema are kept."""
    if isinstance(value, list):
        return [in_camel_case(inner) for inner in value]
    if isinstance(value, str):
        return value.replace("-", "+").replace("_", "/")
    if not isinstance(value, dict):
        return value
    return {
        re.sub("_([a-z])", lambda found: found[1].upper(), name): inner
        if name == "responseJsonSchema"
        else in_camel_case(inner)
        for name, inner in value.items()
    }


def test_openai_settings_arrive_and_nothing_is_stored_there(server: FakeProvider) -> None:
    writer = resolve_writer("openai/m", options_at(server, "openai", temperature=0.5, thinking="high"))
    assert ask(writer, write_request()).outcome.ok
    sent = server.calls[0].fields
    assert (sent["temperature"], sent["reasoning"], sent["store"]) == (0.5, {"effort": "high"}, False)
    assert sent["instructions"].startswith("You help to build")
    assert openai_format.images_sent(server.calls[0]) == [original().data]


def test_editor_is_sent_the_untouched_original(server: FakeProvider) -> None:
    for provider, form in (("gemini", gemini_format), ("openai", openai_format)):
        server.calls.clear()
        reply = ask(resolve_editor(f"{provider}/m", options_at(server, provider)), edit_request())
        assert reply.outcome.ok
        assert form.images_sent(server.calls[0]) == [original().data]
        assert "Add a small bright spot." in form.prompt_text(server.calls[0])


@pytest.mark.parametrize("provider", ["gemini", "openai"])
def test_an_image_of_another_shape_is_sent_square_and_restored(server: FakeProvider, provider: str) -> None:
    """The fake returns the square it was sent: what comes back is the original, pixel by pixel."""
    form = gemini_format if provider == "gemini" else openai_format

    def echo(request: Request, good: Answer) -> Answer:
        return form.image_answer(form.images_sent(request)[0])

    server.spoil = echo
    pixels = np.random.default_rng(5).integers(0, 255, (131, 300, 3), dtype=np.uint8)
    done, data = cv2.imencode(".png", pixels[:, :, ::-1])
    assert done
    wide = EncodedImage(data.tobytes(), "image/png")
    reply = ask(
        resolve_editor(f"{provider}/m", options_at(server, provider)),
        EditRequest(edit_request().image, wide, "x", 1),
    )
    assert reply.outcome.ok, reply.outcome
    sent = decode_untrusted(form.images_sent(server.calls[0])[0], "sent")
    assert sent.shape == (300, 300, 3)
    assert np.array_equal(decode_untrusted(reply.value.image.data, "back"), pixels)


@pytest.mark.parametrize("model", ["gemini/m", "openai/m", "openai-compatible/m"])
def test_a_judge_of_scales_is_sent_three_images_in_order_and_no_id(server: FakeProvider, model: str) -> None:
    shown = [an_image(shade=shade) for shade in (40, 90, 140)]
    asked = scale_request(*(EncodedImage(data, "image/png") for data in shown), "Remove the mole.")
    reply = ask(resolve_judge(model, options_at(server, model)), asked)
    form = gemini_format if model == "gemini/m" else openai_format
    (call,) = server.calls
    assert form.images_sent(call) == shown
    assert "The third shows the real result" in form.prompt_text(call)
    assert reply.value is not None and reply.value.criteria["editing_accuracy"].value in range(11)
    assert "patient-7" not in call.body.decode()


def test_proxies_are_used_but_never_for_this_machine(
    server: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeProvider([]) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        for provider in ("gemini", "openai", "openai-compatible"):
            assert ask(
                resolve_writer(f"{provider}/m", options_at(server, provider)), write_request()
            ).outcome.ok
        assert not proxy.calls
        for provider in ("gemini", "openai"):
            away = options_of(provider, base_url="http://provider.invalid/v1", clearance=Anything())
            reply = ask(resolve_writer(f"{provider}/m", away), write_request())
            assert not reply.outcome.ok
        assert [call.path.startswith("http://provider.invalid/v1") for call in proxy.calls] == [True, True]


def test_openais_key_and_account_are_not_sent_to_another_server(
    server: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY")
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "of-somebody")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Account: somebody")
    ask(resolve_writer("openai-compatible/m", options_at(server, "openai-compatible")), write_request())
    assert server.calls[0].key == "none"
    assert not server.calls[0].headers & {"openai-organization", "openai-project", "x-account"}


@pytest.mark.parametrize("provider", ["gemini", "openai"])
@pytest.mark.parametrize("instruction", ["Add air at the patient's left apex.", "Add air at the apex."])
def test_the_editor_receives_the_position_of_a_named_side(
    server: FakeProvider, provider: str, instruction: str
) -> None:
    """The instruction may come from a hosted writer, an offline one, or a user."""
    editor = resolve_editor(f"{provider}/m", options_at(server, provider))
    ask(editor, replace(edit_request(), instruction=instruction))
    form = gemini_format if provider == "gemini" else openai_format
    prompt = form.prompt_text(server.calls[-1])
    assert instruction in prompt
    assert ("patient's left is on the right of the image as shown" in prompt) == ("left" in instruction)


def png(shade: int, width: int = 160, height: int = 160) -> EncodedImage:
    return EncodedImage(an_image(width=width, height=height, shade=shade), "image/png")


def request(shots: int, text: str = "Add a spot.") -> EditRequest:
    shown = tuple(
        Demonstration(png(10 * i + 1, height=120), f"Add spot {i}.", png(10 * i + 2, height=120))
        for i in range(shots)
    )
    return replace(edit_request(png(99), text), demonstrations=shown)


def editor(server: FakeProvider, form: str) -> HostedEditor:
    made = resolve_editor(f"{form}/m", options_at(server, form))
    assert isinstance(made, HostedEditor)
    assert isinstance(made, TakesDemonstrations)
    return made


def shades(images: list[bytes]) -> list[int]:
    """The grey level in the middle of each image."""
    pixels = [decode(data) for data in images]
    assert all(p.shape[0] == p.shape[1] for p in pixels), "hosted editors get squares"
    return [int(p[p.shape[0] // 2, p.shape[1] // 2, 0]) for p in pixels]


@pytest.mark.parametrize("shots", [1, 3])
def test_gemini_gets_one_turn_in_order_with_the_new_case_last(server: FakeProvider, shots: int) -> None:
    assert ask(editor(server, "gemini"), request(shots)).outcome.ok
    (call,) = server.calls
    (turn,) = call.fields["contents"]
    assert turn["role"] == "user"
    kinds = ["text" if "text" in part else "image" for part in turn["parts"]]
    assert kinds == ["text", "image"] * (2 * shots + 1) + ["text"]
    wanted = [shade for i in range(shots) for shade in (10 * i + 1, 10 * i + 2)]
    assert shades(gemini_format.images_sent(call)) == [*wanted, 99]
    texts = gemini_format.prompt_parts(call)
    assert texts[0].endswith("Example 1, before:")
    assert texts[1] == "Example 1, instruction: Add spot 0.\nExample 1, after:"
    assert texts[-2].endswith("New case, before:")
    assert "New case, instruction: Add a spot." in texts[-1]


def test_openai_gets_all_images_and_a_text_that_names_them(server: FakeProvider) -> None:
    reply = ask(editor(server, "openai"), request(2))
    assert reply.outcome.ok
    assert '"prompt":"edit_by_example:' in reply.raw
    (call,) = server.calls
    assert call.body.count(b'name="image[]"') == 5
    text = openai_format.prompt_text(call)
    assert [text.index(f"(image {n})") for n in range(1, 6)] == sorted(
        text.index(f"(image {n})") for n in range(1, 6)
    )
    assert "Example 2, after:\n(image 4)" in text
    assert "New case, before:\n(image 5)" in text


def test_too_many_demonstrations_are_not_applicable_and_cost_nothing(server: FakeProvider) -> None:
    model = editor(server, "gemini")
    assert model.most_demonstrations == 6  # 14 images: two for each, one for the new case
    reply = ask(model, request(7))
    assert reply.outcome.kind is OutcomeKind.NOT_APPLICABLE
    assert not server.calls
