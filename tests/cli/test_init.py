"""A first recipe: it loads, plans, fits the catalogue, and overwrites no file."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from fakes.commands import json_of, refused
from pipeline.quick import quick_catalogue
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.findings import load_taxonomy
from plantain.models.registry import known_models
from plantain.pipeline.first_recipe import first_recipe
from plantain.pipeline.recipe import load_recipe
from plantain.records import Licence


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_catalogue(tmp_path_factory.mktemp("init") / "Bilder, größer \"als\" 'sonst'", images=3)


def relabelled(catalogue: Path, path: Path, **changes: object) -> Path:
    with Catalogue.open(catalogue) as whole, Catalogue.create(path) as other:
        for image in whole.images():
            other.add(replace(image, **changes), whole.read(image))  # type: ignore[arg-type]
    return path


def test_recipe_can_be_planned(catalogue: Path, tmp_path: Path) -> None:
    file = tmp_path / "recipes" / "pilot.toml"
    file.parent.mkdir()
    assert json_of("init", catalogue, "--to", file)["recipe"] == str(file)
    recipe = load_recipe(file)
    assert recipe.data.catalogue.resolve() == catalogue.resolve()
    assert recipe.data.findings == ("AMD", "Cataract", "Diabetes", "Glaucoma", "Hypertension", "Myopia")
    assert json_of("plan", file)["tasks"] == 12


def test_existing_recipe_is_not_overwritten(
    catalogue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("mine")
    assert main(["init", str(catalogue), "--to", str(file)]) == 2
    assert file.read_text() == "mine"
    assert str(file) in capsys.readouterr().err


@pytest.mark.parametrize("place", ["absent/pilot.toml", "folder", "\0"])
def test_unwritable_folder_gives_one_line(catalogue: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    refused("init", catalogue, "--to", tmp_path / place)


def test_restricted_images_add_a_consent_section(catalogue: Path, tmp_path: Path) -> None:
    closed = relabelled(catalogue, tmp_path / "closed", licence=Licence.CREDENTIALED)
    file = tmp_path / "pilot.toml"
    assert main(["init", str(closed), "--to", str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    assert "# [data.consent]" in text and "3 credentialed" in text
    named = (
        text.replace("# [data.consent]", "[data.consent]").replace("# by", "by").replace("# agree", "agree")
    )
    file.write_text(named, encoding="utf-8")
    assert load_recipe(file).data.consent is not None


def test_findings_are_added_to_any_image_without_normal_images(catalogue: Path, tmp_path: Path) -> None:
    ill = relabelled(catalogue, tmp_path / "ill", labels=("other",))
    file = tmp_path / "pilot.toml"
    assert main(["init", str(ill), "--to", str(file)]) == 0
    assert load_recipe(file).data.add_to == "any"


def test_nothing_to_edit_gives_one_line(tmp_path: Path) -> None:
    with Catalogue.create(tmp_path / "empty"):
        pass
    assert "is empty: no image to which a finding could be added" in refused(
        "init", tmp_path / "empty", "--to", tmp_path / "pilot.toml"
    )
    assert not (tmp_path / "pilot.toml").exists()


@pytest.mark.parametrize("day", [date(2026, 11, 22), date(2026, 12, 31)])
def test_proposed_hosted_models_are_not_retired_soon(catalogue: Path, tmp_path: Path, day: date) -> None:
    with Catalogue.open(catalogue) as opened:
        text = first_recipe(opened, tmp_path / "pilot.toml", load_taxonomy(), day=day)
    uncommented = [
        line[2:] for line in text.splitlines() if line.startswith(("# writer =", "# editor =", "# judge ="))
    ]
    proposed = {word.strip('",') for line in uncommented for word in line.split() if "/" in word}
    assert len(uncommented) == 3 and len(proposed) >= 4
    for name in proposed:
        retired = known_models()[name].retired
        assert not retired or (date.fromisoformat(retired) - day).days > 60
