from __future__ import annotations

from pathlib import Path

import pytest

from plantain.build.recipe import load_recipe
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


def test_recipe_panel_is_a_list(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, GOOD + '[models]\njudge = ["a/b", "c/d"]\n'))
    assert recipe.models.judges == ("a/b", "c/d")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            GOOD + "[loop]\nmax_round = 3\n",
            r"recipe.toml: unknown key 'loop.max_round'; did you mean 'max_rounds'\?",
        ),
        (GOOD + "[lop]\nx = 3\n", r"unknown key 'lop'; did you mean 'loop'\?"),
        (GOOD + "[loop]\nmax_rounds = 0\n", r"loop.max_rounds: input should be greater than or equal to 1"),
        (GOOD + '[loop]\npolicy = "most"\n', r"loop.policy: input should be 'all-pass' or 'weighted'"),
        (GOOD.replace("seed = 7", 'seed = "x"'), r"seed: input should be a valid integer"),
        ('name = "x"\n', r"data: field required"),
        ("name = \n", r"not a readable TOML file"),
        (GOOD.replace("pilot", "../up"), r"name: "),
    ],
)
def test_recipe_faults_are_one_line_with_file_and_field(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_recipe(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_recipe_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such recipe"):
        load_recipe(tmp_path / "none.toml")
