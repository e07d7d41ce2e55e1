from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from fakes.commands import json_of, printed, refused
from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import KEY, FakeProvider
from plantain.cli import main


@pytest.fixture
def server() -> Iterator[FakeProvider]:
    with FakeProvider([gemini_route, openai_route]) as provider:
        yield provider


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(autouse=True)
def _day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plantain.models.registry.today", lambda: date(2026, 11, 22))


def test_list_shows_roles_price_date_key_and_package() -> None:
    shown = printed("models", "--json")
    assert KEY not in shown
    rows = {row["name"]: row for row in json.loads(shown)}
    judge = rows["gemini/gemini-3.8-flash"]
    assert judge["roles"] == ["writer", "judge"]
    assert judge["price"] == {"input_per_m": 0.75, "output_per_m": 3.75, "cached_per_m": 0.075}
    expected = ("2026-11-26", "found (GOOGLE_API_KEY)", "installed")
    assert (judge["price_date"], judge["key"], judge["extra"]) == expected
    assert rows["openai/gpt-image-2"]["key"] == "missing (OPENAI_API_KEY)"
    assert rows["offline/procedural"]["key"] == "not needed"
    assert rows["openai-compatible/…"]["price"] is None
    assert rows["openai/gpt-image-1"]["retired"] == "2026-10-23"


@pytest.mark.parametrize("columns", ["80", "140"])
def test_table_is_printed_completely(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown = printed("models", "--all")
    for text in (
        "gemini/gemini-3.1-flash-lite-image",
        "0.25/1.5/30",
        "2026-10-23",
        "free",
        "Other ids work too",
    ):
        assert text in shown


def at(url: str, name: str, folder: Path) -> str:
    """A settings file in which the provider of `name` is at an address."""
    file = folder / "settings.toml"
    file.write_text(f'[providers.{name.partition("/")[0]}]\nbase_url = "{url}"\n')
    return str(file)


@pytest.mark.parametrize(
    ("name", "path", "message"),
    [
        ("gemini/gemini-3.8-flash", "", "served by gemini-fake-001"),
        ("openai/gpt-5-mini", "/v1", "served by gpt-fake-2026"),
        ("openai-compatible/local", "/v1", "answered: "),
    ],
)
def test_probe_makes_one_call(
    name: str, path: str, message: str, server: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY"):
        monkeypatch.setenv(variable, KEY)
    settings = at(server.url + path, name, tmp_path)
    assert message in printed("models", "--probe", name, "--settings", settings)
    assert len(server.calls) == 1


def test_failed_probe_states_the_reason_and_exits_1(
    server: FakeProvider, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "sk-wrong-key-123456")
    settings = at(server.url, "gemini/m", tmp_path)
    assert main(["models", "--probe", "gemini/gemini-3.8-flash", "--settings", settings, "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] is False
    assert "key was not accepted" in data["said"]
    assert "sk-wrong" not in data["said"]


def test_probe_without_key_or_of_another_model_is_invalid_input() -> None:
    assert "OPENAI_API_KEY" in refused("models", "--probe", "openai/gpt-5")
    for name in ("gemini/gemini-3-pro-image", "offline/templates"):
        assert "name a hosted writer or judge" in refused("models", "--probe", name)


def test_open_editors_are_listed_with_size_licence_and_availability(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    rows = {row["name"]: row for row in json_of("models")}
    klein, icedit = rows["diffusers/flux2-klein-4b"], rows["diffusers/medebench-icedit"]
    assert klein["roles"] == ["editor"]
    assert (klein["licence"], klein["conditions"], klein["on_disk"]) == ("apache-2.0", False, "no")
    assert (klein["disk_gb"], klein["memory"]) == (16, "13 GB in bfloat16")
    assert (icedit["licence"], icedit["conditions"]) == ("flux-1-dev-non-commercial-license", True)
    assert icedit["preset"]["settings"] == {"steps": 28, "guidance": 50.0}
    assert rows["process/medebench-seed-x"]["prompt"] == "Edit this image: {instruction}"
    assert rows["gemini/medebench-gemini"]["model"] == "gemini/gemini-3.1-flash-image"
    monkeypatch.setenv("COLUMNS", "100")
    shown = printed("models", "--all")
    assert "licence (* to be accepted)" in shown
    assert "medebench-paint-by-inpaint" in shown
    assert "yours" in shown


def test_models_lists_usable_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    shown = printed("models")
    assert "offline/procedural" in shown and "gemini/gemini-3.8-flash" in shown
    absent = ("openai/gpt-5-mini", "medebench-seed-x")  # no key, no program
    assert "plantain models --all" in shown and not any(name in shown for name in absent)
