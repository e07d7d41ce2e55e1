from __future__ import annotations

from pathlib import Path

import pytest

from plantain.pipeline.recipe import load_recipe
from plantain.records import InputError

GOOD = """
name = "pilot"
seed = 7
[data]
catalogue = "catalogue"
findings = ["Pneumothorax"]
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_recipe_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, GOOD))
    assert recipe.data.catalogue == tmp_path.resolve() / "catalogue"
    assert recipe.loop.max_rounds == 5 and recipe.models.judges == ("offline/instruments",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            GOOD + "[loop]\nmax_round = 3\n",
            r"recipe.toml: unknown key 'loop.max_round'; did you mean 'max_rounds'\?",
        ),
        (
            GOOD + '[models]\njudge = ["offline/instruments", "offline/instruments"]\n',
            r"recipe.toml: models.judge: offline/instruments is named 2 times but answers the same each time",
        ),
        (GOOD + "[loop]\nmax_rounds = 0\n", r"loop.max_rounds: input should be greater than or equal to 1"),
        ("name = \n", r"is not valid TOML"),
        (GOOD + '[data.consent]\nby = "A person"\n', r"data.consent.agreement: field required"),
    ],
)
def test_recipe_faults_are_one_line_with_file_and_field(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_recipe(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_recipe_freezes_sampling_and_leaves_limits_prices_and_address_free(tmp_path: Path) -> None:
    text = (
        GOOD
        + """
    [providers.gemini]
    requests_per_minute = 1000
    base_url = "http://127.0.0.1:1"
    temperature = 0.4
    [providers.gemini.prices."gemini-9"]
    input_per_m = 1.0
    """
    )
    frozen = load_recipe(write(tmp_path, text)).frozen_part()
    assert frozen["sampling"] == {"gemini": {"temperature": 0.4}}
    assert load_recipe(write(tmp_path, GOOD)).frozen_part()["sampling"] == {}
