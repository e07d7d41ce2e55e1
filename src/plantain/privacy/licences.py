"""Licences by name, with the address of their text, and the licence and the credit of each part of a release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

import orjson
from pydantic import Field, TypeAdapter

from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import Licence

FOLDER = "LICENSES"

STRICTEST_LAST = (Licence.OPEN, Licence.ATTRIBUTION, Licence.UNKNOWN, Licence.CREDENTIALED)


def strictest(images: Iterable[tuple[str, Licence]]) -> dict[str, Licence]:
    """Return the licence class of each dataset: the strictest of its images, given as (dataset, licence class)."""
    classes: dict[str, Licence] = {}
    for dataset, found in images:
        classes[dataset] = max(classes.get(dataset, found), found, key=STRICTEST_LAST.index)
    return classes


@dataclass(frozen=True, slots=True)
class LicenceText:
    """A licence: its SPDX id, the address of its legal text, or else its meaning in plantain's words."""

    spdx: Annotated[str, Field(pattern=r"^[A-Za-z0-9.+-]{1,80}$")]
    name: str
    url: str = ""
    meaning: str = ""

    @property
    def file(self) -> str:
        return f"{FOLDER}/{self.spdx}.txt"

    @property
    def text(self) -> str:
        terms = self.meaning or f"Legal text, which is binding: {self.url}"
        return f"{self.name}\nSPDX-License-Identifier: {self.spdx}\n\n{terms}\n"


_CC, _ODC, _OSI = (
    "https://creativecommons.org/",
    "https://opendatacommons.org/licenses/",
    "https://opensource.org/",
)
_KNOWN = (
    ("CC0-1.0", "Creative Commons Zero 1.0 Universal", f"{_CC}publicdomain/zero/1.0/legalcode"),
    ("CC-BY-4.0", "Creative Commons Attribution 4.0 International", f"{_CC}licenses/by/4.0/legalcode"),
    ("ODC-By-1.0", "Open Data Commons Attribution License v1.0", f"{_ODC}by/1-0/"),
    (
        "CC-BY-SA-4.0",
        "Creative Commons Attribution-ShareAlike 4.0 International",
        f"{_CC}licenses/by-sa/4.0/legalcode",
    ),
    (
        "CC-BY-NC-4.0",
        "Creative Commons Attribution-NonCommercial 4.0 International",
        f"{_CC}licenses/by-nc/4.0/legalcode",
    ),
    (
        "CC-BY-NC-SA-4.0",
        "Creative Commons Attribution-NonCommercial-ShareAlike 4.0 International",
        f"{_CC}licenses/by-nc-sa/4.0/legalcode",
    ),
    ("PDDL-1.0", "Open Data Commons Public Domain Dedication and License v1.0", f"{_ODC}pddl/1-0/"),
    ("ODbL-1.0", "Open Data Commons Open Database License v1.0", f"{_ODC}odbl/1-0/"),
    ("MIT", "MIT License", f"{_OSI}license/mit"),
    ("Apache-2.0", "Apache License 2.0", "https://www.apache.org/licenses/LICENSE-2.0"),
    ("BSD-3-Clause", "BSD 3-Clause License", f"{_OSI}license/bsd-3-clause"),
)
KNOWN = {spdx: LicenceText(spdx, name, url) for spdx, name, url in _KNOWN}
"""Licences that can be named by their SPDX id."""
CC0, CC_BY, ODC_BY = KNOWN["CC0-1.0"], KNOWN["CC-BY-4.0"], KNOWN["ODC-By-1.0"]

AGREEMENT = LicenceText(
    "LicenseRef-Source-Agreement",
    "Under the agreement with the owner of the source images",
    "",
    "These images derive from images that their owner gives to credentialed users only. The publisher of this release\n"
    "named the agreement below as the one that allows passing them on. Its terms apply, as do the owner's own terms\n"
    "of use. No public licence is granted. Do not pass them on unless that agreement covers you.",
)
UNKNOWN = LicenceText(
    "LicenseRef-Source-Unknown",
    "Licence of the source images not known",
    "",
    "The terms of the source images of these edits were not recorded. No licence is granted for them: find out what\n"
    "their owner allows before you use or pass them on.",
)
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
)

_TERMS = TypeAdapter(dict[str, LicenceText])


def from_json(recorded: object) -> dict[str, LicenceText]:
    """Parse dataset -> licence as run.json contains them. Raise pydantic's ValidationError for other data."""
    return _TERMS.validate_python(recorded)


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


_KNOWN_SOURCES = {
    "scikit-image": (
        KNOWN["CC0-1.0"],
        "H\u00e4ggstr\u00f6m M. Medical gallery of Mikael H\u00e4ggstr\u00f6m 2014. WikiJournal of Medicine 1 (2). "
        "doi:10.15347/wjm/2014.008. Distributed with scikit-image.",
    ),
    "pydicom-data": (
        KNOWN["MIT"],
        "A DICOM compression sample of the NEMA WG4 set, distributed with pydicom-data.",
    ),
    "dipy": (KNOWN["BSD-3-Clause"], "Test data distributed with DIPY."),
    "MNI ICBM152": (
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
        images: number of source images used.
        source_licence: licence class of the source, as recorded at ingest.
        agreement: the reference that allows redistribution, for credentialed sources.
        credit: the authors to name, if known.
        decided: "owner": named by the owner of the images; "source": required by the source; "default": plantain's,
            for the records and for releases made before a licence had to be named.
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
        """The duties of users in addition to the licence, as a sentence; "" without any."""
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
    """Decide the licence of every part of a release: the images by source, sorted, then the records.

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
) -> tuple[SourcePart, ...]:
    """Return the parts of a release that contain originals, by dataset.

    Args:
        sources: per dataset: its licence class and version.
        counts: per dataset: the number of originals in the release, under "carried".
    """
    parts = []
    for dataset, source in sorted(sources.items()):
        allowed, held = Licence(str(source["licence"])), counts.get(dataset, {}).get("carried", 0)
        if not held or allowed not in FREE_TO_LEAVE:
            continue
        known = _KNOWN_SOURCES.get(dataset)
        version = str(source.get("version", ""))
        licence, credit = known or (
            _CLASSES[allowed],
            f"The owners of {dataset}{f', {version}' if version else ''}.",
        )
        parts.append(
            SourcePart(PART + dataset, dataset, version, held, allowed.value, licence, credit=credit)
        )
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
    """Return path -> content of LICENSES: the text of every licence, and the JSON list of the parts."""
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
