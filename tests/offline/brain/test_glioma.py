"""Glioma: inside the brain, on the asked side, dark on T1 and bright on FLAIR, no enhancement without contrast."""

from __future__ import annotations

import numpy as np
import pytest
from brain_slices import MakeScene, plain_brain
from scipy import ndimage

from plantain.offline.brain.glioma import add
from plantain.pixels.arrays import Pixels


def _tumour(before: Pixels, after: Pixels, polarity: int) -> np.ndarray:
    """What became plainly darker (-1) or brighter (+1), calmed, so that shifted sulci do not count."""
    change = ndimage.gaussian_filter(after[..., 0].astype(float) - before[..., 0], 8) * polarity
    labels, count = ndimage.label(change > 0.4 * change.max())
    assert count
    weight = ndimage.sum(change, labels, range(1, count + 1))
    return labels == 1 + int(np.argmax(weight))


@pytest.mark.parametrize("name", ["mni152-t1-axial-z20", "mni152-t1-axial-z40", "dipy-t1-coronal"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_glioma_lies_inside_the_brain_on_the_asked_side(scene: MakeScene, name: str, side: str) -> None:
    given = scene(name, "glioma", side=side, extent="moderate", conspicuity="marked", seed=8)
    made = add(given)
    tumour = _tumour(given.pixels, made.pixels, -1)
    brain = plain_brain(given.pixels)
    deep = ndimage.binary_erosion(brain, iterations=8)
    assert (tumour & deep).sum() > 0.95 * tumour.sum()
    middle = ndimage.center_of_mass(brain)[1]
    offset = ndimage.center_of_mass(tumour)[1] - middle
    assert offset > 20 if side == "left" else offset < -20  # radiological display


@pytest.mark.parametrize(("zone", "low", "high"), [("frontal", 0.0, 0.42), ("occipital", 0.62, 1.0)])
def test_glioma_lies_in_the_asked_lobe(scene: MakeScene, zone: str, low: float, high: float) -> None:
    for seed in range(4):
        given = scene(
            "mni152-t1-axial-z20", "glioma", zone=zone, conspicuity="marked", extent="small", seed=seed
        )
        tumour = _tumour(given.pixels, add(given).pixels, -1)
        rows = np.flatnonzero(plain_brain(given.pixels).any(axis=1))
        down = (ndimage.center_of_mass(tumour)[0] - rows[0]) / np.ptp(rows)
        assert low < down < high


def test_glioma_leaves_brain_between_itself_and_dura_or_falx(scene: MakeScene) -> None:
    for seed in range(2):
        given = scene("mni152-t1-axial-z20", "glioma", conspicuity="marked", extent="moderate", seed=seed)
        tumour = _tumour(given.pixels, add(given).pixels, -1)
        brain = plain_brain(given.pixels)
        brain[:, round(ndimage.center_of_mass(brain)[1])] = False  # the falx
        free = ndimage.distance_transform_edt(brain)[tumour].min()
        assert free > 0.05 * np.ptp(np.flatnonzero(brain.any(axis=1)))  # 8 mm of the usual 165


def test_glioma_on_t1_without_contrast_brightens_nothing_past_white_matter(scene: MakeScene) -> None:
    given = scene("dipy-t1-coronal", "glioma", extent="large", conspicuity="marked")
    made = add(given)
    core = _tumour(given.pixels, made.pixels, -1)
    assert made.pixels[..., 0][core].mean() < given.pixels[..., 0][core].mean() - 15
    assert int(made.pixels.max()) <= int(given.pixels.max()) + 3


def test_glioma_enhances_in_a_rim_only_when_contrast_was_given(scene: MakeScene) -> None:
    dim = scene("dipy-t1-coronal", "glioma", extent="large", conspicuity="marked")
    # Half the brightness leaves room above white matter for enhancement to show.
    half = (dim.pixels * 0.45).astype(np.uint8)
    rendered = {}
    for sequence in ("T1", "T1+C"):
        given = scene(
            "dipy-t1-coronal", "glioma", pixels=half, sequence=sequence, extent="large", conspicuity="marked"
        )
        rendered[sequence] = add(given).pixels[..., 0].astype(float)
    assert (rendered["T1"] > half[..., 0].max() + 10).sum() == 0
    assert (rendered["T1+C"] > half[..., 0].max() + 10).sum() > 500


@pytest.mark.parametrize("sequence", ["T2", "FLAIR"])
def test_glioma_is_bright_on_fluid_sensitive_sequences(scene: MakeScene, sequence: str) -> None:
    # No open T2 slice arrives with the dependencies: the T1 slice dimmed (FLAIR) or inverted (T2) stands in.
    original = scene("mni152-t1-axial-z20", "glioma").pixels.astype(float)
    stand_in = np.where(original > 20, 250 - original if sequence == "T2" else original * 0.4, 0)
    given = scene(
        "mni152-t1-axial-z20",
        "glioma",
        pixels=stand_in.astype(np.uint8),
        sequence=sequence,
        conspicuity="marked",
        extent="moderate",
    )
    made = add(given)
    tumour = _tumour(given.pixels, made.pixels, 1)
    assert made.pixels[..., 0][tumour].mean() > given.pixels[..., 0][tumour].mean() + 10
