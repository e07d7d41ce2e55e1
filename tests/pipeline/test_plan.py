from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_picture, quick_recipe
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.findings import load_taxonomy
from plantain.pipeline.forecast import BuildPlan, CallEstimate, Pilot, make_plan, read_pilot
from plantain.pipeline.plan import enumerate_tasks
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import Direction, InputError, Step

PRICED = {
    "concurrency": 50,
    "providers": {
        "quick": {
            "requests_per_minute": 6.0,
            "prices": {
                "writer": {"input_per_m": 1.0, "output_per_m": 10.0},
                "editor": {"image_out_each": 0.04},
                "judge": {"input_per_m": 1.0, "output_per_m": 10.0},
            },
        }
    },
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
    return Recipe.model_validate(
        {
            **quick_recipe(catalogue).model_dump(),
            "limits": {"concurrency": 50},
            "providers": PRICED["providers"],
        }
    )


def planned(recipe: Recipe, pilot: Pilot | None = None) -> BuildPlan:
    with Catalogue.open(recipe.data.catalogue) as catalogue:
        return make_plan(recipe, catalogue, load_taxonomy(), pilot)


def test_capped_findings_draw_images_of_their_own(tmp_path: Path) -> None:
    """Six tasks on the same two images would be two independent pictures, not six."""
    path = quick_catalogue(tmp_path / "catalogue", images=12)

    def drawn(most: int) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        recipe = quick_recipe(path)
        capped = recipe.model_copy(update={"data": recipe.data.model_copy(update={"per_finding": most})})
        with Catalogue.open(path) as opened:
            for task in enumerate_tasks(capped, opened, load_taxonomy()):
                found.setdefault(task.finding, set()).add(task.image_id)
        return found

    one, two = drawn(1), drawn(2)
    assert two == drawn(2) and all(one[name] < images for name, images in two.items())
    assert len(two) == 3 and len(set.union(*two.values())) > 3


def brain_catalogue(path: Path, views: dict[str, str]) -> Path:
    """Healthy slices, and one with a pituitary tumour, by id with the view that each is recorded with."""
    fundus, data = quick_picture(0)
    with Catalogue.create(path) as catalogue:
        for number, (name, view) in enumerate(views.items()):
            label = "pituitary" if name == "ill" else "notumor"
            known = {"modality": "brain_mri", "labels": (label,), "source_sha256": f"{number:064}"}
            catalogue.add(replace(fundus, id=name, view=view, **known), data)
    return path


def test_additions_out_of_view_are_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = {"high": "without sella", "low": "sella", "unsure": "unknown", "ill": "without sella"}
    told = brain_catalogue(tmp_path / "told", recorded)
    recipe = quick_recipe(told, findings=("glioma", "pituitary"))
    both = (Direction.ADD, Direction.REMOVE)
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update={"directions": both})})
    capped = recipe.model_copy(update={"data": recipe.data.model_copy(update={"per_finding": 2})})
    with Catalogue.open(told) as catalogue:
        tasks = {(t.direction, t.image_id) for t in enumerate_tasks(recipe, catalogue, load_taxonomy())
                 if t.finding == "pituitary"}  # fmt: skip
        made = make_plan(recipe, catalogue, load_taxonomy())
        under_a_cap = make_plan(capped, catalogue, load_taxonomy())
    assert tasks == {(Direction.ADD, "low"), (Direction.ADD, "unsure"), (Direction.REMOVE, "ill")}
    assert made.not_planned == {("brain_mri", "pituitary", "without sella"): 1}
    assert under_a_cap.not_planned == {}  # two other slices can be drawn
    recipe_file = tmp_path / "recipe.toml"
    recipe_file.write_text(
        'name = "b"\n[data]\ncatalogue = "told"\n[models]\nwriter = "offline/templates"\n'
        'editor = "offline/procedural"\njudge = "offline/instruments"\n'
    )
    assert main(["plan", str(recipe_file)]) == 0
    assert (
        "1 addition of pituitary left out: the slice is recorded as without sella" in capsys.readouterr().out
    )


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


