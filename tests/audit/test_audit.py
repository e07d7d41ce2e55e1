"""The audit: rates counted right, pictures kept apart, and one small real audit end to end."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from plantain.audit import AuditPlan, report_of, run_audit
from plantain.audit.asking import asking
from plantain.audit.clean import recipes
from plantain.audit.pictures import folder_pictures, package_pictures
from plantain.audit.published import opinions_of, published_edits
from plantain.audit.rates import CLEAN, AuditRate, TrialAnswer
from plantain.findings import load_taxonomy
from plantain.offline.judge import InstrumentJudge
from plantain.offline.workers import close_workers
from plantain.records import Criterion, InputError
from plantain.rubrics import MED_BANANA
from plantain.runs.settings.terms import Terms

COMPLIANCE, REALISM = Criterion.INSTRUCTION_COMPLIANCE, Criterion.REALISM
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "med-banana-samples"


def answer(defect, violates, failed, modality="fundus"):
    return TrialAnswer(defect, modality, "AMD", "add", "picture", violates, failed, "", "name")


def test_report_counts_caught_false_alarms_and_silence():
    both = (COMPLIANCE, REALISM)
    answers = [
        answer(CLEAN, (), ()),
        answer(CLEAN, (), (REALISM,)),
        answer(CLEAN, (), None),
        answer("seam", both, both),
        answer("seam", both, (REALISM,)),
        answer("seam", both, None),
    ]
    report = report_of(answers, judge="j/j", amplitude="strong", seed=1, split="s", not_made=Counter())
    assert report.clean_any == AuditRate(1, 2)
    assert report.clean.failed[REALISM] == AuditRate(1, 2)
    assert report.clean.unanswered == 1
    (seam,) = report.defects
    # Half of a defect's criteria is not caught; no answer is no miss either.
    assert (seam.caught, seam.unanswered) == (AuditRate(1, 2), 1)
    assert seam.failed[REALISM] == AuditRate(2, 2)
    assert report.as_json()["defects"][0]["caught"]["rate"] == 0.5


def test_a_rate_of_nothing_has_no_share():
    assert AuditRate(0, 0).share is None


def test_no_brain_slice_is_in_both_sets():
    tuning, held_out = (
        {p.image.id for p in package_pictures(split) if p.image.modality == "brain_mri"}
        for split in ("tuning", "held-out")
    )
    assert tuning and held_out and not tuning & held_out


def test_no_prepared_picture_is_in_both_sets():
    tuning, held_out = (
        {p.image.prepared_sha256 for p in package_pictures(split)} for split in ("tuning", "held-out")
    )
    assert not tuning & held_out


def test_recipes_take_modalities_in_turns_and_repeat_exactly():
    pictures, taxonomy = package_pictures("held-out"), load_taxonomy()
    first = list(islice(recipes(pictures, taxonomy, 3), 12))
    again = list(islice(recipes(pictures, taxonomy, 3), 12))
    assert [r.name for r in first] == [r.name for r in again]
    assert Counter(r.picture.image.modality for r in first) == {"chest_xray": 4, "brain_mri": 4, "fundus": 4}


def test_folder_pictures_needs_pictures(tmp_path):
    with pytest.raises(InputError, match="no picture"):
        folder_pictures(tmp_path)


@pytest.mark.slow
def test_a_small_audit_end_to_end(tmp_path):
    # Two pairs are no measurement; what must hold is that each defect gets its pairs and that the judge, on
    # edits this plain, is right much more often than not.
    plan = AuditPlan(pairs=2, clean=3, seed=17, findings=("glioma", "AMD", "Lung Lesion"))
    pictures = package_pictures("held-out")

    async def audited():
        async with asking(InstrumentJudge(), Terms(("offline/instruments",)), tmp_path / "audit") as asked:
            return await run_audit(asked, pictures, load_taxonomy(), MED_BANANA, plan), asked.opened

    try:
        (report, answers), opened = asyncio.run(audited())
        again, opened_again = asyncio.run(audited())
    finally:
        close_workers()
    assert (len(answers), opened.summary.made) == (23, 23)
    # What the judge said is in the audit's run: nothing is asked a second time.
    assert (opened_again.summary.made, opened_again.summary.replayed) == (0, 23)
    assert again == (report, answers)
    assert [rates.caught.n for rates in report.defects] == [2] * 10
    assert sum(rates.caught.successes for rates in report.defects) >= 15
    assert report.clean_any.n == 3
    assert report.clean_any.successes <= 1


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data/med-banana-samples")
def test_published_edits_are_found_and_judged_where_an_original_can_be_stood_in_for(tmp_path):
    edits = published_edits(SHARED, load_taxonomy())
    assert len(edits) == 42
    chosen = [edit for edit in edits if edit.source in ("s50008601", "Te-noTr_0001")]

    async def judged():
        async with asking(InstrumentJudge(), Terms(("offline/instruments",)), tmp_path / "audit") as asked:
            return await opinions_of(asked, chosen, MED_BANANA)

    try:
        opinions = asyncio.run(judged())
    finally:
        close_workers()
    assert [opinion.observations is not None for opinion in opinions] == [
        e.source == "s50008601" for e in chosen
    ]
