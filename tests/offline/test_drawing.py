"""Findings drawn on real images: the requested sign, place and extent, and nothing outside the mask."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from offline.images import SIDE, TARGETS, TAXONOMY, image_for, prepared
from plantain.offline.anatomy.maps import CannotShow
from plantain.offline.drawing.adding import Rendering, add, map_of
from plantain.offline.drawing.removing import remove
from plantain.offline.judge import measured
from plantain.offline.language import Intent
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.pixels.restore import dilate
from plantain.records import Direction, Finding, Observations
from plantain.roles import EncodedImage, JudgeRequest
from plantain.rubrics import MED_BANANA

ADD, REMOVE = Direction.ADD, Direction.REMOVE
DRAWN = [finding for finding in TARGETS if finding.draw]


def drawn(finding: Finding, seed: int = 3, **asked: str) -> tuple[np.ndarray, Rendering]:
    image, pixels = image_for(finding)
    intent = Intent(finding.name, ADD, **{"extent": "moderate", "conspicuity": "marked", **asked})
    return pixels, add(pixels, image, finding, intent, np.random.default_rng(seed))


def change(pixels: np.ndarray, rendering: Rendering) -> np.ndarray:
    return rendering.pixels.astype(np.float32).mean(axis=2) - pixels.astype(np.float32).mean(axis=2)


def named(name: str) -> Finding:
    return next(finding for finding in TARGETS if finding.name == name)


def test_at_least_18_of_the_papers_findings_can_be_drawn() -> None:
    assert sum(bool(finding.draw) for finding in TARGETS if not finding.optional) == 20


@pytest.mark.parametrize("finding", DRAWN, ids=lambda f: f.name)
def test_a_drawing_follows_its_mask_its_seed_and_its_sign(finding: Finding) -> None:
    pixels, rendering = drawn(finding)
    away = ~dilate(rendering.mask, 3)
    assert np.abs(rendering.pixels.astype(np.int16) - pixels)[away].max(initial=0) <= 1
    assert rendering.mask.any()
    assert rendering.support == finding.support
    again, other = (drawn(finding, seed)[1].pixels for seed in (3, 4))
    assert np.array_equal(rendering.pixels, again)
    assert not np.array_equal(rendering.pixels, other)
    if finding.polarity in ("brighter", "darker") and finding.support == "local":
        moved = change(pixels, rendering)[rendering.mask]
        sign = 1 if finding.polarity == "brighter" else -1
        assert sign * moved.sum() > 0.7 * np.abs(moved).sum()


@pytest.mark.parametrize("finding", [f for f in DRAWN if "left" in f.sides], ids=lambda f: f.name)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_side_is_the_patients(finding: Finding, side: str) -> None:
    # Radiological display: the patient's left is on the image's right.
    pixels, rendering = drawn(finding, side=side)
    image, _ = image_for(finding)
    midline = (map_of(pixels, image).midline or 0) * SIDE / 256
    xs = np.nonzero(rendering.mask)[1]
    assert ((xs > midline) == (side == "left")).mean() > 0.9


@pytest.mark.parametrize("finding", [f for f in DRAWN if f.support == "local"], ids=lambda f: f.name)
def test_large_changes_more_than_small_and_marked_more_than_subtle(finding: Finding) -> None:
    zone = {"zone": finding.zones[0]} if finding.zones else {}
    side = {"side": finding.sides[0]} if finding.sides else {}
    small, large = (
        np.mean([drawn(finding, seed, extent=extent, **zone, **side)[1].mask.sum() for seed in (1, 2, 3)])
        for extent in ("small", "large")
    )
    assert small < large
    subtle, marked = (
        np.abs(change(*drawn(finding, conspicuity=strength))).sum() for strength in ("subtle", "marked")
    )
    assert subtle < marked


@pytest.mark.parametrize(
    ("sequence", "contrast", "sign"),
    [("T1", "none", -1), ("T2", "unknown", 1), ("FLAIR", "unknown", 1), ("T1", "yes", 1)],
)
def test_a_meningiomas_signal_follows_the_sequence(sequence: str, contrast: str, sign: int) -> None:
    # Osborn's Brain: equal to slightly dark on T1, bright on T2 and FLAIR, strong even uptake after contrast.
    finding = named("meningioma")
    image, pixels = image_for(finding)
    rendering = add(
        pixels, replace(image, sequence=sequence, contrast=contrast), finding,
        Intent("meningioma", ADD, "left", "convexity", "large", "marked"), np.random.default_rng(5),
    )  # fmt: skip
    assert sign * change(pixels, rendering)[rendering.mask].mean() > 3


def test_a_pleural_effusion_is_at_the_base_and_a_pneumothorax_at_the_apex() -> None:
    heights = []
    for name, zone in (("Pneumothorax", "apical"), ("Pleural Effusion", "basal")):
        _, rendering = drawn(named(name), side="left", zone=zone)
        heights.append(float(np.median(np.nonzero(rendering.mask)[0])))
    assert heights[0] + 0.15 * SIDE < heights[1]


def test_a_slice_of_unknown_sequence_without_a_skull_is_not_drawn_on() -> None:
    finding = named("glioma")
    image, pixels = image_for(finding)
    with pytest.raises(CannotShow, match="sequence"):
        add(
            pixels, replace(image, sequence="unknown", plane="unknown"), finding, Intent("glioma", ADD),
            np.random.default_rng(0),
        )  # fmt: skip


def test_a_pituitary_tumour_needs_a_sella() -> None:
    image, data = prepared()["mni152-t1-axial-z40"]
    with pytest.raises(CannotShow, match="no suprasellar region was found"):
        add(decode(data), image, named("pituitary"), Intent("pituitary", ADD), np.random.default_rng(0))


REMOVED = (
    "glioma",
    "meningioma",
    "AMD",
    "Diabetes",
    "Cardiomegaly",
    "Enlarged Cardiomediastinum",
    "Cataract",
)
"""Findings that are removed from these images; the chest radiograph has masses of its own all over both lungs."""


@pytest.mark.parametrize("name", REMOVED)
def test_a_removal_is_nearer_to_the_original_than_the_drawing(name: str) -> None:
    finding = named(name)
    # seed 9 draws them away from the midline, where they can be removed
    lateral = name in ("glioma", "meningioma")
    pixels, rendering = drawn(finding, 9, extent="moderate") if lateral else drawn(finding, extent="large")
    image, _ = image_for(finding)
    removed = remove(rendering.pixels, image, finding, Intent(name, REMOVE), np.random.default_rng(1))
    off = [np.abs(change(pixels, one))[rendering.mask].sum() for one in (rendering, removed)]
    assert off[1] < 0.75 * off[0]


def test_a_bright_tumour_is_removed_where_it_is_though_contrast_medium_is_not_recorded() -> None:
    finding = named("meningioma")
    image, pixels = image_for(finding)
    tumour = replace(image, sequence="T1+C")
    intent = Intent("meningioma", ADD, side="right", zone="convexity")
    rngs = np.random.default_rng(9), np.random.default_rng(9)
    shown = add(pixels, tumour, finding, intent, *rngs)
    removed = remove(
        shown.pixels, replace(image, contrast="unknown"), finding, Intent("meningioma", REMOVE), rngs[0]
    )
    assert change(pixels, removed)[shown.mask].sum() < 0.5 * change(pixels, shown)[shown.mask].sum()


@pytest.mark.parametrize(("side", "passed"), [("", True), ("left", False)])
def test_judge_accepts_a_removal_but_not_the_tumours_mirror_image(side: str, passed: bool) -> None:
    finding = named("meningioma")
    image, pixels = image_for(finding)
    image, tumour = replace(image, contrast="unknown"), replace(image, sequence="T1+C")

    def with_one(on: np.ndarray, where: str) -> np.ndarray:
        intent = Intent("meningioma", ADD, side=where, zone="convexity")
        return add(on, tumour, finding, intent, np.random.default_rng(9), np.random.default_rng(9)).pixels

    shown = with_one(pixels, "right")
    after = with_one(shown, side) if side else pixels
    files = (EncodedImage(encode_jpeg(one), "image/jpeg") for one in (shown, after))
    observed = measured(JudgeRequest(image, *files, "Remove the meningioma.", finding, REMOVE, MED_BANANA, 0))
    assert isinstance(observed, Observations)
    assert observed.criteria["instruction_compliance"].passed is passed


@pytest.mark.parametrize("name", ["Fracture", "Pleural Effusion", "Glaucoma", "glioma", "AMD", "Cataract"])
def test_a_removal_over_an_unknown_background_or_of_an_absent_finding_is_refused(name: str) -> None:
    finding = named(name)
    image, pixels = image_for(finding)
    if name in ("Fracture", "Pleural Effusion", "Glaucoma"):
        pixels = drawn(finding)[1].pixels
    with pytest.raises(CannotShow):
        remove(pixels, image, finding, Intent(name, REMOVE), np.random.default_rng(1))


def test_a_users_own_finding_is_drawn_by_its_data() -> None:
    own = replace(
        named("Lung Lesion"),
        name="Bulla",
        title="bulla",
        draw=(replace(named("Lung Lesion").draw[0], level=(-30,)),),
    )
    image, pixels = image_for(own)
    rendering = add(pixels, image, own, Intent("Bulla", ADD, "left", "mid"), np.random.default_rng(2))
    assert change(pixels, rendering)[rendering.mask].mean() < -3
    assert TAXONOMY.get("chest_xray", "Lung Lesion").draw[0].level == (38,)
