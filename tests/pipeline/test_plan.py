from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_recipe
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.findings import load_taxonomy
from plantain.pipeline.forecast import BuildPlan, CallEstimate, Pilot, make_plan, read_pilot
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import Step

PRICES = {
    "writer": {"input_per_m": 1.0, "output_per_m": 10.0},
    "editor": {"image_out_each": 0.04},
    "judge": {"input_per_m": 1.0, "output_per_m": 10.0},
}
HOSTED = """
name = "hosted"
[data]
catalogue = "catalogue"
findings = ["AMD"]
[models]
"""


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_catalogue(tmp_path_factory.mktemp("plan") / "catalogue", images=4)


def priced(catalogue: Path) -> Recipe:
    section = {"requests_per_minute": 6.0, "prices": PRICES}
    return quick_recipe(catalogue, limits={"concurrency": 50}, parts={"providers": {"quick": section}})


def planned(recipe: Recipe, pilot: Pilot | None = None) -> BuildPlan:
    with Catalogue.open(recipe.data.catalogue) as catalogue:
        return make_plan(recipe, catalogue, load_taxonomy(), pilot)


def test_plan_counts_calls_money_and_time_by_hand(catalogue: Path) -> None:
    made = planned(priced(catalogue))
    assert (made.tasks, made.images) == (12, 4)  # 4 images, 3 findings to add
    assert made.rounds == CallEstimate(12.0, 36.0, 36.0)  # 1, min(3.15, 3) and 3 rounds
    assert made.calls == CallEstimate(36.0, 108.0, 108.0)
    # a typical round: writer 2200 in, 850 out; editor $0.04; judge 3800 in, 1250 out
    per_round = 0.0022 + 0.0085 + 0.04 + 0.0038 + 0.0125
    assert made.cost_usd is not None
    assert made.cost_usd.expected == pytest.approx(36 * per_round)
    assert made.cost_usd.low == pytest.approx(0.7 * 12 * per_round)
    # each model makes 36 calls at 6 a minute: that is longer than 36 x 27 s at 50 in flight
    assert made.duration_s.expected == pytest.approx(360.0)


def test_plan_uses_the_rates_of_a_pilot(catalogue: Path, tmp_path: Path) -> None:
    asyncio.run(run_build(quick_recipe(catalogue), tmp_path / "run", method=quick_method(CallLog(None))))
    pilot = read_pilot(tmp_path / "run")
    made = planned(priced(catalogue), pilot)
    mean = sum(pilot.whole.rounds) / pilot.whole.tasks
    assert made.rounds.expected == pytest.approx(12 * mean)
    assert made.rounds.low <= made.rounds.expected <= made.rounds.high <= 36.0
    # every attempt was written and edited once; a refused one was not judged
    assert made.calls_by[(Step.WRITE, "quick/writer")].expected == pytest.approx(made.rounds.expected)
    assert made.calls_by[(Step.JUDGE, "quick/judge")].expected < made.rounds.expected
    assert made.success is not None
    assert made.success.expected == pytest.approx(pilot.whole.succeeded)
    assert made.success.low < made.success.expected < made.success.high <= 12.0


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (
            'editor = "gemini/gemini-3.1-flash-imge"',
            "did you mean 'gemini/gemini-3.1-flash-image'? (if it is new",
        ),
        ('judge = "gemini/gemini-3.1-flash-image"', "can be editor, not judge; for one, 'gemini/"),
        ('editor = "offline/procedurl"', "did you mean 'offline/procedural'?"),
    ],
)
def test_plan_refuses_what_build_refuses_with_the_same_sentence(
    models: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    quick_catalogue(tmp_path / "catalogue", images=1)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(HOSTED + models)
    told = []
    for command in (["plan"], ["build", "--run", str(tmp_path / "run")]):
        assert main([command[0], str(recipe), *command[1:]]) == 2
        told.append(capsys.readouterr().err.splitlines()[-1])
    assert told[0] == told[1] and said in told[0]
    assert not (tmp_path / "run").exists()
