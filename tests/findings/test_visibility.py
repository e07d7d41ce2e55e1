from __future__ import annotations

import pytest

from fakes.requests import source_image
from plantain.findings import lines_on, load_taxonomy, sides_on, why_not_shown, zones_on
from plantain.records import SourceImage

TAXONOMY = load_taxonomy()


def image(modality: str, **known: str) -> SourceImage:
    return source_image(**{"modality": modality, "view": "unknown", "projection": "unknown", **known})


@pytest.mark.parametrize(
    ("modality", "name", "known", "obstacle"),
    [
        ("chest_xray", "Pneumothorax", {"view": "lateral"}, "view is lateral"),
        ("chest_xray", "Pneumothorax", {"view": "frontal"}, ""),
        ("chest_xray", "Pneumothorax", {}, ""),
        ("chest_xray", "Cardiomegaly", {"projection": "AP"}, "projection is AP"),
        ("chest_xray", "Cardiomegaly", {"projection": "PA", "position": "supine"}, "position is supine"),
        ("chest_xray", "Cardiomegaly", {"projection": "pa"}, ""),
        ("brain_mri", "glioma", {"sequence": "DWI"}, "sequence is DWI"),
        ("brain_mri", "glioma", {"sequence": "T1", "contrast": "yes"}, ""),
        ("fundus", "Cataract", {}, ""),
        ("brain_mri", "pituitary", {"view": "without sella"}, "view is without sella"),
        ("brain_mri", "pituitary", {"view": "sella"}, ""),
        ("brain_mri", "pituitary", {}, ""),
        ("brain_mri", "glioma", {"view": "without sella"}, ""),
        ("brain_mri", "glioma", {"modality": "fundus"}, "the image is fundus"),
    ],
)
def test_why_not_shown(modality: str, name: str, known: dict[str, str], obstacle: str) -> None:
    reason = why_not_shown(TAXONOMY.get(modality, name), image(**{"modality": modality, **known}))
    assert (obstacle in reason) if obstacle else reason == ""


def test_pneumothorax_is_at_the_place_where_air_rises() -> None:
    finding = TAXONOMY.get("chest_xray", "Pneumothorax")
    assert zones_on(finding, image("chest_xray", position="erect")) == ("apical", "lateral")
    assert zones_on(finding, image("chest_xray")) == ("apical", "lateral")
    assert zones_on(finding, image("chest_xray", position="supine")) == ("basal",)


def test_slices_in_sagittal_planes_or_of_unknown_laterality_have_no_left_and_right() -> None:
    glioma, pituitary = (TAXONOMY.get("brain_mri", name) for name in ("glioma", "pituitary"))
    assert sides_on(glioma, image("brain_mri", plane="axial")) == ("left", "right")
    assert sides_on(glioma, image("brain_mri", plane="sagittal")) == ()
    assert sides_on(pituitary, image("brain_mri", plane="sagittal")) == ("midline",)
    assert sides_on(glioma, image("brain_mri", plane="coronal")) == glioma.sides
    assert sides_on(glioma, image("brain_mri", plane="coronal", laterality="not recorded")) == ()


def test_lines_on_keeps_the_lines_that_apply_to_the_image() -> None:
    effusion = TAXONOMY.get("chest_xray", "Pleural Effusion")
    erect = " ".join(lines_on(effusion.signs, effusion.zones, image("chest_xray"), "basal"))
    supine = " ".join(
        lines_on(effusion.signs, effusion.zones, image("chest_xray", position="supine"), "basal")
    )
    assert "blunt" in erect
    assert "veil" not in erect
    assert "veil" in supine
    assert "blunt" not in supine

    glioma = TAXONOMY.get("brain_mri", "glioma")
    enhanced = image("brain_mri", sequence="T1", contrast="yes")
    assert any("rim" in line for line in lines_on(glioma.signs, glioma.zones, enhanced, None))
    unknown = lines_on(glioma.signs, glioma.zones, image("brain_mri"), None)
    assert not any("rim" in line or "bright" in line for line in unknown)


def test_lines_on_keeps_a_colon_outside_a_condition() -> None:
    assert lines_on(("note this: x", "late: y"), (), image("fundus"), None) == ("note this: x",)
