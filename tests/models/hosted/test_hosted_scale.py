"""The hosted judge of MedEBench's scales: its requests to each provider, and its outcome for bad answers."""

from __future__ import annotations

import pytest

from fakes import gemini_format, openai_format
from fakes.caller import ask as ask_role
from fakes.caller import options_at, resolve_judge
from fakes.content import an_image
from fakes.requests import scale_request
from fakes.server import FakeProvider, Request
from plantain.records import Observations
from plantain.roles import EncodedImage, JudgeRequest, Reply

MODELS = ("gemini/m", "openai/m", "openai-compatible/m")


def request(text: str = "Remove the mole on the cheek.") -> JudgeRequest:
    return scale_request(*(EncodedImage(an_image(shade=shade), "image/png") for shade in (40, 90, 140)), text)


def ask(server: FakeProvider, model: str, asked: JudgeRequest) -> Reply[Observations]:
    return ask_role(resolve_judge(model, options_at(server, model)), asked)


def sent(call: Request) -> tuple[list[bytes], str]:
    form = gemini_format if ":generateContent" in call.path else openai_format
    return form.images_sent(call), form.prompt_text(call)


@pytest.mark.parametrize("model", MODELS)
def test_images_are_sent_in_order_and_scores_are_read(server: FakeProvider, model: str) -> None:
    reply = ask(server, model, request())
    images, text = sent(server.calls[0])
    assert images == [an_image(shade=shade) for shade in (40, 90, 140)]
    assert "Remove the mole on the cheek." in text
    assert "The third shows the real result" in text
    assert reply.outcome.ok
    assert reply.value is not None
    assert reply.value.criteria["editing_accuracy"].value in range(11)
    assert reply.value.differences == "A spot near the middle."
    assert "patient-7" not in server.calls[0].body.decode(), "no id of the image leaves"
