"""An edit that swaps a side marker never qualifies, however content the judge is; the next round may."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path

import cv2
import pytest

from audit.stored_run import RuleJudge, seen
from fakes.samples import sample_of
from pipeline.quick import CallLog, Draws, judging, quick_method, quick_recipe
from plantain.audit.rejudge import RejudgeRequest, run_rejudge
from plantain.catalogue.store import Catalogue
from plantain.journal import JournalReader, verify
from plantain.pipeline.run import run_build
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source, prepare
from plantain.privacy.text import TextReader
from plantain.records import Criterion, Licence, SourceImage, TaskState
from plantain.roles import EditedImage, EditRequest, EncodedImage
from plantain.runs.terms import Terms

PLACE = (60, 120)


def marker_moved(request: EditRequest) -> EditedImage:
    """R becomes L at the first try, and stays at the second."""
    pixels = decode(request.original.data).copy()
    if "try 1" in request.instruction:
        pixels[60:140, 40:130] = pixels[60:140, 140:230]
        marked(pixels, "L")
    cv2.circle(pixels, (500, 600), 60, (150,) * 3, -1)
    return EditedImage(EncodedImage(encode_jpeg(pixels), "image/jpeg"), None, "global")


def marked(pixels: Pixels, letter: str) -> None:
    cv2.putText(pixels, letter, PLACE, cv2.FONT_HERSHEY_SIMPLEX, 1.6, (240,) * 3, 4, cv2.LINE_AA)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, reader: TextReader) -> Path:
    root = tmp_path_factory.mktemp("marked")
    sample = sample_of("chest_xray")
    pixels, geometry = prepare(sample.pixels)
    marked(pixels, "R")
    data = encode_source(pixels)
    digest = hashlib.sha256(data).hexdigest()
    image = SourceImage(
        "marked",
        "pydicom-data",
        "chest_xray",
        ("No Finding",),
        Licence.OPEN,
        digest,
        digest,
        geometry,
        view="frontal",
    )
    with Catalogue.create(root / "catalogue") as catalogue:
        catalogue.add(image, data)
    method = replace(quick_method(CallLog()), editor=Draws(marker_moved), judges=(judging(True),))
    recipe = quick_recipe(root / "catalogue", findings=("Lung Lesion",), data={"check_text": True})
    asyncio.run(run_build(recipe, root / "run", method=method, text_reader=reader))
    return root / "run"


def test_a_swapped_marker_fails_the_round_and_the_next_one_succeeds(run: Path) -> None:
    with JournalReader.open(run) as reader:
        (row,) = reader.tasks()
        assert (row.state, row.round) == (TaskState.SUCCESS, 2)
        first, second = reader.attempts(row.id)
        assert first.verdict is not None
        assert second.verdict is not None
        assert not first.verdict.qualified
        assert first.verdict.judge == "quick/judge + text check"
        fidelity = first.verdict.observations.criteria[Criterion.FIDELITY_PRESERVATION]
        assert not fidelity.passed
        assert "marker R" in fidelity.evidence
        # The judge's own verdict is kept as well, as a member's verdict is.
        own = [stored for stored in reader.verdicts(row.id) if stored.round == 1 and not stored.decisive]
        assert [stored.verdict.qualified for stored in own] == [True]
        assert second.verdict.qualified
        assert second.verdict.judge == "quick/judge"
        scores = {s.round: s.score.value for s in reader.scores(row.id) if s.metric == "text_kept"}
        assert scores == {1: 0.0, 2: 1.0}
        assert "rapidocr" in str(reader.meta("method"))
        assert verify(reader).problems == ()
    lenient = RejudgeRequest([RuleJudge("rule/yes", lambda request: seen(True))], decisive=True)
    assert asyncio.run(run_rejudge(run, lenient, Terms(()))).vetoed == 1
    with JournalReader.open(run) as reader:
        assert next(reader.tasks()).round == 2  # not the first one, under no judge
