"""A recipe moved from a maker's own address to a hospital's part of a cloud: the same requests, the same run.

The clouds are on loopback; clients, credentials and their renewal are the SDKs' own.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fakes import gemini_format, openai_format
from fakes.caller import options_of, resolve_writer
from fakes.clouds.google_and_azure import LOCATION, PROJECT, Tokens, cloud, sign_in
from fakes.server import KEY, Answer, FakeProvider
from plantain.journal import JournalReader
from plantain.models.hosted.azure.wire import AzureWire
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.vertex.wire import VertexWire
from plantain.pipeline.recipe import load_recipe
from plantain.pipeline.run import run_build
from plantain.records import InputError

GEMINI = """
name = "moved"
seed = 3
[data]
catalogue = "{catalogue}"
findings = ["AMD", "Cataract"]
directions = ["add"]
check_text = false
[models]
writer = "gemini/gemini-3.8-flash"
editor = "gemini/gemini-3.1-flash-image"
judge = "gemini/gemini-3.8-flash"
[loop]
max_rounds = 2
[limits]
budget_usd = 50.0
concurrency = 1
[providers.gemini]
temperature = 0.2
thinking = "low"
base_url = "{url}"
"""

OPENAI = (
    GEMINI.replace("gemini-3.1-flash-image", "gpt-image-2")
    .replace("gemini-3.8-flash", "gpt-5")
    .replace("gemini", "openai")
)


@pytest.fixture(autouse=True)
def _other_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project-of-somebody")


def built(text: str, folder: Path) -> dict[str, Any]:
    """Tasks and cost of a recipe's run, without the names of its models."""
    folder.mkdir()
    (folder / "recipe.toml").write_text(text)
    recipe = load_recipe(folder / "recipe.toml")
    summary = asyncio.run(run_build(recipe, folder / "run"))
    assert summary.stopped is None
    with JournalReader.open(folder / "run") as reader:
        tasks = sorted((row.task.id, row.state, row.round) for row in reader.tasks())
        return {"tasks": tasks, "spent": round(reader.spent_usd(), 9)}


@pytest.mark.parametrize("stated_s", [3_600, 2])
def test_recipe_moves_from_gemini_to_vertex(
    stated_s: int, one_image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens end after three requests each: their stated lifetime is an hour (a 401 contradicts it) or 2 s."""
    tokens = Tokens(lasts=3, stated_s=stated_s)
    with cloud(tokens) as server:
        sign_in(monkeypatch, tmp_path, server.url)
        there = built(GEMINI.format(catalogue=one_image, url=server.url), tmp_path / "gemini")
        asked = sorted(gemini_format.prompt_text(call) for call in server.calls)
        server.calls.clear()
        text = GEMINI.replace("gemini/", "vertex/").replace("[providers.gemini]", "[providers.vertex]")
        text += f'project = "{PROJECT}"\nlocation = "{LOCATION}"\n'
        moved = built(text.format(catalogue=one_image, url=server.url), tmp_path / "vertex")
    # A tenth more, for the region; what else there is is the same.
    assert moved == {**there, "spent": pytest.approx(1.1 * there["spent"])} and moved["spent"] > 0.0
    sent = [call for call in server.calls if "publishers" in call.path]
    assert {gemini_format.prompt_text(call) for call in sent} == set(asked)
    assert len(sent) - tokens.refused == len(asked)
    assert len(tokens.issued) >= len(asked) / 3
    if stated_s == 2:
        assert tokens.refused == 0  # renewed before they ended: no request was refused


@pytest.mark.parametrize(
    ("model", "section", "message"),
    [
        ("vertex/gemini-3.8-flash", {}, r"providers.vertex.project: is missing"),
        ("vertex/gemini-3.8-flash", {"project": "p", "location": "eu.evil/"}, r"is not a location"),
        (
            "azure/d",
            {"base_url": "https://x.openai.azure.com", "deployments": {"d": "gpt-5-mnii"}},
            r"providers.azure.deployments.d: no model 'gpt-5-mnii' of OpenAI is known; did you mean 'gpt-5-mini'",
        ),
        (
            "openai/gpt-5",
            {"base_url": ["http://a/v1", "http://b/v1"]},
            r"providers.openai.base_url: input should be a valid string",
        ),
    ],
)
def test_wrong_cloud_settings_are_named(
    model: str, section: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_OPENAI_API_KEY", raising=False)
    with pytest.raises(InputError, match=message) as caught:
        resolve_writer(model, options_of(model, **section))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("entra", [True, False])
def test_recipe_moves_from_openai_to_azure(
    entra: bool, one_image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if entra:
        pytest.importorskip("azure.identity", reason="the extra azure is not installed")
    tokens = Tokens(lasts=3)
    with cloud(tokens, {"gpt-5": openai_format.MODEL, "gpt-image-2": "gpt-image-2"}) as server:
        sign_in(monkeypatch, tmp_path, server.url)
        if not entra:
            monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
        there = built(OPENAI.format(catalogue=one_image, url=f"{server.url}/v1"), tmp_path / "openai")
        asked = len(server.calls)
        server.calls.clear()
        text = OPENAI.replace("openai/", "azure/").replace("[providers.openai]", "[providers.azure]")
        moved = built(text.format(catalogue=one_image, url=server.url), tmp_path / "azure")
    assert moved == there and moved["spent"] > 0.0
    sent = [call for call in server.calls if call.path.startswith("/openai/")]
    assert len(sent) - tokens.refused == asked
    assert bool(tokens.issued) == entra
    assert {call.path.partition("?")[0] for call in sent} == {
        "/openai/responses",
        "/openai/deployments/gpt-image-2/images/edits",
    }


def test_token_requests_follow_no_redirect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signed tokens of a service account and of a machine: an address with a 307 redirects them to another host."""
    with FakeProvider([]) as elsewhere, FakeProvider([]) as server:
        server.routes.append(lambda request: Answer(b"", 307, {"Location": f"{elsewhere.url}/take"}))
        server.checks_key = elsewhere.checks_key = lambda path: False
        sign_in(monkeypatch, tmp_path, server.url)
        with pytest.raises(Fault, match="no token from Google"):
            asyncio.run(VertexWire("vertex/m", options_of("vertex", project="p")).tokens())
        with pytest.raises(Fault, match="no token from Microsoft Entra"):
            asyncio.run(AzureWire("azure/m", None, options_of("azure")).tokens())
    assert {call.path.partition("?")[0] for call in server.calls} == {"/token", "/msi/token"}
    assert not elsewhere.calls
