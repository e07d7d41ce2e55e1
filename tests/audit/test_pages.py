"""The pages of a card and of flips in a browser: images on the first screen, readable at every width and theme."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from audit.stored_run import RuleJudge, seen, stored_run, taxonomy_of
from plantain.audit.clean import recipes
from plantain.audit.flips import flips, judged_attempts, tallies
from plantain.audit.gate import CLEAN
from plantain.audit.images import package_images
from plantain.audit.pages import write_card_page, write_rejudged
from plantain.audit.rejudge import RejudgeRequest, run_rejudge
from plantain.audit.trials import Trial, trials_of
from plantain.journal import JournalReader
from plantain.records import Figure, Gate, JudgeCard
from plantain.records.judging import Check
from plantain.runs.terms import Terms
from review.in_browser import SIZES_AND_THEMES, Screen, assert_first_sight, in_thread

BLOB, STRENGTH = "blob", "20 % strength"


@pytest.fixture(scope="module")
def rejudged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = stored_run(tmp_path_factory.mktemp("rejudged") / "run", images=1)
    judges = (
        RuleJudge("rule/amd", lambda request: seen("AMD" in request.instruction)),
        RuleJudge("rule/yes", lambda request: seen(True)),
    )
    done = in_thread(lambda: asyncio.run(run_rejudge(run, RejudgeRequest(judges), Terms(()))))
    with JournalReader.open(run) as reader:
        attempts = judged_attempts(reader, done, RejudgeRequest(()))
        asked, others = tallies(reader, attempts, done)
        found = flips(attempts, [str(one["judge"]) for one in (*asked, *others)])
        return write_rejudged(reader, [*asked, *others], found)


@pytest.fixture(scope="module")
def examples() -> dict[str, Trial]:
    for recipe in recipes(package_images(), taxonomy_of("AMD"), 0):
        made = trials_of(recipe, (BLOB, STRENGTH), ())
        if isinstance(made, list) and len(made) == 3:
            return {trial.kind: trial for trial in made}
    raise AssertionError("no recipe has both")


@pytest.fixture(scope="module")
def card_page(examples: dict[str, Trial], tmp_path_factory: pytest.TempPathFactory) -> Path:
    rate = Figure(4, 0.0, 0.0, 0.49, 4)
    checks = (Check("clean edits, which are right", "pass", "accepted 90 %"), Check(BLOB, "fail", "accepted 30 %"),
              Check("asked again", "too few images", "answers the same"))  # fmt: skip
    gate = Gate(False, False, ("n = 4",), "Not known: too few images.", checks)
    card = JudgeCard(
        "rule/judge",
        "print",
        "med-banana",
        gate,
        {"fundus": 4},
        "held out",
        controls={BLOB: rate},
        defects={STRENGTH: rate},
    )
    return write_card_page(tmp_path_factory.mktemp("card"), card, examples)


@pytest.mark.parametrize(("width", "theme"), SIZES_AND_THEMES)
def test_first_screen_shows_images(
    rejudged: Path, card_page: Path, browser: Any, width: int, theme: str
) -> None:
    screen = Screen(browser, width, 900, color_scheme=theme)
    for file in (rejudged, card_page):
        screen.page.goto(file.as_uri())
        assert_first_sight(screen.page, large=4.5)
        assert screen.page.locator('img[loading="lazy"]').count() == 0
        assert screen.page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    assert screen.complaints == []


def test_rejudge_opens_with_the_number_of_flips(rejudged: Path) -> None:
    # 1 image x 2 findings x 2 rounds = 4 attempts; one judge accepts all, the other the two of AMD
    assert "2 of 4 verdicts differ between rule/amd and rule/yes</h1>" in rejudged.read_text()


def test_a_card_has_one_sentence_the_results_and_an_example_of_each_kind(card_page: Path) -> None:
    text = card_page.read_text()
    assert "Not known: too few images.</h1>" in text and "1 pass, 1 fail, 1 too few images." in text
    for kind, times in ((CLEAN, 2), (BLOB, 2), (STRENGTH, 2)):
        assert text.count(f'alt="{kind}, ') == times  # before and after
