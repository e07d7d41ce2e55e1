"""What a recipe and a plan say of batch jobs before any is handed in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fakes.server import KEY
from pipeline.quick import quick_catalogue
from plantain.cli import main
from plantain.pipeline.recipe import load_recipe
from plantain.records import InputError


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_catalogue(tmp_path_factory.mktemp("batch") / "catalogue", images=3)


@pytest.mark.parametrize("name", ["offline", "azure", "vertex", "openai-compatible"])
def test_provider_without_jobs_is_refused(name: str, catalogue: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f'name = "n"\n[data]\ncatalogue = "{catalogue}"\n[models]\njudge = "{name}/m"\n'
        f'[providers.{name}]\ntransport = "batch"\n'
    )
    with pytest.raises(InputError, match=rf"unknown key 'providers\.{name}\.transport'"):
        load_recipe(recipe)


def test_plan_counts_batches_at_half_price_in_waves_and_refuses_what_build_refuses(
    catalogue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def plan(transport: str, more: str = "", models: str = 'judge = "gemini/j"') -> tuple[int, str, str]:
        path = tmp_path / "recipe.toml"
        path.write_text(
            f'name = "p"\n[data]\ncatalogue = "{catalogue}"\n[models]\n{models}\n[limits]\nwave = 5\n'
            f'[providers.gemini]\ntransport = "{transport}"\n[providers.gemini.prices."j"]\ninput_per_m = 2.0\n{more}'
        )
        code = main(["plan", str(path), "--json"])
        return code, *capsys.readouterr()

    code, out, _ = plan("online")
    assert code == 0
    online = json.loads(out)
    batch = json.loads(plan("batch")[1])
    assert batch["cost_usd"]["expected"] == pytest.approx(online["cost_usd"]["expected"] / 2)
    # six findings on three images are 18 tasks: four waves of five rounds of three jobs, an hour each
    assert batch["tasks"] == 18
    assert batch["duration_s"]["expected"] == 4 * 5 * 3 * 3600
    code, _, error = plan(
        "online", '[providers.openai]\ntransport = "batch"\n', 'editor = "openai/gpt-image-2"'
    )
    assert (code, error) == (0, "")
    code, _, error = plan("batch", "[providers.gemini.batch]\nimage = 10\n")
    assert code == 2
    assert "did you mean 'images'?" in error
