"""Terms and credit of the source images that a release contains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plantain.privacy.licence_terms import KNOWN
from plantain.privacy.licence_texts import FOLDER, LicenceText, SourcePart
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import Licence

PART = "originals of "
"""Prefix of the name of a part with originals; the dataset's name follows."""

ATTRIBUTION = f"{FOLDER}/ATTRIBUTION.md"

OPEN = LicenceText(
    "LicenseRef-Source-Open",
    "Open, according to the owner of the source images",
    "",
    "These are source images, prepared and otherwise untouched. The publisher of this release recorded that\n"
    "their owner lets everyone use them and pass them on. The owner's own licence is binding: look it up where the\n"
    "dataset is published. No further rights and no warranty are given here.",
)
CREDIT = LicenceText(
    "LicenseRef-Source-Attribution",
    "With credit, as the owner of the source images asks",
    "",
    "These are source images, prepared and otherwise untouched. The publisher of this release recorded that\n"
    "their owner lets everyone use them and pass them on as long as the owner is credited. The owner's own licence is\n"
    "binding: look it up where the dataset is published. Keep LICENSES/ATTRIBUTION.md with the images.\n"
    "No further rights and no warranty are given here.",
)
MNI = LicenceText(
    "LicenseRef-MNI",
    "Licence of the McConnell Brain Imaging Centre for its atlases",
    "https://nist.mni.mcgill.ca/icbm-152-nonlinear-atlases-2009/",
    "You may use, copy, change and pass on the atlas without fee as long as its copyright notice goes along.\n"
    "It comes without any warranty.",
)


@dataclass(frozen=True, slots=True)
class _Published:
    licence: LicenceText
    credit: str


_KNOWN_SOURCES = {
    "scikit-image": _Published(
        KNOWN["CC0-1.0"],
        "H\u00e4ggstr\u00f6m M. Medical gallery of Mikael H\u00e4ggstr\u00f6m 2014. WikiJournal of Medicine 1 (2). "
        "doi:10.15347/wjm/2014.008. Distributed with scikit-image.",
    ),
    "pydicom-data": _Published(
        KNOWN["MIT"],
        "A DICOM compression sample of the NEMA WG4 set, distributed with pydicom-data.",
    ),
    "dipy": _Published(KNOWN["BSD-3-Clause"], "Test data distributed with DIPY."),
    "MNI ICBM152": _Published(
        MNI,
        "Fonov V, et al. Unbiased average age-appropriate atlases for pediatric studies. NeuroImage 54 (1), 2011. "
        "doi:10.1016/j.neuroimage.2010.07.033.",
    ),
}
"""The datasets of `sources/samples.py`, as their packages publish them."""

_CLASSES = {Licence.OPEN: OPEN, Licence.ATTRIBUTION: CREDIT}


def original_parts(
    sources: Mapping[str, Mapping[str, str | int]],
    counts: Mapping[str, Mapping[str, int]],
    terms: Mapping[str, LicenceText],
) -> tuple[SourcePart, ...]:
    """Return the parts of a release that contain originals, by dataset.

    Args:
        sources: per dataset: its licence class and version.
        counts: per dataset: the number of originals in the release, under "carried".
        terms: licences of the owners that were named.
    """
    parts = []
    for dataset, source in sorted(sources.items()):
        allowed, held = Licence(str(source["licence"])), counts.get(dataset, {}).get("carried", 0)
        if not held or allowed not in FREE_TO_LEAVE:
            continue
        known = _KNOWN_SOURCES.get(dataset)
        licence = terms.get(dataset) or (known.licence if known else _CLASSES[allowed])
        version = str(source.get("version", ""))
        credit = known.credit if known else f"The owners of {dataset}{f', {version}' if version else ''}."
        decided = "owner" if dataset in terms else "source"
        part = SourcePart(
            PART + dataset, dataset, version, held, allowed.value, licence, decided=decided, credit=credit
        )
        parts.append(part)
    return tuple(parts)


def attribution(parts: Sequence[SourcePart]) -> str:
    """Return the text of ATTRIBUTION.md: credit and terms of every source whose originals are in the release."""
    sections = [
        f"## {part.dataset}\n\n{part.images} prepared source images. {part.credit}\n\n"
        f"Terms: {part.licence.name} ({part.licence.spdx}){f', {part.licence.url}' if part.licence.url else ''}; see "
        f"`{part.licence.file}`.\n"
        for part in parts
    ]
    head = (
        "# Source images in this release\n\nEach was prepared (resized to 1024 x 1024, metadata removed) and is "
        "otherwise as its owner published it. Pass this page on with them.\n"
    )
    return "\n".join([head, *sections])
