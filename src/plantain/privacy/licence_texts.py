"""The licence of each part of a release, decided source by source, and the LICENSES folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import orjson

from plantain.records import InputError, Licence

FOLDER = "LICENSES"
PARTS = f"{FOLDER}/parts.json"

TEXTS_NOTE = (
    "This file names the licence and summarises it in our own words. Only the legal text, at the address above, is "
    "binding."
)


@dataclass(frozen=True, slots=True)
class LicenceText:
    """A licence by its SPDX id, the address of its legal text, and a summary in our own words."""

    spdx: str
    name: str
    url: str
    meaning: str

    @property
    def file(self) -> str:
        return f"{FOLDER}/{self.spdx}.txt"

    @property
    def text(self) -> str:
        where = f"Legal text: {self.url}\n" if self.url else ""
        note = f"\n{TEXTS_NOTE}\n" if self.url else ""
        return f"{self.name}\nSPDX-License-Identifier: {self.spdx}\n{where}\n{self.meaning}\n{note}"


CC_BY = LicenceText(
    "CC-BY-4.0",
    "Creative Commons Attribution 4.0 International",
    "https://creativecommons.org/licenses/by/4.0/legalcode",
    "You may copy, change and pass on the covered material, also commercially, as long as you give credit, link to\n"
    "the licence and state whether you made changes. You may add no terms that take these freedoms away again.\n"
    "It comes without any warranty.",
)
ODC_BY = LicenceText(
    "ODC-By-1.0",
    "Open Data Commons Attribution License v1.0",
    "https://opendatacommons.org/licenses/by/1-0/",
    "You may copy, use, change and pass on the database, and make works from it, as long as you say where it comes\n"
    "from. It covers the collection as such: the selection, tables, splits and verdicts, not each image in it.\n"
    "It comes without any warranty.",
)
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

CC0 = LicenceText(
    "CC0-1.0",
    "Creative Commons Zero 1.0 Universal",
    "https://creativecommons.org/publicdomain/zero/1.0/legalcode",
    "The authors have waived their rights in it to the extent that the law allows: use it as you like.\n"
    "It comes without any warranty.",
)

STRICTEST_LAST = (Licence.OPEN, Licence.ATTRIBUTION, Licence.UNKNOWN, Licence.CREDENTIALED)

_OPEN_SOURCES = {"scikit-image": CC0}
"""Datasets of class open whose own licence we know."""

_IMAGES = {
    Licence.OPEN: CC_BY,
    Licence.ATTRIBUTION: CC_BY,
    Licence.CREDENTIALED: AGREEMENT,
    Licence.UNKNOWN: UNKNOWN,
}


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

    Raises:
        InputError: a source is credentialed and no agreement was named.
    """
    parts = []
    for dataset, source in sorted(sources.items()):
        allowed = Licence(str(source["licence"]))
        if allowed is Licence.CREDENTIALED and not agreement.strip():
            raise InputError(
                f"images of {dataset} are credentialed: their edits may not be redistributed; name "
                "the agreement that allows it with --redistribution-approved REFERENCE"
            )
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
