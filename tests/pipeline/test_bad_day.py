"""What a run of credentialed images shows and writes, and what it does when a stored image is damaged."""

from __future__ import annotations

import asyncio
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_recipe
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pages.publishing import write_page
from plantain.pipeline.run import run_build
from plantain.records import Consent, Licence


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    quick_catalogue(root / "plain", 2)
    with Catalogue.open(root / "plain") as plain, Catalogue.create(root / "catalogue") as catalogue:
        for image in plain.images():
            allowed = Consent("the owner", "letter of today")
            credentialed = replace(image, licence=Licence.CREDENTIALED, consent=allowed)
            catalogue.add(credentialed, plain.read(image), bytes(32))
    recipe = quick_recipe(root / "catalogue", findings=("AMD", "Cataract"))
    asyncio.run(run_build(recipe, root / "run", method=quick_method(CallLog(None), max_rounds=2)))
    return root


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "run", tmp_path / "run"))


def test_every_page_with_credentialed_images_asks_not_to_be_passed_on(run: Path) -> None:
    """The line is the report's, which README and the agreement of PhysioNet (credentialed access) ask for."""
    with JournalReader.open(run) as reader:
        task = next(reader.tasks()).id
        dataset = next(reader.images()).dataset
    shown = run.parent / "task.html"
    assert main(["show", str(run), task, "--to", str(shown)]) == 0
    assert main(["judge", "rejudge", str(run), "--judge", "offline/instruments"]) == 0
    assert main(["report", str(run)]) == 0
    for page in (shown, run / "rejudged.html", run / "report.html"):
        text = page.read_text()
        assert text.count("Do not pass this page on:") == 1
        assert re.search(rf"credentialed or unknown \([^)]*{dataset}", text)


def test_a_page_with_images_is_not_written_before_it_tells_whose(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not tell whose"):
        write_page(tmp_path / "new.html", '<main><img src="data:image/jpeg;base64,AAAA"></main>')
    assert not (tmp_path / "new.html").exists()
