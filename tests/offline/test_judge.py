"""The instrument judge end to end: its verdicts on edits of known quality."""

from __future__ import annotations

import asyncio

import cv2
import numpy as np
import pytest

from fakes.samples import prepared_of
from plantain.findings import load_taxonomy
from plantain.offline.judge import InstrumentJudge, measured
from plantain.offline.language import Intent, compose
from plantain.offline.workers import close_workers
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.records import Criterion, Direction, FailureCode, Observations, Outcome, OutcomeKind
from plantain.roles import EncodedImage, JudgeRequest
from plantain.rubrics import MED_BANANA

COMPLIANCE = Criterion.INSTRUCTION_COMPLIANCE
REALISM = Criterion.REALISM
FIDELITY = Criterion.FIDELITY_PRESERVATION


@pytest.fixture(scope="module")
def chest():
    image, data = prepared_of("chest_xray")
    return image, data, decode(data)


@pytest.fixture(scope="module")
def finding():
    return load_taxonomy().get("chest_xray", "Lung Lesion")


def with_lesion(pixels, x=700, y=300, levels=35.0):
    ys, xs = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
    inside = np.clip((50 - np.hypot(xs - x, ys - y)) / 22, 0, 1)
    haze = (inside * inside * (3 - 2 * inside))[..., None]
    return np.clip(np.rint(pixels + levels * haze), 0, 255).astype(np.uint8)


def request(image, finding, data: bytes, edited: bytes, words: str, direction=Direction.ADD) -> JudgeRequest:
    files = (EncodedImage(one, "image/jpeg") for one in (data, edited))
    return JudgeRequest(image, *files, words, finding, direction, MED_BANANA, 0)


def observe(chest, finding, edited, *, side="left", direction=Direction.ADD, original=None) -> Observations:
    image, data, _ = chest
    before = data if original is None else encode_jpeg(original)
    words = compose(Intent(finding.name, direction, side=side), finding)
    observed = measured(request(image, finding, before, encode_jpeg(edited), words, direction))
    assert isinstance(observed, Observations)
    return observed


def failed(observed: Observations) -> set[Criterion]:
    return {name for name, result in observed.criteria.items() if not result.passed}


def test_judge_passes_a_soft_lesion_in_the_named_lung(chest, finding):
    observed = observe(chest, finding, with_lesion(chest[2]))
    assert failed(observed) == set()
    assert observed.facts["has_disease"] and observed.opinion and not observed.facts["other_disease"]
    assert observed.reason.startswith("Instrument reading, not an expert's opinion.")
    assert "grey levels" in observed.criteria[COMPLIANCE].evidence
    assert all(0.5 <= (result.confidence or 0) <= 1.0 for result in observed.criteria.values())


def test_judge_of_an_unchanged_image_fails_compliance_alone(chest, finding):
    observed = observe(chest, finding, chest[2])
    assert failed(observed) == {COMPLIANCE}
    assert observed.criteria[COMPLIANCE].codes == (FailureCode.TOO_SUBTLE,)
    assert not observed.facts["has_disease"]


def test_judge_fails_the_wrong_side(chest, finding):
    observed = observe(chest, finding, with_lesion(chest[2]), side="right")
    assert COMPLIANCE in failed(observed)
    assert FailureCode.WRONG_LOCATION in observed.criteria[COMPLIANCE].codes


def test_judge_passes_a_removal_and_fails_one_that_leaves_most_of_it(chest, finding):
    drawn = with_lesion(chest[2], levels=45.0)
    removed = observe(chest, finding, chest[2], direction=Direction.REMOVE, original=drawn)
    assert failed(removed) == set()
    assert not removed.facts["has_disease"]
    untouched = observe(chest, finding, drawn, direction=Direction.REMOVE, original=drawn)
    assert COMPLIANCE in failed(untouched)
    assert untouched.facts["has_disease"]


def test_judge_sees_a_letter_in_a_corner(chest, finding):
    edited = with_lesion(chest[2])
    marked = cv2.putText(edited.copy(), "R", (40, 90), cv2.FONT_HERSHEY_SIMPLEX, 2.0, (235,) * 3, 4)
    observed = observe(chest, finding, marked)
    assert failed(observed) == {FIDELITY}
    assert "mark or text" in observed.criteria[FIDELITY].evidence


@pytest.mark.parametrize("edited", [b"not an image", b""])
def test_judge_of_another_file_is_malformed(chest, finding, edited):
    image, data, _ = chest
    outcome = measured(request(image, finding, data, edited, "Add a nodule."))
    assert isinstance(outcome, Outcome)
    assert outcome.kind is OutcomeKind.MALFORMED


def test_judge_fills_its_role(chest, finding):
    image, data, pixels = chest
    asked = request(
        image, finding, data, encode_jpeg(with_lesion(pixels)), "Add a lung lesion in the left lung."
    )
    try:
        reply = asyncio.run(InstrumentJudge().judge(asked))
    finally:
        close_workers()
    assert reply.value is not None
    assert reply.usage.served_model.startswith("offline/instruments@")


FINDINGS = {"brain_mri": "glioma", "chest_xray": "Lung Lesion", "fundus": "AMD"}


def soil(value: float) -> None:
    """Leave freed memory of many sizes that contains a value."""
    for side in (60, 100, 180, 256, 360, 512, 1024):
        held = [np.full((side, side + 9 * step), value, np.float32) for step in range(20)]
        del held


@pytest.mark.parametrize("modality", FINDINGS)
def test_a_verdict_does_not_depend_on_freed_memory(modality: str) -> None:
    image, data = prepared_of(modality)
    pixels = decode(data).astype(np.float32)
    ys, xs = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
    lesion = 30 * np.exp(-((xs - 600) ** 2 + (ys - 420) ** 2) / 2500)
    edited = encode_jpeg(np.clip(pixels + lesion[..., None], 0, 255).astype(np.uint8))
    finding = load_taxonomy().get(modality, FINDINGS[modality])
    seen = []
    for value in (0.0, 3e4, 1.0):
        soil(value)
        words = f"Add a small {finding.name} on the patient's left."
        seen.append(measured(request(image, finding, data, edited, words)))
    assert seen[0] == seen[1] == seen[2]