@pytest.mark.parametrize(
    ("quality", "tokens"), [("low", (196, 196, 196)), ("high", (7_024,) * 3), ("", (196, 1_756, 7_024))]
)
def test_edits_are_forecast_by_quality(
    quality: str, tokens: tuple[int, int, int], catalogue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gpt-image-2 by OpenAI's calculator: 0.006, 0.053 and 0.211 dollars a picture at 30 dollars per million."""
    models = {"writer": "quick/writer", "editor": "openai/gpt-image-2", "judge": "quick/judge"}
    said = {**PRICED["providers"], "openai": {"image_quality": quality}}
    recipe = Recipe.model_validate(
        {**quick_recipe(catalogue).model_dump(), "models": models, "providers": said}
    )
    made = planned(recipe)
    # a round: writer and judge as above; 1,300 picture and 200 text tokens read
    beside = 0.0022 + 0.0085 + 0.0038 + 0.0125 + 1_300 * 8e-6 + 200 * 5e-6
    assert made.cost_usd is not None
    for told, rounds, share, written in zip(
        (made.cost_usd.low, made.cost_usd.expected, made.cost_usd.high),
        (12, 36, 36),
        (0.7, 1.0, 1.5),
        tokens,
        strict=True,
    ):
        assert told == pytest.approx(rounds * share * (beside + written * 30e-6))


def test_plan_of_models_without_a_price_says_which(catalogue: Path) -> None:
    made = planned(quick_recipe(catalogue))
    assert made.cost_usd is None and made.unpriced == ("quick/writer", "quick/editor", "quick/judge")


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


def test_pilot_without_a_closed_task_tells_no_rates(catalogue: Path, tmp_path: Path) -> None:
    recipe = priced(catalogue)
    capped = Recipe.model_validate({**recipe.model_dump(), "limits": {"max_calls": 1, "concurrency": 1}})
    asyncio.run(run_build(capped, tmp_path / "run", method=quick_method(CallLog(None))))
    with pytest.raises(InputError, match="none of its tasks is closed"):
        read_pilot(tmp_path / "run")


def test_plan_command_prints_and_warns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")  # a narrower table cuts the names of models
    quick_catalogue(tmp_path / "catalogue", images=1)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        """
        name = "hosted"
        [data]
        catalogue = "catalogue"
        findings = ["AMD"]
        [models]
        writer = "gemini/gemini-3.8-flash"
        editor = "gemini/gemini-3.1-flash-image"
        judge = "gemini/gemini-3.8-flash"
        [limits]
        budget_usd = 0.01
        """
    )
    assert main(["plan", str(recipe)]) == 0
    out, err = capsys.readouterr()
    assert "edit calls to gemini/gemini-3.1-flash-image" in out and "cost" in out
    assert "the run will stop there" in out
    assert "of one family" in err
    assert main(["plan", str(recipe), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["tasks"] == 1 and told["cost_usd"]["high"] > told["cost_usd"]["low"] > 0
    assert told["budget_usd"] == 0.01
    tokens = {row["step"]: row["tokens_per_call"] for row in told["calls_by"]}
    assert tokens["edit"] == {"read": 1_500, "written": 1_120}  # one picture of 1K
    assert tokens["judge"] == {"read": 3_800, "written": 1_250} and "million tokens read" in out
    family, key = told["warnings"]  # writer and judge are one model, and its key is asked for once
    assert "of one family" in family
    assert (
        key
        == "gemini: no key; set the environment variable GEMINI_API_KEY (or GOOGLE_API_KEY); build needs it"
    )


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (
            'editor = "gemini/gemini-3.1-flash-imge"',
            "did you mean 'gemini/gemini-3.1-flash-image'? (if it is new",
        ),
        ('writer = "openai/gpt-99"', "models.writer: no model 'openai/gpt-99' is known"),
        ('judge = "gemini/gemini-3.1-flash-image"', "can be editor, not judge; for one, 'gemini/"),
        ('judge = "diffusers/x"', "can be an editor, not a judge"),
        ('writer = "openai-compatible/llava"', "providers.openai-compatible.base_url: is missing"),
        ('editor = "offline/procedurl"', "did you mean 'offline/procedural'?"),
        ('editor = "gemin/x"', "did you mean 'gemini'?"),
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


def test_a_missing_key_is_a_warning_to_plan_and_stops_build(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    quick_catalogue(tmp_path / "catalogue", images=1)
    recipe = tmp_path / "recipe.toml"
    # An id that is newer than this plantain is taken where its price is stated.
    recipe.write_text(
        HOSTED
        + 'judge = "openai/gpt-99"\n[providers.openai.prices."gpt-99"]\ninput_per_m = 1.0\noutput_per_m = 2.0\n'
    )
    line = "openai: no key; set the environment variable OPENAI_API_KEY"
    assert main(["plan", str(recipe)]) == 0
    assert f"warning: {line}; build needs it" in capsys.readouterr().err
    assert main(["build", str(recipe), "--run", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"plantain: {line}"
