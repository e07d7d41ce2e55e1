"""Each instrument against a change whose truth is known, on the real images that arrive with the dependencies."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from fakes.samples import prepared_samples
from plantain.audit.pictures import package_pictures
from plantain.findings import load_taxonomy
from plantain.offline.instruments.anatomy import MAP_SIDE
from plantain.offline.instruments.border import border_of
from plantain.offline.instruments.brain_view import brain_view
from plantain.offline.instruments.change import change_of
from plantain.offline.instruments.chest_view import chest_view
from plantain.offline.instruments.evidence import measure
from plantain.offline.instruments.fundus_view import fundus_view
from plantain.offline.instruments.grain import grain_of
from plantain.offline.instruments.pair import pair_of
from plantain.offline.instruments.presentation import expected_sign, presentation_of
from plantain.offline.instruments.repetition import repetition_of
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.records import Direction


@pytest.fixture(scope="module")
def samples():
    prepared = {}
    for image, data in prepared_samples():
        prepared[image.id] = (image, decode(data))
    return prepared


def small(pixels):
    return cv2.resize(pixels, (MAP_SIDE, MAP_SIDE), interpolation=cv2.INTER_AREA)


def soft_disc(shape, x, y, radius, feather):
    ys, xs = np.mgrid[: shape[0], : shape[1]]
    inside = np.clip((radius - np.hypot(xs - x, ys - y)) / feather, 0, 1)
    return (inside * inside * (3 - 2 * inside)).astype(np.float32)


def lesion(pixels, x, y, radius=45, levels=35.0, feather=20.0):
    drawn = pixels + levels * soft_disc(pixels.shape, x, y, radius, feather)[..., None]
    return np.clip(np.rint(drawn), 0, 255).astype(np.uint8)


def test_chest_view_finds_midline_and_both_lungs(samples):
    _, pixels = samples["rg1-chest-pa"]
    anatomy = chest_view(small(pixels)[..., 0].astype(np.float32))
    # The spine of this film stands between 45 and 56 % of the width (read off the picture).
    assert 0.45 < anatomy.midline / MAP_SIDE < 0.56
    lungs = anatomy.region("lungs")
    assert lungs[70, 60] and lungs[70, 190]
    assert not lungs[250, 128]
    assert anatomy.side("right")[10, 10] and anatomy.side("left")[10, 250]


def test_brain_view_midline_is_the_axis_of_a_symmetric_template(samples):
    image, pixels = samples["mni152-t1-axial-z20"]
    anatomy = brain_view(small(pixels)[..., 0].astype(np.float32), image.plane)
    columns = np.flatnonzero(anatomy.region("brain").any(axis=0))
    assert anatomy.midline == pytest.approx((columns[0] + columns[-1]) / 2, abs=2)
    assert not anatomy.region("dura")[int(MAP_SIDE * 0.5), int(anatomy.midline - 0.25 * anatomy.length)]


def test_brain_view_of_a_sagittal_slice_has_no_sides(samples):
    _, pixels = samples["mni152-t1-axial-z20"]
    assert brain_view(small(pixels)[..., 0].astype(np.float32), "sagittal").side("left") is None


def test_sella_of_a_brain_without_skull_lies_in_the_hollow_of_its_outline():
    picture = next(one for one in package_pictures("tuning") if one.image.id == "mni152-t1-coronal-y-4")
    anatomy = brain_view(small(decode(picture.data))[..., 0].astype(np.float32), "coronal")
    # Between the temporal lobes, below the brain, read off the picture: in the middle, 77 % down the frame.
    y, x = round(0.77 * MAP_SIDE), round(0.5 * MAP_SIDE)
    assert anatomy.region("sella")[y, x] and not anatomy.region("brain")[y, x]
    assert not anatomy.region("sella")[:, : round(0.3 * MAP_SIDE)].any()


def test_sella_of_an_axial_slice_lies_before_the_brain_stem():
    picture = next(one for one in package_pictures("tuning") if one.image.id == "mni152-t1-axial-z-24")
    sella = brain_view(small(decode(picture.data))[..., 0].astype(np.float32), "axial").region("sella")
    # Read off the picture: the hollow of the cistern 42 % down the frame, the fourth ventricle 59 %.
    middle = round(0.5 * MAP_SIDE)
    assert sella[round(0.42 * MAP_SIDE), middle] and not sella[round(0.59 * MAP_SIDE), middle]


def test_a_grey_background_is_no_part_of_the_head(samples):
    _, pixels = samples["mni152-t1-axial-z20"]
    black = small(pixels)[..., 0].astype(np.float32)
    grain = np.random.default_rng(5).normal(0, 4, black.shape).astype(np.float32)
    head, grey = (
        brain_view(level, "axial").region("head") for level in (black, np.maximum(black, 30 + grain))
    )
    assert (head ^ grey).sum() < 0.05 * head.sum()


def test_fundus_view_finds_the_disc_of_a_left_eye(samples):
    _, pixels = samples["retina-left"]
    anatomy = fundus_view(small(pixels))
    ys, xs = np.nonzero(anatomy.region("disc"))
    # Left eye: the disc lies image left; its middle was read off the picture at 7 to 16 % and 40 to 52 %.
    assert 0.02 < xs.mean() / MAP_SIDE < 0.2
    assert 0.38 < ys.mean() / MAP_SIDE < 0.55
    ys, xs = np.nonzero(anatomy.region("macula"))
    assert 0.4 < xs.mean() / MAP_SIDE < 0.6


def test_change_of_one_lesion_is_one_part_where_it_was_drawn(samples):
    image, pixels = samples["rg1-chest-pa"]
    pair = pair_of(pixels, lesion(pixels, 700, 300), image.modality)
    everywhere = np.ones((512, 512), bool)
    change = change_of(pair, everywhere, everywhere)
    assert len(change.parts) == 1
    part = change.parts[0]
    assert (part.x * 2, part.y * 2) == (pytest.approx(700, abs=3), pytest.approx(300, abs=3))
    assert part.sign == 1
    assert change.shift == 0.0


def test_change_of_a_shifted_image_is_its_shift(samples):
    image, pixels = samples["rg1-chest-pa"]
    shifted = np.clip(pixels.astype(int) + 7, 0, 255).astype(np.uint8)
    everywhere = np.ones((512, 512), bool)
    assert change_of(pair_of(pixels, shifted, image.modality), everywhere, everywhere).shift == pytest.approx(
        7, abs=0.3
    )


def border_around(pixels, edited):
    pair = pair_of(pixels, edited, "chest_xray")
    return border_of(
        pair.delta, pair.before_level, pair.after_level, tau=2.0, step_levels=3.5, smallest=15.0, unit=1.0
    )


def test_border_of_a_soft_lesion_is_no_seam_and_of_a_pasted_one_is(samples):
    _, pixels = samples["rg1-chest-pa"]
    assert border_around(pixels, lesion(pixels, 700, 300)).seam < 0.1
    pasted = lesion(pixels, 700, 300).astype(int)
    ys, xs = np.mgrid[:1024, :1024]
    pasted[np.hypot(xs - 700, ys - 300) < 60] += 10
    assert border_around(pixels, np.clip(pasted, 0, 255).astype(np.uint8)).seam > 0.6


def test_border_of_one_level_all_along_is_even_and_one_that_crosses_ribs_is_not(samples):
    _, pixels = samples["rg1-chest-pa"]
    inside = (soft_disc(pixels.shape, 700, 300, 90, 1) > 0.5)[..., None]
    pasted = np.where(inside, pixels.astype(int) + 14, pixels)
    scaled = np.where(inside, pixels * 1.2, pixels)
    even, uneven = (
        border_around(pixels, np.clip(np.rint(edited), 0, 255).astype(np.uint8))
        for edited in (pasted, scaled)
    )
    # Adding one level rises alike everywhere; a fifth of what lies there rises with it, by 10 to 30 levels here.
    assert even.spread < 0.1 < uneven.spread


def test_islands_of_a_soft_border_belong_to_it_and_a_second_strong_change_does_not(samples):
    image, pixels = samples["rg1-chest-pa"]
    edited = lesion(lesion(lesion(pixels, 700, 300, 60, 40), 700, 410, 18, 5, 14), 300, 300, 60, 40)
    everywhere = np.ones((512, 512), bool)
    change = change_of(pair_of(pixels, edited, image.modality), everywhere, everywhere)
    main = min(change.parts, key=lambda part: abs(part.x - 350) + abs(part.y - 150))
    found = change.fading_from(main, 36.0)
    assert [(round(part.x), round(part.y)) for part in found] == [(350, pytest.approx(205, abs=2))]
    assert change.fading_from(main, 4.0) == ()


def test_grain_lost_in_part_of_a_place_is_told_block_by_block(samples):
    _, pixels = samples["rg1-chest-pa"]
    where = soft_disc(pixels.shape, 700, 300, 80, 1) > 0.5
    part = soft_disc(pixels.shape, 700, 300, 45, 1)[..., None]
    smooth = pixels + part * (cv2.GaussianBlur(pixels, (0, 0), 2.5).astype(np.float32) - pixels)
    pair = pair_of(pixels, np.rint(smooth).astype(np.uint8), "chest_xray")
    # The smoothed middle is (45 / 80)^2 = 0.32 of the place.
    assert grain_of(pair.before_level, pair.after_level, where, 24).lost == pytest.approx(0.32, abs=0.12)
    assert grain_of(pair.before_level, pair.before_level, where, 24).lost == 0.0


def test_grain_is_kept_under_a_haze_and_lost_under_a_blur(samples):
    _, pixels = samples["rg1-chest-pa"]
    where = soft_disc(pixels.shape, 700, 300, 60, 1) > 0.5
    hazy = pair_of(pixels, lesion(pixels, 700, 300, 60), "chest_xray")
    assert grain_of(hazy.before_level, hazy.after_level, where, 24).kept == pytest.approx(1.0, abs=0.15)
    smooth = np.where(where[..., None], cv2.GaussianBlur(pixels, (0, 0), 2.5), pixels)
    blurred = pair_of(pixels, smooth, "chest_xray")
    assert grain_of(blurred.before_level, blurred.after_level, where, 24).kept < 0.4


def test_grain_of_an_average_brain_says_nothing(samples):
    image, pixels = samples["mni152-t1-axial-z20"]
    pair = pair_of(pixels, pixels, image.modality)
    where = soft_disc(pixels.shape, 400, 500, 60, 1) > 0.5
    assert grain_of(pair.before_level, pair.after_level, where, 24).blocks == 0


def test_repetition_finds_a_copied_patch_and_its_offset(samples):
    _, pixels = samples["rg1-chest-pa"]
    copied = pixels.copy()
    copied[300:400, 640:740] = pixels[520:620, 240:340]
    pair = pair_of(pixels, copied, "chest_xray")
    where = np.zeros((512, 512), bool)
    where[150:200, 320:370] = True
    found = repetition_of(pair, where)
    assert found.copied > 2000
    assert found.offset == (-400, 220)
    assert repetition_of(pair_of(pixels, lesion(pixels, 690, 350), "chest_xray"), where).copied == 0


def test_repetition_finds_a_copy_that_was_encoded_and_no_mirrored_one(samples):
    _, pixels = samples["rg1-chest-pa"]
    where = np.zeros((512, 512), bool)
    where[150:200, 320:370] = True
    patch = pixels[520:620, 240:340]
    seen = []
    for piece in (patch, patch[:, ::-1]):
        edited = pixels.copy()
        edited[300:400, 640:740] = piece
        pair = pair_of(pixels, decode(encode_jpeg(edited)), "chest_xray")
        seen.append(repetition_of(pair, where).copied)
    assert seen[0] > 2000 and seen[1] == 0


def test_bases_reach_the_angles_on_both_sides(samples):
    _, pixels = samples["rg1-chest-pa"]
    anatomy = chest_view(small(pixels)[..., 0].astype(np.float32))
    # Costophrenic angles of this film, read off the picture: 6 and 92 % of the width, 74 and 78 % of the height.
    bases = anatomy.region("bases")
    assert bases[int(0.74 * MAP_SIDE), int(0.07 * MAP_SIDE)]
    assert bases[int(0.78 * MAP_SIDE), int(0.91 * MAP_SIDE)]


def test_pair_refuses_images_of_different_size(samples):
    _, pixels = samples["retina-left"]
    with pytest.raises(ValueError, match="differ in size"):
        pair_of(pixels, pixels[:512], "fundus")


def test_expected_sign_follows_sequence_and_direction(samples):
    image, _ = samples["mni152-t1-axial-z20"]
    glioma = load_taxonomy().get("brain_mri", "glioma")
    # Water is dark on T1 and bright on FLAIR; a removal goes the other way.
    assert expected_sign(presentation_of(glioma, image), Direction.ADD) == -1
    assert expected_sign(presentation_of(glioma, replace(image, sequence="FLAIR")), Direction.REMOVE) == -1
    assert presentation_of(glioma, replace(image, sequence="unknown")).sign == 0


def test_presentation_of_a_users_own_finding_rests_on_its_data(samples):
    image, _ = samples["retina-left"]
    known = load_taxonomy().get("fundus", "AMD")
    own = replace(known, name="Naevus", polarity="darker", support="local")
    expected = presentation_of(own, image)
    assert (expected.sign, expected.region, expected.parts) == (-1, "", "many")


def test_a_border_that_moved_on_both_sides_lies_on_both(samples):
    """Two strips of one breadth along the mediastinum, the right one half out of it: it is no less of the edit."""
    image, pixels = samples["rg1-chest-pa"]
    place = chest_view(small(pixels)[..., 0].astype(np.float32)).region("mediastinum")
    row = MAP_SIDE // 3
    columns = np.flatnonzero(place[row]) * pixels.shape[1] // MAP_SIDE
    top, left, right = row * pixels.shape[0] // MAP_SIDE, int(columns[0]), int(columns[-1])
    edited = pixels.copy()
    for start in (left - 26, right - 48):  # patient's right: 22 of 48 columns inside; left: all
        edited[top : top + 120, start : start + 48] = np.clip(
            edited[top : top + 120, start : start + 48] + 25.0, 0, 255
        ).astype(np.uint8)
    finding = load_taxonomy().get("chest_xray", "Enlarged Cardiomediastinum")
    pair = pair_of(pixels, edited, image.modality)
    seen = measure(pair, image, presentation_of(finding, image), Direction.ADD, side=None)
    assert sorted(part.inside >= 0.5 for part in seen.main) == [False, True]
    assert seen.left is not None and seen.right is not None
    assert min(seen.left, seen.right) > 0.4
