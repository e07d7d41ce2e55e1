"""Sides and zones: the controlled words of findings, writers, renderers and judges for the place of a finding.

A zone is a short name in a finding's data ("apical"). Its place gives the words that say it in a sentence and the
words by which it is recognised. A zone of a user's own finding needs no entry: its own name is used and recognised.
"""

from __future__ import annotations

from dataclasses import dataclass

SIDES = ("left", "right", "bilateral", "midline")
"""The patient's sides; in an image shown in radiological convention the patient's left is on the image's right."""


@dataclass(frozen=True, slots=True)
class Place:
    """The words for a zone.

    Attributes:
        plain: phrase without a side, e.g. "at the apex of the lung".
        sided: phrase with a side; contains "{side}", e.g. "at the apex of the {side} lung".
        both: phrase for "bilateral".
        words: lower-case words that name the zone in free text, longest first if they overlap.
    """

    plain: str
    sided: str
    both: str
    words: tuple[str, ...]


def _lung(one: str, both: str, words: tuple[str, ...]) -> Place:
    """A place of one lung or of both."""
    return Place(f"{one} of the lung", f"{one} of the {{side}} lung", f"{both} of both lungs", words)


PLACES: dict[str, Place] = {
    # chest
    "apical": _lung("at the apex", "at the apices", ("apical", "apex", "apices", "lung top")),
    "upper": _lung(
        "in the upper zone",
        "in the upper zones",
        ("upper zone", "upper lobe", "upper lung", "upper field", "upper third", "upper", "superior zone"),
    ),
    "mid": _lung(
        "in the mid zone",
        "in the mid zones",
        (
            "mid zone",
            "middle zone",
            "middle lobe",
            "mid lung",
            "middle lung",
            "middle third",
            "middle",
            "mid",
        ),
    ),
    "lower": _lung(
        "in the lower zone",
        "in the lower zones",
        ("lower zone", "lower lobe", "lower lung", "lower field", "lower third", "lower", "inferior zone"),
    ),
    "basal": _lung(
        "at the base",
        "at the bases",
        ("basal", "basilar", "bibasal", "bibasilar", "base", "bases", "costophrenic", "diaphragmatic"),
    ),
    "perihilar": Place(
        "around the hilum",
        "around the {side} hilum",
        "around both hila",
        ("perihilar", "parahilar", "around the hilum", "around the hila", "hilum", "hila", "hilar"),
    ),
    "lateral": Place(
        "along the lateral chest wall",
        "along the {side} lateral chest wall",
        "along both lateral chest walls",
        ("lateral chest wall", "along the chest wall", "laterally", "lateral"),
    ),
    "upper mediastinum": Place(
        "in the upper mediastinum",
        "in the upper mediastinum on the {side}",
        "in the upper mediastinum on both sides",
        ("upper mediastinum", "superior mediastinum", "upper mediastinal", "superior mediastinal"),
    ),
    "lateral rib": Place(
        "in the lateral part of a rib",
        "in the lateral part of a {side} rib",
        "in the lateral part of a rib on both sides",
        ("lateral part of a rib", "lateral rib", "lateral ribs", "lateral arc", "lateral part", "lateral"),
    ),
    "posterior rib": Place(
        "in the posterior part of a rib",
        "in the posterior part of a {side} rib",
        "in the posterior part of a rib on both sides",
        (
            "posterior part of a rib",
            "posterior rib",
            "posterior ribs",
            "posterior arc",
            "posterior part",
            "posterior",
        ),
    ),
    # brain
    **{
        lobe: Place(
            f"in the {lobe} lobe",
            f"in the {{side}} {lobe} lobe",
            f"in both {lobe} lobes",
            (f"{lobe} lobe", f"{lobe} lobes", lobe),
        )
        for lobe in ("frontal", "parietal", "temporal", "occipital")
    },
    "convexity": Place(
        "over the cerebral convexity",
        "over the {side} cerebral convexity",
        "over both cerebral convexities",
        ("convexity", "convexities", "convexital"),
    ),
    "falx": Place(
        "along the falx",
        "on the {side} side of the falx",
        "on both sides of the falx",
        ("falx", "parafalcine", "falcine", "parasagittal", "interhemispheric"),
    ),
    "sella": Place(
        "within the sella",
        "within the {side} half of the sella",
        "within both halves of the sella",
        ("sella turcica", "sella", "sellar", "intrasellar", "pituitary fossa"),
    ),
    "suprasellar": Place(
        "extending into the suprasellar cistern",
        "extending into the {side} half of the suprasellar cistern",
        "extending into both halves of the suprasellar cistern",
        ("suprasellar cistern", "suprasellar", "above the sella"),
    ),
    # fundus
    "macula": Place(
        "at the macula",
        "at the {side} part of the macula",
        "across the macula",
        ("macula", "macular", "fovea", "foveal", "perifoveal", "parafoveal"),
    ),
    "posterior pole": Place(
        "at the posterior pole",
        "across the {side} part of the posterior pole",
        "across the posterior pole on both sides",
        ("posterior pole", "central retina", "vascular arcades", "within the arcades"),
    ),
    "mid-periphery": Place(
        "in the mid-periphery",
        "in the {side} mid-periphery",
        "in the mid-periphery on both sides",
        (
            "mid-periphery",
            "mid periphery",
            "midperiphery",
            "midperipheral",
            "mid-peripheral",
            "periphery",
            "peripheral",
        ),
    ),
    "peripapillary": Place(
        "around the optic disc",
        "at the {side} margin of the optic disc",
        "on both sides of the optic disc",
        (
            "peripapillary",
            "parapapillary",
            "beside the optic disc",
            "around the optic disc",
            "disc edge",
            "disc margin",
        ),
    ),
    "inferior rim": Place(
        "at the inferior pole of the neuroretinal rim",
        "at the inferior pole of the neuroretinal rim on the {side}",
        "at the inferior pole of both neuroretinal rims",
        ("lower pole", "inferior pole", "inferior rim", "lower rim", "inferotemporal rim", "inferiorly"),
    ),
    "superior rim": Place(
        "at the superior pole of the neuroretinal rim",
        "at the superior pole of the neuroretinal rim on the {side}",
        "at the superior pole of both neuroretinal rims",
        ("upper pole", "superior pole", "superior rim", "upper rim", "superotemporal rim", "superiorly"),
    ),
}
"""Every zone that a built-in finding uses."""


def place_of(zone: str) -> Place:
    """Return the words for a zone; an unknown zone is described by its name."""
    known = PLACES.get(zone)
    if known is not None:
        return known
    return Place(
        f"in the {zone} region",
        f"in the {zone} region on the {{side}} side",
        f"in the {zone} region on both sides",
        (zone.lower(),),
    )


def describe_place(zone: str | None, side: str | None) -> str:
    """Describe a place in words, e.g. "at the apex of the left lung"; return "" without zone and side."""
    if zone is None:
        return {
            None: "",
            "bilateral": "on both sides",
            "midline": "in the midline",
        }.get(side, f"on the {side} side")
    place = place_of(zone)
    if side is None:
        return place.plain
    if side == "bilateral":
        return place.both
    if side == "midline":
        return f"{place.plain}, in the midline"
    return place.sided.format(side=side)
