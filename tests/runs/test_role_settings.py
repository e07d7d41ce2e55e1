"""`[settings.ROLE]`: the settings sent for each role, the frozen part of them, and the most that a call can cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.caller import asked, set_keys
from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.requests import edit_request, judge_request, original, write_request
from fakes.server import FakeProvider
from plantain.models.registry import close_models, settings_class
from plantain.pipeline.recipe import Recipe
from plantain.records import InputError
from plantain.roles import Reply
from plantain.roles.options import FREE
from plantain.runs.settings_file import Limits
from plantain.runs.setup import RunSetup
from plantain.runs.terms import load_terms, model_limits

SETTINGS = {
    "writer": {"temperature": 0.9, "effort": "xhigh", "max_output_tokens": 9000},
    "editor": {"size": "2K"},
    "judge": {"temperature": 0.0, "media_resolution": "high"},
}


@pytest.fixture(scope="module")
def server() -> Iterator[FakeProvider]:
    with FakeProvider([gemini_route, openai_route]) as provider:
        yield provider


@pytest.fixture(autouse=True)
def _keys(server: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    server.calls.clear()
    server.spoil = None
    set_keys(monkeypatch)


def recipe(server: FakeProvider, settings: dict[str, Any], models: str = "gemini", **limits: float) -> Recipe:
    names = {
        "gemini": ("gemini/gemini-3.8-flash", "gemini/gemini-3.1-flash-image"),
        "openai": ("openai/gpt-5", "openai/gpt-image-2"),
    }[models]
    return Recipe.model_validate(
        {
            "name": "roles",
            "data": {"catalogue": "catalogue"},
            "models": {"writer": names[0], "editor": names[1], "judge": names[0]},
            "limits": limits,
            "settings": settings,
            "providers": {
                "gemini": {"base_url": server.url, "temperature": 0.5},
                "openai": {"base_url": f"{server.url}/v1"},
            },
        }
    )


def asked_of(recipe: Recipe) -> list[Reply[Any]]:
    """One call of each role, through the setup."""
    setup = RunSetup(recipe.terms)
    models = recipe.models

    async def each() -> list[Reply[Any]]:
        roles = setup.writer(models.writer), setup.editor(models.editor), setup.judge(models.judges[0])
        requests = write_request(), edit_request(original(256)), judge_request()
        replies = [await asked(role, request) for role, request in zip(roles, requests, strict=True)]
        await close_models(*roles)
        return replies

    return asyncio.run(each())


def test_each_role_is_asked_with_its_own_settings(server: FakeProvider) -> None:
    """Writer and judge are one model with different settings; unset values come from the provider's section."""
    assert all(reply.outcome.ok for reply in asked_of(recipe(server, SETTINGS)))
    write, edit, judge = (call.fields for call in server.calls)
    asked = [call["generationConfig"] for call in (write, edit, judge)]
    assert [config.get("temperature") for config in asked] == [0.9, 0.5, 0.0]
    assert [config.get("maxOutputTokens") for config in asked] == [9000, 8192, 8192]
    assert asked[0]["thinkingConfig"]["thinkingLevel"] == "XHIGH" and "thinkingConfig" not in asked[2]
    assert asked[1]["imageConfig"] == {"aspectRatio": "1:1", "imageSize": "2K"}
    assert asked[2]["mediaResolution"] == "MEDIA_RESOLUTION_HIGH" and "mediaResolution" not in asked[0]


def test_stated_settings_are_frozen_and_defaults_change_nothing(server: FakeProvider) -> None:
    plain, stated = recipe(server, {}), recipe(server, SETTINGS)
    assert plain.frozen_part()["settings"] == {}
    assert stated.frozen_part()["settings"] == SETTINGS
    empty = recipe(server, {"judge": {}})
    assert empty.frozen_part() == plain.frozen_part()
    setup, none = RunSetup(stated.terms), RunSetup(plain.terms)
    name = stated.models.judges[0]
    assert none.judge(name).fingerprint != setup.judge(name).fingerprint


def test_money_is_set_aside_for_the_dearest_role(server: FakeProvider) -> None:
    terms = recipe(server, {**SETTINGS, "judge": {"max_output_tokens": 12_000}}, budget_usd=5.0).terms
    assert model_limits(terms, "gemini/gemini-3.8-flash").max_output_tokens == 12_000
    assert model_limits(terms, "gemini/gemini-3.1-flash-image").image_tokens == 1680  # 2K


@pytest.mark.parametrize(
    "provider", ["gemini", "openai", "openai-compatible", "azure", "vertex", "diffusers"]
)
def test_a_resumed_run_may_change_an_address_but_no_setting_of_answers(provider: str) -> None:
    fields = settings_class(provider).model_fields
    free = {name for name, field in fields.items() if FREE in field.metadata}
    assert {"concurrency", "requests_per_minute", "prices"} <= free
    assert free & {"temperature", "thinking", "max_output_tokens", "steps", "side", "image_size"} == set()
    assert {"base_url", "timeout_s", "device", "cache_dir"} & fields.keys() <= free


def settings(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_the_defaults_hold() -> None:
    terms = load_terms(None, ("offline/procedural", "offline/procedural"))
    assert terms.models == ("offline/procedural",)
    assert terms.limits == Limits()
    assert terms.sampling() == {}


def test_a_file_is_read_and_its_paths_are_relative_to_it(tmp_path: Path) -> None:
    path = settings(
        tmp_path,
        '[limits]\nbudget_usd = 5\n[providers.gemini]\ntemperature = 0.5\nprompts = "own"\n'
        '[consent]\nby = "the owner"\nagreement = "letter of May"\n',
    )
    terms = load_terms(path, ("gemini/x",))
    assert terms.limits.budget_usd == 5
    assert terms.provider("gemini/x").prompts == tmp_path.resolve() / "own"
    assert terms.sampling() == {"gemini": {"temperature": 0.5}}
    assert terms.consent is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[limits]\nbudget = 5\n", "unknown key 'limits.budget'; did you mean 'budget_usd'?"),
        ("[providers.gemni]\n", "providers.gemni: no such provider; did you mean 'gemini'?"),
        ("[limits]\nconcurrency = 0\nwave = 0\n", "limits.wave: input should be greater than or equal to 1"),
        ("nonsense", "is not valid TOML"),
    ],
)
def test_wrong_settings_are_named_with_file_and_field(tmp_path: Path, text: str, message: str) -> None:
    path = settings(tmp_path, text)
    with pytest.raises(InputError) as problem:
        load_terms(path, ("gemini/x",))
    assert str(problem.value).startswith(str(path))
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("name", ["../../x", "http://x/y", "openai/../../etc", "/etc/passwd", "openai/"])
def test_name_that_is_a_path_or_an_address_is_one_line(name: str) -> None:
    with pytest.raises(InputError, match="a path or an address; expected provider/model") as raised:
        load_terms(None, (name,))
    assert repr(name) in str(raised.value)


def test_folder_of_open_weights_is_a_name() -> None:
    names = ("diffusers//models/base", "diffusers/../base", "openai-compatible/org/model:tag")
    assert load_terms(None, names).models == names
