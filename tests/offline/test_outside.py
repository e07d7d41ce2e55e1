"""Putting back what an edit should not have touched: the finding stays, all else is the original again."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from fakes.samples import prepared_of
from plantain.findings import load_taxonomy
from plantain.offline.editor import render_instruction
from plantain.offline.judge import judge_encoded
from plantain.offline.outside import Restored, put_back, usual_at
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import Criterion, Direction, Observations, SourceImage
from plantain.rubrics import MED_BANANA

WORDS = {
    "chest_xray": ("Consolidation", "Add a large, marked consolidation in the lower zone of the right lung."),
    "fundus": ("AMD", "Add large, marked age-related macular degeneration at the macula."),
}


class Edited:
    """A picture, what the offline editor made of it, and that spoilt: moved, toned, noisy."""

    def __init__(self, modality: str) -> None:
        self.image, data = prepared_of(modality)
        self.original = decode(data)
        self.name, self.words = WORDS[modality]
        self.clean = render_instruction(self.original, self.words, self.image, seed=3).pixels
        self.answer = spoilt(self.clean)

    def put_back(self, answer: Pixels | None = None, **other: object) -> Restored:
        finding = load_taxonomy().get(self.image.modality, self.name)
        asked: dict[str, object] = {"finding": finding, "direction": Direction.ADD, **other}
        given = self.answer if answer is None else answer
        return put_back(self.original, given, self.words, self.image, **asked)  # type: ignore[arg-type]


def spoilt(pixels: Pixels) -> Pixels:
    height, width = pixels.shape[:2]
    ys, xs = np.mgrid[:height, :width].astype(np.float32)
    dx = 1.1 + 0.6 * np.sin(ys / 150) + 0.3 * (xs / width - 0.5)
    moved = cv2.remap(pixels, xs + dx, ys - 0.7, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    toned = 255 * (moved / 255.0) ** 0.9 * 0.96 + 3
    noise = np.random.default_rng(1).normal(0, 2.0, (height, width, 1))
    return np.clip(np.rint(toned + noise), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module", params=["chest_xray", "fundus"])
def edited(request: pytest.FixtureRequest) -> Edited:
    return Edited(request.param)


@pytest.fixture(scope="module")
def restored(edited: Edited) -> Restored:
    return edited.put_back()


def test_outside_is_the_original_before_and_after_the_jpeg(edited: Edited, restored: Restored) -> None:
    assert restored.why_not == ""
    assert restored.residual < 0.3
    outside = ~restored.mask
    assert restored.share == pytest.approx(outside.mean())
    assert restored.share > 0.7
    assert np.array_equal(restored.pixels[outside], edited.original[outside])
    coded, final = decode(encode_source(edited.original)), decode(encode_jpeg(restored.pixels))
    assert cv2.absdiff(coded, final)[outside].max() <= 1


def test_the_finding_stays_and_is_found_without_a_seam(edited: Edited, restored: Restored) -> None:
    drawn = np.abs(edited.clean.astype(int) - edited.original).max(axis=2) > 6
    assert (drawn & restored.mask).sum() >= 0.97 * drawn.sum()
    seen = judged(edited, restored.pixels)
    assert seen.criteria[Criterion.INSTRUCTION_COMPLIANCE].passed
    if edited.image.modality == "chest_xray":  # beside the macula the disc keeps a shade of the answer's tone
        assert seen.criteria[Criterion.FIDELITY_PRESERVATION].passed
    # The answer as it came changed everything, and fails where most rounds of hosted editors do.
    assert not judged(edited, edited.answer).criteria[Criterion.FIDELITY_PRESERVATION].passed


def judged(edited: Edited, pixels: Pixels) -> Observations:
    finding = load_taxonomy().get(edited.image.modality, edited.name)
    seen = judge_encoded(
        encode_source(edited.original),
        encode_jpeg(pixels),
        edited.words,
        edited.image,
        finding,
        Direction.ADD,
        MED_BANANA,
    )
    assert isinstance(seen, Observations)
    return seen


def test_a_region_says_where_a_change_belongs_that_no_taxonomy_knows(edited: Edited) -> None:
    drawn = np.abs(edited.clean.astype(int) - edited.original).max(axis=2) > 6
    region = cv2.dilate(drawn.astype(np.uint8), np.ones((15, 15), np.uint8)) > 0
    done = edited.put_back(finding=None, direction=None, region=region)
    assert done.why_not == ""
    assert (drawn & done.mask).sum() >= 0.9 * drawn.sum()


def test_where_the_change_belongs_cannot_be_told_the_answer_stays_as_it_came(edited: Edited) -> None:
    def why(done: Restored) -> str:
        assert np.array_equal(
            done.pixels, edited.answer if done.why_not.startswith(("nei", "the f")) else done.pixels
        )
        assert done.share == 0.0
        assert done.mask.all()
        return done.why_not

    assert (
        why(edited.put_back(finding=None))
        == "neither a known finding nor a region says where the change belongs"
    )
    if edited.image.modality == "fundus":
        cataract = load_taxonomy().get("fundus", "Cataract")
        assert why(edited.put_back(finding=cataract)).startswith("the finding changes the whole field")
    other = np.ascontiguousarray(edited.original[::-1])
    assert why(edited.put_back(other)).startswith("it cannot be laid over the original")
    assert why(edited.put_back(edited.original)) == "no coherent change lies where it belongs"


def test_around_a_fracture_the_originals_texture_stays(edited: Edited) -> None:
    """Noise of four levels over the whole answer: beside the line next to none of it is left, and the line is."""
    if edited.image.modality != "chest_xray":
        pytest.skip("bones are on films")
    words = "Add a large, marked rib fracture in the lateral part of a left rib."
    clean = render_instruction(edited.original, words, edited.image, seed=3).pixels
    noise = np.random.default_rng(1).normal(0, 4.0, (*clean.shape[:2], 1))
    answer = np.clip(np.rint(clean + noise), 0, 255).astype(np.uint8)
    fracture = load_taxonomy().get("chest_xray", "Fracture")
    done = put_back(edited.original, answer, words, edited.image, fracture, Direction.ADD)
    assert done.why_not == ""
    drawn = np.abs(clean.astype(int) - edited.original).max(axis=2)
    kept = done.pixels.astype(int) - edited.original
    beside = done.mask & (cv2.dilate((drawn > 1).astype(np.uint8), np.ones((15, 15), np.uint8)) == 0)
    assert beside.sum() > 200 and kept[beside].std() < 1.5
    line = drawn >= 0.8 * drawn.max()
    asked = clean.astype(int) - edited.original
    assert kept[line].mean() / asked[line].mean() > 0.7


def test_an_answer_that_was_painted_over_stays_as_it_came(edited: Edited) -> None:
    """Its borders lie where they did, on clouds of other levels: nothing gives it the original's tones again."""
    plane = edited.original.astype(np.float32)
    clouds = np.random.default_rng(1).normal(size=(24, 24, 3)).astype(np.float32)
    clouds = cv2.resize(clouds, plane.shape[1::-1], interpolation=cv2.INTER_CUBIC)
    painted = 128 + 30 * clouds + plane - cv2.GaussianBlur(plane, (0, 0), 10.0)
    answer = np.clip(np.rint(painted), 0, 255).astype(np.uint8)
    done = edited.put_back(answer)
    assert done.why_not.startswith("its tones cannot be given back")
    assert np.array_equal(done.pixels, answer)


def test_an_image_of_unknown_modality_is_left_or_restored_without_an_error(edited: Edited) -> None:
    unknown: SourceImage = replace(edited.image, modality="ultrasound")
    assert put_back(edited.original, edited.answer, "add it", unknown, None, None).why_not


def test_borders_steeper_than_all_that_tell_differ_by_as_much_more() -> None:
    """A difference of a tenth of the texture, everywhere: what is five times as steep differs five times as much."""
    texture = np.linspace(1.0, 10.0, 1_000, dtype=np.float32).reshape(20, 50)
    marker = np.full((1, 50), 50.0, np.float32)
    everywhere = np.vstack([texture, marker])
    tells = np.ones(everywhere.shape, bool)
    tells[-1] = False
    usual = usual_at(0.1 * everywhere, everywhere, tells)
    assert usual[-1] == pytest.approx(5.0, rel=0.05)
