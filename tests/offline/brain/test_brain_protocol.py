"""Anatomy and protocol: the brain is found, sequence and plane are estimated only where they are plain."""

from __future__ import annotations

import re

import numpy as np
import pytest
from brain_slices import MakeScene, plain_brain

from plantain.offline.brain.anatomy import analyse
from plantain.offline.brain.protocol import read_protocol
from plantain.offline.brain.symmetry import find_midline
from plantain.offline.rendering import CannotShow
from plantain.sources.registry import load, resolve_settings

NAMES = [
    "mni152-t1-axial-z5",
    "mni152-t1-axial-z20",
    "mni152-t1-coronal-y-10",
    "dipy-t1-coronal",
    "sagittal:25",
]


@pytest.mark.parametrize("name", NAMES)
def test_brain_of_a_stripped_slice_is_what_is_not_background(scene: MakeScene, name: str) -> None:
    pixels = scene(name, "glioma").pixels
    brain, plain = analyse(pixels), plain_brain(pixels)
    assert brain.stripped
    overlap = (brain.inside & plain).sum() / (brain.inside | plain).sum()
    assert overlap > 0.93


@pytest.mark.parametrize("name", NAMES)
def test_sequence_and_plane_are_estimated_and_said(scene: MakeScene, name: str) -> None:
    known = scene(name, "glioma").image
    given = scene(name, "glioma", sequence="unknown", plane="unknown")
    protocol = read_protocol(given.image, analyse(given.pixels))
    assert (protocol.sequence, protocol.plane) == ("T1", known.plane)
    assert protocol.estimated == ("sequence", "plane")
    assert "estimated as T1" in protocol.remark
    assert not protocol.enhanced


def test_tissue_levels_are_in_the_order_of_the_sequence(scene: MakeScene) -> None:
    given = scene("mni152-t1-axial-z20", "glioma")
    protocol = read_protocol(given.image, analyse(given.pixels))
    assert protocol.fluid < protocol.grey < protocol.white
    inverted = np.where(given.pixels > 20, 250 - given.pixels.astype(int), 0).astype(np.uint8)
    other = scene("mni152-t1-axial-z20", "glioma", pixels=inverted, sequence="T2")
    turned = read_protocol(other.image, analyse(other.pixels))
    assert turned.white < turned.grey < turned.fluid


def test_millimetres_follow_the_recorded_spacing(scene: MakeScene) -> None:
    given = scene("mni152-t1-axial-z20", "glioma")
    assert given.image.spacing_mm is not None
    assert read_protocol(given.image, analyse(given.pixels)).mm == given.image.spacing_mm


def test_midline_of_the_symmetric_average_is_its_middle(scene: MakeScene) -> None:
    pixels = scene("mni152-t1-axial-z20", "glioma").pixels
    line = find_midline(analyse(pixels))
    columns = np.flatnonzero((pixels[..., 0] > 20).any(axis=0))
    assert abs(line.x - (columns[0] + columns[-1]) / 2) < 5
    assert abs(line.angle) < 0.03


def test_unknown_sequence_that_is_not_plain_is_refused(scene: MakeScene) -> None:
    # Noise in the place of tissue: a head's outline with nothing to tell fluid, grey and white by.
    given = scene("mni152-t1-axial-z20", "glioma", sequence="unknown")
    body = given.pixels[..., :1] > 20
    rng = np.random.default_rng(5)
    grey = np.where(body, rng.normal(120, 30, body.shape).clip(30, 220), 0).astype(np.uint8)
    with pytest.raises(CannotShow, match=r"sequence is not recorded .* plantain ingest") as refused:
        read_protocol(given.image, analyse(np.repeat(grey, 3, axis=2)))
    said = dict(re.findall(r"--set (\w+)=(\w+)", str(refused.value)))
    assert resolve_settings("folder", load("folder").settings, said) == {"sequence": "T1", "plane": "axial"}


def test_wide_furrows_do_not_make_tissue_dark_on_flair(scene: MakeScene) -> None:
    # White matter of 104 levels, grey of 112; a quarter of the brain lies beside fluid and shares its darkness.
    ys, xs = np.mgrid[:1024, :1024]
    away = np.hypot((xs - 512) / 380, (ys - 512) / 460)
    level = np.where(away < 0.8, 104.0, 112.0)
    furrows = np.sin(20 * np.arctan2(ys - 512, xs - 512))
    level[(away > 0.6) & (furrows > 0.2)] = 72.0
    level[(away > 0.6) & (furrows > 0.75)] = 28.0
    level = np.where(away < 1, level, 0) + np.random.default_rng(3).normal(0, 3, away.shape) * (away < 1)
    pixels = np.repeat(np.clip(level, 0, 255).astype(np.uint8)[..., None], 3, axis=2)
    given = scene("mni152-t1-axial-z20", "glioma", pixels=pixels, sequence="FLAIR")
    protocol = read_protocol(given.image, analyse(given.pixels))
    assert 100 < protocol.white <= protocol.grey < 125
