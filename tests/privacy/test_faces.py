"""Faces: one real portrait, one real profile, and real images without a face."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import skimage.data

from fakes.samples import head_in_profile, package_samples
from plantain.pixels.volume import read_volume, show_slice
from plantain.privacy.faces import coloured_scene, photographed_faces
from plantain.privacy.heads import face_of_volume, profile_in_slice


@pytest.fixture(scope="module")
def sagittal() -> np.ndarray:
    """Return a whole head from the side with face and skull, uint8 (256, 256), front to the left."""
    stored = head_in_profile()
    return (stored * (255.0 / stored.max())).astype(np.uint8)


def test_a_portrait_shows_a_face_in_colour_and_in_grey() -> None:
    # The face of the astronaut is at about (180, 60) to (270, 160) of 512x512.
    portrait = skimage.data.astronaut()
    grey = cv2.cvtColor(portrait, cv2.COLOR_RGB2GRAY)
    for pixels in (portrait, grey, np.repeat(grey[:, :, None], 3, axis=2)):
        assert any(
            box.left < 225 < box.right and box.top < 110 < box.bottom for box in photographed_faces(pixels)
        )


def test_images_without_a_face_give_none(sagittal: np.ndarray) -> None:
    for image in (skimage.data.retina(), skimage.data.immunohistochemistry(), skimage.data.rocket()):
        assert photographed_faces(image) == ()
    assert photographed_faces(np.repeat(sagittal[:, :, None], 3, axis=2)) == ()
    # With too few agreeing detections, two ventricles and a fissure count as a face.
    for sample in package_samples():
        for crop in (sample.pixels, sample.pixels[:, ::-1], sample.pixels[20:-40, 30:-20]):
            assert photographed_faces(np.ascontiguousarray(crop)) == (), sample.image.id


def test_a_coloured_scene_is_distinguished_from_radiographs_and_slices() -> None:
    assert all(
        coloured_scene(p) for p in (skimage.data.astronaut(), skimage.data.coffee(), skimage.data.chelsea())
    )
    for sample in package_samples():
        if sample.image.modality != "fundus":
            arrowed = sample.pixels.copy()
            cv2.arrowedLine(arrowed, (30, 30), (120, 90), (255, 40, 20), 4)
            tinted = np.clip(arrowed.astype(int) + np.array([8, 0, -8]), 0, 255).astype(np.uint8)
            assert not coloured_scene(tinted)
    assert not coloured_scene(np.zeros((64, 64), np.uint8))


def test_a_profile_is_found_in_a_sagittal_slice(sagittal: np.ndarray) -> None:
    for spacing in (1.0, None):
        face = profile_in_slice(sagittal, spacing)
        assert face is not None
        # Nose and lips of this head are left of column 60, between rows 120 and 220.
        assert face.left < 40
        assert face.top < 120
        assert face.bottom > 220
    cut = sagittal.copy()
    cut[100:, :110] = 0
    assert profile_in_slice(cut, 1.0) is None  # defaced


def test_a_brain_out_of_the_skull_shows_no_face() -> None:
    nilearn = pytest.importorskip("nilearn")
    name = "mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"
    path = Path(nilearn.__file__).parent / "datasets" / "data" / name
    volume = read_volume(path.read_bytes(), name)
    assert face_of_volume(volume.values, volume.spacing_mm, 0.1 * volume.high) is None
    for index in (60, 80, 98, 120):
        assert profile_in_slice(show_slice(volume, "sagittal", index), 1.0) is None


def test_a_volume_with_a_face_is_distinguished_from_a_defaced_one(sagittal: np.ndarray) -> None:
    # The profile through 120 mm of width: axes right, front, head.
    whole = np.repeat(sagittal[::-1, ::-1].T[None], 120, axis=0)
    head = face_of_volume(whole, (1.0, 1.0, 1.0), 25.0)
    assert head is not None
    defaced = whole.copy()
    defaced[:, 140:, :150] = 0
    assert face_of_volume(defaced, (1.0, 1.0, 1.0), 25.0) is None
    assert face_of_volume(whole[:, :, 160:], (1.0, 1.0, 1.0), 25.0) is None  # ends above the orbits
