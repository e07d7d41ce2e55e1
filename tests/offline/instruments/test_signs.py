"""Signs of a finding on shapes drawn here, by means of their own: a phantom head and a phantom chest."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from fakes.requests import source_image
from plantain.findings import load_taxonomy
from plantain.offline.checks import COMPLIANCE, Check
from plantain.offline.instruments.evidence import Evidence, measure
from plantain.offline.instruments.outline import mass_of, outline_of
from plantain.offline.instruments.pair import pair_of
from plantain.offline.instruments.presentation import presentation_of
from plantain.offline.judge_criteria import result_of
from plantain.offline.signs import signs_of
from plantain.pixels.arrays import Field
from plantain.records import Direction, FailureCode

SMALL, SIDE = 256, 512
YS, XS = np.mgrid[:SIDE, :SIDE].astype(np.float32)


def soft(shape: Field, sigma: float) -> Field:
    return np.asarray(cv2.GaussianBlur(shape.astype(np.float32), (0, 0), sigma))


def oval(x: float, y: float, across: float, down: float) -> Field:
    return np.asarray(np.hypot((XS - x) / across, (YS - y) / down) < 1, np.float32)


def chest() -> Field:
    """Two dark lungs beside a bright middle, on a grey body."""
    lungs = np.maximum(oval(140, 230, 80, 150), oval(372, 230, 80, 150))
    grain = np.random.default_rng(1).normal(0, 2, (SIDE, SIDE)).astype(np.float32)
    return np.asarray(150 - 100 * soft(lungs, 4) + grain)


def signs(finding: str, drawing: Field, position: str = "erect") -> list[Check]:
    """The signs of a finding on a chest to which a drawing was added."""
    before = chest()
    pictures = [
        np.repeat(np.clip(np.rint(one), 0, 255).astype(np.uint8)[..., None], 3, axis=2)
        for one in (before, before + drawing)
    ]
    image = replace(source_image(), modality="chest_xray", view="frontal", position=position)
    shown = presentation_of(load_taxonomy().get("chest_xray", finding), image)
    pair = pair_of(*pictures, "chest_xray")
    return signs_of(measure(pair, image, shown, Direction.ADD, side=None), Direction.ADD)


def failing(finding: str, drawing: Field, position: str = "erect") -> str:
    return " | ".join(check.text for check in signs(finding, drawing, position) if check.passed is not True)


def uneven(shape: Field) -> Field:
    """A shape of one's own: a hill's even fall would be refused."""
    noise = soft(np.random.default_rng(4).normal(size=(SIDE, SIDE)), 9)
    return np.asarray(soft(shape, 4) * (30 + 12 * noise / noise.std()))


def test_a_nodule_is_rounded_and_a_strip_is_not() -> None:
    assert "largest disc" not in failing("Lung Lesion", uneven(oval(140, 200, 24, 28)))
    assert "largest disc" in failing("Lung Lesion", uneven(oval(140, 200, 18, 70)))


def test_fluid_lies_at_the_base_unless_somebody_lies() -> None:
    high, low = uneven(oval(140, 160, 55, 30)), uneven(oval(140, 345, 60, 30))
    assert "fluid sinks" in failing("Pleural Effusion", high)
    assert "fluid sinks" not in failing("Pleural Effusion", low)
    assert "fluid sinks" not in failing("Pleural Effusion", high, position="supine")


def test_a_widened_middle_is_no_consolidation_and_a_filled_lobe_is() -> None:
    beside = uneven(np.maximum(oval(205, 190, 22, 70), oval(307, 190, 22, 70)))
    assert "widened mediastinum" in failing("Consolidation", beside)
    assert "widened mediastinum" not in failing("Consolidation", uneven(oval(125, 220, 45, 50)))


def test_what_lies_where_fluid_collects_or_is_a_band_may_be_that_as_well() -> None:
    assert "fluid looks the same" in failing("Consolidation", uneven(oval(140, 372, 60, 26)))
    assert "fluid looks the same" not in failing("Pneumonia", uneven(oval(125, 250, 45, 50)))
    assert "plate of atelectasis" in failing("Consolidation", uneven(oval(125, 250, 55, 4)))


def test_a_break_is_a_dark_line_of_a_ribs_width() -> None:
    gap = -40 * soft(oval(100, 200, 6, 2), 1)
    assert failing("Fracture", gap) == ""
    assert "plate of atelectasis" in failing("Fracture", -gap)
    assert "of the thorax fits into it" in failing("Fracture", -uneven(oval(125, 220, 24, 24)))


def test_a_haze_over_the_heart_has_not_widened_it() -> None:
    assert "a haze over it" in failing("Cardiomegaly", uneven(oval(300, 290, 60, 60)))
    # Moved aside, what the lung shows is brighter in one place and darker in another.
    vessels = soft(np.random.default_rng(5).normal(size=(SIDE, SIDE)), 3)
    moved = uneven(oval(300, 290, 60, 60)) + 30 * vessels / vessels.std() * soft(oval(345, 290, 40, 60), 4)
    assert "a haze over it" not in failing("Cardiomegaly", moved)


def test_lost_volume_is_a_band_or_moves_a_border() -> None:
    filled = uneven(oval(125, 220, 45, 50))
    assert "no border moved" in failing("Atelectasis", filled)
    moved = filled - 14 * soft(oval(125, 285, 40, 12), 4)
    assert "no border moved" not in failing("Atelectasis", moved)
    assert "a border moved" in failing("Consolidation", moved)
    band = 40 * soft(oval(140, 300, 60, 5), 1.5)
    assert "no border moved" not in failing("Atelectasis", band)


def brain() -> Field:
    """A bright skull, a dark gap, and a brain with folds in all directions."""
    head, inside = oval(256, 256, 210, 240), oval(256, 256, 178, 206)
    folds = soft(np.random.default_rng(3).normal(size=(SIDE, SIDE)), 5)
    tissue = 100 + 22 * folds / folds.std()
    return np.asarray(soft(190 * (head - oval(256, 256, 192, 222)) + inside * tissue, 0.8))


def pressed(before: Field, x: float, y: float, radius: float) -> Field:
    """The picture with all that lies around a point pushed away from it, up to the skull and over the middle."""
    dx, dy = XS - x, YS - y
    away = np.hypot(dx, dy) + 1e-3
    inner = np.clip(1 - np.hypot((XS - 256) / 178, (YS - 256) / 206), 0, 0.1) * 10
    push = 0.3 * radius * np.exp(-(((away - radius) / (1.6 * radius)) ** 2)) * inner
    return cv2.remap(before, XS - push * dx / away, YS - push * dy / away, cv2.INTER_CUBIC)


def in_brain(finding: str, x: float, y: float, radius: float = 42) -> Evidence:
    """A crisp uneven mass that presses the brain aside."""
    before = brain()
    moved = pressed(before, x, y, radius)
    mass = soft(oval(x, y, radius, 0.9 * radius) * oval(256, 256, 178, 206), 1.5)
    mottle = soft(np.random.default_rng(4).normal(size=(SIDE, SIDE)), 6)
    after = moved + (150 + 8 * mottle / mottle.std() - moved) * mass
    pictures = [
        np.repeat(np.clip(np.rint(one), 0, 255).astype(np.uint8)[..., None], 3, axis=2)
        for one in (before, after)
    ]
    image = replace(source_image(), modality="brain_mri", plane="axial", sequence="T2")
    shown = presentation_of(load_taxonomy().get("brain_mri", finding), image)
    return measure(pair_of(*pictures, "brain_mri"), image, shown, Direction.ADD, side=None)


def test_a_mass_inside_the_brain_is_where_it_is_and_not_where_it_presses() -> None:
    deep = in_brain("glioma", 340, 256)
    assert deep.left is not None and deep.left > 0.95
    assert not any("meningioma" in check.text for check in signs_of(deep, Direction.ADD))
    asked = signs_of(in_brain("meningioma", 340, 256), Direction.ADD)
    assert any("inside the brain" in check.text and check.passed is None for check in asked)


def test_a_crisp_mass_on_the_dura_may_be_a_meningioma() -> None:
    asked = signs_of(in_brain("glioma", 410, 256), Direction.ADD)
    assert any("meningioma" in check.text and check.passed is None for check in asked)
    own = signs_of(in_brain("meningioma", 410, 256), Direction.ADD)
    assert all(check.passed for check in own)


@pytest.mark.parametrize(("width", "crisp"), [(0.7, True), (7.0, False)])
def test_a_crisp_mass_has_an_outline_and_a_blurred_one_has_less(width: float, crisp: bool) -> None:
    ys, xs = np.mgrid[:SMALL, :SMALL].astype(np.float32)
    brain = np.hypot((xs - 128) / 90, (ys - 128) / 110) < 1
    tissue = cv2.GaussianBlur(np.random.default_rng(2).normal(size=brain.shape).astype(np.float32), (0, 0), 6)
    level = np.asarray(brain * (100 + 20 * tissue / tissue.std()), np.float32)
    mass = (np.hypot(xs - 90, ys - 110) < 22).astype(np.float32)
    drawn = np.asarray(level + 40 * cv2.GaussianBlur(mass, (0, 0), width), np.float32)
    found = mass_of(drawn - level)
    assert found[110, 90] and not found[200, 128]
    assert (outline_of(drawn, found, brain) > 0.10) is crisp


def test_no_mass_has_no_outline() -> None:
    level = np.full((SMALL, SMALL), 90, np.float32)
    none = mass_of(np.zeros_like(level))
    assert not none.any() and outline_of(level, none, level > 0) == 0.0


def test_what_cannot_be_told_is_left_open_and_what_fails_fails() -> None:
    def check(passed: bool | None) -> Check:
        return Check(COMPLIANCE, passed, 0.5, f"said {passed}", FailureCode.NON_TARGET_FINDING)

    open_ = result_of(COMPLIANCE, [check(True), check(None)])
    assert (open_.passed, open_.codes, open_.evidence) == (None, (), "said None")
    assert result_of(COMPLIANCE, [check(None), check(False)]).passed is False
    assert result_of(COMPLIANCE, [check(True)]).passed is True
