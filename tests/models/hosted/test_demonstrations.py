"""Worked examples on their way to hosted editors: one turn, labelled, the new case last."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes import gemini_format, openai_format
from fakes.caller import ask, options_at, resolve_editor
from fakes.content import picture
from fakes.requests import edit_request
from fakes.server import FakeProvider
from plantain.models.hosted.editor import HostedEditor
from plantain.pixels.decode import decode
from plantain.records import OutcomeKind
from plantain.roles import Demonstration, EditRequest, EncodedImage, TakesDemonstrations


def png(shade: int, width: int = 160, height: int = 160) -> EncodedImage:
    return EncodedImage(picture(width=width, height=height, shade=shade), "image/png")


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


def shades(pictures: list[bytes]) -> list[int]:
    """The grey level in the middle of each picture."""
    pixels = [decode(data) for data in pictures]
    assert all(p.shape[0] == p.shape[1] for p in pixels), "hosted editors get squares"
    return [int(p[p.shape[0] // 2, p.shape[1] // 2, 0]) for p in pixels]


@pytest.mark.parametrize("shots", [1, 3])
def test_gemini_gets_one_turn_in_order_with_the_new_case_last(server: FakeProvider, shots: int) -> None:
    assert ask(editor(server, "gemini"), request(shots)).outcome.ok
    (call,) = server.calls
    (turn,) = call.fields["contents"]
    assert turn["role"] == "user"
    kinds = ["text" if "text" in part else "picture" for part in turn["parts"]]
    assert kinds == ["text", "picture"] * (2 * shots + 1) + ["text"]
    wanted = [shade for i in range(shots) for shade in (10 * i + 1, 10 * i + 2)]
    assert shades(gemini_format.pictures_sent(call)) == [*wanted, 99]
    texts = gemini_format.prompt_parts(call)
    assert texts[0].endswith("Example 1, before:")
    assert texts[1] == "Example 1, instruction: Add spot 0.\nExample 1, after:"
    assert texts[-2].endswith("New case, before:")
    assert "New case, instruction: Add a spot." in texts[-1]


def test_openai_gets_all_pictures_and_a_text_that_names_them(server: FakeProvider) -> None:
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


def test_more_than_a_request_holds_is_not_applicable_and_costs_nothing(server: FakeProvider) -> None:
    model = editor(server, "gemini")
    assert model.most_demonstrations == 6  # 14 pictures: two for each, one for the new case
    reply = ask(model, request(7))
    assert reply.outcome.kind is OutcomeKind.NOT_APPLICABLE
    assert not server.calls
