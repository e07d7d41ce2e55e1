"""The thirteen organs of MedEBench, and the other names that its files and tables use for them."""

from __future__ import annotations

import re

from plantain.records.suggestions import nearest

ORGANS: dict[str, tuple[str, ...]] = {
    "Teeth": ("tooth", "dental"),
    "Eyes": ("eye",),
    "Spine and Bones": ("spine", "bone", "bones", "bones and spine", "skeleton"),
    "Skin": (),
    "Nose": (),
    "Face": (),
    "GI Tract": ("gi", "gastrointestinal tract", "gastrointestinal", "digestive tract", "intestine"),
    "Ears": ("ear",),
    "Hands": ("hand",),
    "Mouth": ("lip", "lips"),
    "Torso": ("trunk",),
    "Feet": ("foot",),
    "Hair": (),
}
"""Other names by canonical name, in the order of the paper's Table 2 (which says Spine; Table 4 says Bones)."""


def _folded(name: str) -> str:
    """Case, punctuation and the word "and" do not count."""
    return " ".join(word for word in re.split(r"[\W_]+", name.casefold()) if word and word != "and")


_NAMES = {_folded(alias): organ for organ, aliases in ORGANS.items() for alias in (organ, *aliases)}


def canonical_organ(name: str) -> tuple[str, str]:
    """The organ's canonical name, and a remark where it is none of the thirteen.

    A name of one's own is kept as it is, so that other benchmarks may have other organs.

    Example:
        >>> canonical_organ(" bones ")
        ('Spine and Bones', '')
        >>> canonical_organ("Teath")
        ('Teath', "not one of MedEBench's organs; did you mean 'Teeth'?")
    """
    found = _NAMES.get(_folded(name))
    if found:
        return found, ""
    near = nearest(_folded(name), _NAMES, cutoff=0.75)
    hint = f"; did you mean {_NAMES[near]!r}?" if near else ""
    return " ".join(name.split()), f"not one of MedEBench's organs{hint}"
