"""What a judge may expect of a finding: where, of which sign, in one part or many."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plantain.records import Direction, Finding, SourceImage


@dataclass(frozen=True, slots=True)
class Presentation:
    """How a finding shows.

    Attributes:
        region: name in the judge's map of the anatomy.
        sign: +1 brighter, -1 darker, 0 both or not known, of the finding against what it replaces.
        parts: "single" (one connected change), "many" (foci), "diffuse" (whole field), "warp" (moved
            borders).
        share: largest plausible part of the region that it covers.
        crisp: a sharp border belongs to it.
        pure: every part of it goes the same way, brighter or darker.
        hairline: the finding is a line of a few pixels, looked at without the smoothing that suits larger ones.
        base: name of a line that it sits upon, where being near is enough if it touches; "" for none.
        lines: thin lines anywhere in the region belong to it (septal lines beside a haze).
        mixed: strong and faint signs together make it up, and the strong ones say whether it is seen.
        plain: one smooth hill may be all of it; True of findings that nothing is known of.
        bilateral: it shows in both lungs.
        net: least share by which its parts, taken together, go one way; see `Evidence.balance`.
        dark: least share of the change that darkens, of a finding that has dark signs as well as bright ones.
        at: name of a structure that most of it lies at, whatever its region is; "" for none.
        rounded: it is about as long as wide.
        outlined: it has a crisp outline, whatever the sequence.
        shrinks: volume is lost: it is a band, or moves a border.
        low: least height of its middle in its region, from 0 (top) to 1 (bottom); 0 asks nothing.
        unlike: what the same change might be instead, by names that `offline/signs.py` knows; then it is unscored.
        either: contrast medium may have been given, so a lesion that is there may be bright or dark, whatever one that
            is drawn would be.
        halves: a removal is certified by the halves of the slice.
        drawn: the original is a drawing itself, so that its removal shows self-consistency and no more.
        dark_may_be: a lesion that is darker than the brain is one, not a ventricle.
        focus: largest radius of one focus, as a share of the modality's yardstick (see `Anatomy.length`).
    """

    region: str
    sign: int
    parts: str
    share: float = 0.6
    crisp: bool = False
    focus: float = 9.0
    pure: bool = False
    hairline: bool = False
    base: str = ""
    lines: bool = False
    mixed: bool = False
    plain: bool = False
    bilateral: bool = False
    net: float = 0.05
    dark: float = 0.0
    at: str = ""
    rounded: bool = False
    outlined: bool = False
    shrinks: bool = False
    low: float = 0.0
    unlike: tuple[str, ...] = ()
    either: bool = False
    halves: bool = False
    drawn: bool = False
    dark_may_be: bool = True


OPAQUE = 0.6
"""What fills air brightens, and moves no border: a share of its change that darkens is something else."""

FLUID = 0.35
"""Free fluid of somebody upright lies at the base."""

BLEEDING = 0.2
"""Microaneurysms and bleedings are dark; exudates and drusen alone are another finding."""

MEDIAL = ("mediastinum",)
OPACITY = ("mediastinum", "effusion")
HAZY = ("mediastinum", "volume loss")
FILLED = (*OPACITY, "volume loss", "band")

KNOWN: dict[tuple[str, str], Presentation] = {
    ("chest_xray", "Atelectasis"): Presentation("lungs", 1, "many", shrinks=True, unlike=MEDIAL),
    ("chest_xray", "Cardiomegaly"): Presentation("heart", 1, "warp", 2.0, unlike=("haze",)),
    ("chest_xray", "Consolidation"): Presentation("lungs", 1, "many", pure=True, net=OPAQUE, unlike=FILLED),
    ("chest_xray", "Edema"): Presentation(
        "lungs", 1, "many", 0.95, pure=True, lines=True, bilateral=True, net=OPAQUE, unlike=HAZY
    ),
    ("chest_xray", "Enlarged Cardiomediastinum"): Presentation(
        "mediastinum", 1, "warp", 2.0, unlike=("haze",)
    ),
    ("chest_xray", "Fracture"): Presentation(
        "chest", 0, "single", 0.05, True, hairline=True, unlike=("bright line",)
    ),
    ("chest_xray", "Lung Lesion"): Presentation(
        "lungs", 1, "single", 0.2, pure=True, plain=True, net=OPAQUE, rounded=True, unlike=OPACITY
    ),
    ("chest_xray", "Lung Opacity"): Presentation(
        "lungs", 1, "many", pure=True, plain=True, net=OPAQUE, unlike=OPACITY
    ),
    ("chest_xray", "Pleural Effusion"): Presentation("bases", 1, "single", pure=True, low=FLUID),
    ("chest_xray", "Pleural Other"): Presentation("pleura", 1, "single"),
    ("chest_xray", "Pneumonia"): Presentation("lungs", 1, "many", pure=True, net=OPAQUE, unlike=FILLED),
    ("chest_xray", "Pneumothorax"): Presentation("pleura", -1, "single", 0.6, True),
    ("brain_mri", "glioma"): Presentation("brain", 0, "single", 0.55, unlike=("meningioma",), halves=True),
    ("brain_mri", "meningioma"): Presentation(
        "dura", 0, "single", 0.4, base="dural line", outlined=True, unlike=("sella", "glioma"), halves=True
    ),
    ("brain_mri", "pituitary"): Presentation("sella", 0, "single", 1.0, True, halves=True),
    ("fundus", "AMD"): Presentation("macula", 1, "many", focus=0.3, net=OPAQUE),
    ("fundus", "Cataract"): Presentation("field", 0, "diffuse", 1.0),
    ("fundus", "Diabetes"): Presentation("retina", 0, "many", 0.3, True, 0.25, dark=BLEEDING),
    ("fundus", "Glaucoma"): Presentation("disc", 0, "single", 0.9),
    ("fundus", "Hypertension"): Presentation("retina", 0, "many", 0.3, True, 0.3, mixed=True, dark=BLEEDING),
    ("fundus", "Myopia"): Presentation("retina", 1, "many", 0.5, mixed=True, at="disc"),
}

GLIOMA_SIGN = {"T1": -1, "T2": 1, "FLAIR": 1, "PD": 1}
"""Water in and around a glioma: dark on T1, bright on T2, FLAIR and proton density; contrast makes it both."""

SELLA_SIGN = {"T1": 1, "FLAIR": 1}
"""Tissue of the level of grey matter in the place of fluid or bone, which are dark there; on T2 fluid is bright."""

SIGNS = {"brighter": 1, "darker": -1}


def presentation_of(finding: Finding, image: SourceImage) -> Presentation:
    """What to expect of a finding on this image; a finding of the user's own is taken by its data alone."""
    known = KNOWN.get((finding.modality, finding.name))
    if known is None:
        parts = {"diffuse": "diffuse", "warp": "warp"}.get(finding.support, "many")
        return Presentation("", SIGNS.get(finding.polarity, 0), parts, 1.0, plain=True)
    if known.halves:
        told = image.contrast.lower() not in ("", "unknown")
        known = replace(known, drawn=image.synthetic, dark_may_be=told)
    if finding.name == "glioma":
        sign = GLIOMA_SIGN.get(image.sequence, 0)
        return replace(known, sign=sign, either=image.sequence == "T1" and not known.dark_may_be)
    if finding.name == "pituitary":
        return replace(known, sign=SELLA_SIGN.get(image.sequence, 0))
    if known.low and image.position == "supine":
        return replace(known, low=0.0)
    return known


def expected_sign(presentation: Presentation, direction: Direction) -> int:
    """The sign of the change itself: a removal goes the other way, or either way where nobody said which."""
    if direction is Direction.REMOVE and presentation.either:
        return 0
    return presentation.sign if direction is Direction.ADD else -presentation.sign
