"""The licence and the credit of each part of a release, decided source by source, and the LICENSES folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import orjson

from plantain.privacy.licence_texts import (
    AGREEMENT,
    CC0,
    CC_BY,
    CREDIT,
    FOLDER,
    KNOWN,
    MNI,
    ODC_BY,
    OPEN,
    UNKNOWN,
    LicenceText,
)
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import Licence

PARTS = f"{FOLDER}/parts.json"
ATTRIBUTION = f"{FOLDER}/ATTRIBUTION.md"

PART = "originals of "
"""Prefix of the name of a part with originals; the dataset's name follows."""

_OPEN_SOURCES = {"scikit-image": CC0}
"""Datasets of class open whose own licence we know."""

_IMAGES = {
    Licence.OPEN: CC_BY,
    Licence.ATTRIBUTION: CC_BY,
    Licence.CREDENTIALED: AGREEMENT,
    Licence.UNKNOWN: UNKNOWN,
}


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


@dataclass(frozen=True, slots=True)
class SourcePart:
    """One part of a release and its licence.

    Attributes:
        part: "images of DATASET", or "records".
        dataset: the source; "" for the records.
        images: source images that were used.
        source_licence: licence class of the source, as recorded at ingest.
        agreement: the reference that allows redistribution, for credentialed sources.
        credit: the authors to name, if known.
        decided: "owner": named by the owner of the images; "source": their own, or they leave no choice; "default":
            ours: of the records, and of releases that were made before a licence had to be named.
    """

    part: str
    dataset: str
    version: str
    images: int
    source_licence: str
    licence: LicenceText
    agreement: str = ""
    decided: str = "source"
    credit: str = ""

    @property
    def duty(self) -> str:
        """Return the duties of users beyond the licence itself."""
        if self.source_licence == Licence.ATTRIBUTION:
            return "credit the source as its owner asks"
        if self.source_licence == Licence.CREDENTIALED:
            return f"only under: {self.agreement}"
        return "find out the source's terms first" if self.source_licence == Licence.UNKNOWN else ""


def decide_parts(
    sources: Mapping[str, Mapping[str, str | int]],
    agreement: str,
    terms: Mapping[str, LicenceText] = MappingProxyType({}),
) -> tuple[SourcePart, ...]:
    """Return the licence of every part: the images by source, sorted, then the records.

    Args:
        sources: per dataset: its licence class, its version, and the number of images used.
        agreement: the reference that allows redistribution, for credentialed sources.
        terms: licences that the owner of a dataset's images named.
    """
    parts = []
    for dataset, source in sorted(sources.items()):
        allowed = Licence(str(source["licence"]))
        licence, decided = _images_licence(dataset, allowed, terms)
        parts.append(
            SourcePart(
                f"images of {dataset}",
                dataset,
                str(source.get("version", "")),
                int(source.get("images", 0)),
                allowed.value,
                licence,
                agreement.strip() if allowed is Licence.CREDENTIALED else "",
                decided,
            )
        )
    return (*parts, SourcePart("records", "", "", 0, "", ODC_BY, decided="default"))


def _images_licence(
    dataset: str, allowed: Licence, terms: Mapping[str, LicenceText]
) -> tuple[LicenceText, str]:
    """Return the licence of a dataset's images, and the basis of the decision."""
    if allowed in (Licence.CREDENTIALED, Licence.UNKNOWN):
        return _IMAGES[allowed], "source"
    if dataset in terms:
        return terms[dataset], "source" if terms[dataset] == UNKNOWN else "owner"
    if allowed is Licence.OPEN and dataset in _OPEN_SOURCES:
        return _OPEN_SOURCES[dataset], "source"
    return _IMAGES[allowed], "default"


def is_ours_to_choose(dataset: str, allowed: Licence, terms: Mapping[str, LicenceText]) -> bool:
    """Return True if the licence of a dataset's edits must still be chosen."""
    return _images_licence(dataset, allowed, terms)[1] == "default"


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


def licence_files(parts: tuple[SourcePart, ...]) -> dict[str, bytes]:
    """Return the files of LICENSES: every licence, and the licence of each part."""
    files = {}
    for part in parts:
        text = part.licence.text
        agreements = sorted(
            {other.agreement for other in parts if other.licence == part.licence and other.agreement}
        )
        if agreements:
            text += "\nAgreement: " + "; ".join(agreements) + "\n"
        files[part.licence.file] = text.encode()
    entries = [
        {
            "part": part.part,
            "dataset": part.dataset,
            "version": part.version,
            "images": part.images,
            "source_licence": part.source_licence,
            "licence": part.licence.spdx,
            "file": part.licence.file,
            "agreement": part.agreement,
            "duty": part.duty,
            "decided": part.decided,
            "credit": part.credit,
        }
        for part in parts
    ]
    files[PARTS] = orjson.dumps(entries, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return files
