"""Licences by name: those that can be chosen, those that a source imposes, and their summaries in our own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field, TypeAdapter

from plantain.records import Licence

FOLDER = "LICENSES"

TEXTS_NOTE = (
    "This file names the licence and summarises it in our own words. Only the legal text, at the address above, is "
    "binding."
)

STRICTEST_LAST = (Licence.OPEN, Licence.ATTRIBUTION, Licence.UNKNOWN, Licence.CREDENTIALED)


def strictest(images: Iterable[tuple[str, Licence]]) -> dict[str, Licence]:
    """Return the licence class of each dataset: the strictest of its images, given as (dataset, licence class)."""
    classes: dict[str, Licence] = {}
    for dataset, found in images:
        classes[dataset] = max(classes.get(dataset, found), found, key=STRICTEST_LAST.index)
    return classes


@dataclass(frozen=True, slots=True)
class LicenceText:
    """A licence by its SPDX id, the address of its legal text, and a summary in our own words."""

    spdx: Annotated[str, Field(pattern=r"^[A-Za-z0-9.+-]{1,80}$")]
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


CC0 = LicenceText(
    "CC0-1.0",
    "Creative Commons Zero 1.0 Universal",
    "https://creativecommons.org/publicdomain/zero/1.0/legalcode",
    "The authors have waived their rights in it to the extent that the law allows: use it as you like.\n"
    "It comes without any warranty.",
)

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
_CREDIT = (
    "You may copy, change and pass on the covered material, as long as you give credit and state your changes"
)
_KNOWN = (
    CC0,
    CC_BY,
    ODC_BY,
    LicenceText(
        "CC-BY-SA-4.0",
        "Creative Commons Attribution-ShareAlike 4.0 International",
        "https://creativecommons.org/licenses/by-sa/4.0/legalcode",
        f"{_CREDIT}. What you make from it\nhas to come under the same licence. It comes without any warranty.",
    ),
    LicenceText(
        "CC-BY-NC-4.0",
        "Creative Commons Attribution-NonCommercial 4.0 International",
        "https://creativecommons.org/licenses/by-nc/4.0/legalcode",
        f"{_CREDIT}, and not for\ncommercial purposes. It comes without any warranty.",
    ),
    LicenceText(
        "CC-BY-NC-SA-4.0",
        "Creative Commons Attribution-NonCommercial-ShareAlike 4.0 International",
        "https://creativecommons.org/licenses/by-nc-sa/4.0/legalcode",
        f"{_CREDIT}, and not for\ncommercial purposes. What you make from it has to come under the same licence. "
        "No warranty.",
    ),
    LicenceText(
        "PDDL-1.0",
        "Open Data Commons Public Domain Dedication and License v1.0",
        "https://opendatacommons.org/licenses/pddl/1-0/",
        "The authors have waived their rights in it to the extent that the law allows: use it as you like.",
    ),
    LicenceText(
        "ODbL-1.0",
        "Open Data Commons Open Database License v1.0",
        "https://opendatacommons.org/licenses/odbl/1-0/",
        "You may use, change and pass on the database as long as you say where it comes from, and pass on what you\n"
        "make from it under the same licence. It comes without any warranty.",
    ),
    LicenceText(
        "MIT",
        "MIT License",
        "https://opensource.org/license/mit",
        "You may use, change and pass on the covered material as long as the notice of its owner stays with it.\n"
        "It comes without any warranty.",
    ),
    LicenceText(
        "Apache-2.0",
        "Apache License 2.0",
        "https://www.apache.org/licenses/LICENSE-2.0",
        "You may use, change and pass on the covered material as long as its notices stay with it and changes are\n"
        "marked. "
        "It comes without any warranty.",
    ),
    LicenceText(
        "BSD-3-Clause",
        "BSD 3-Clause License",
        "https://opensource.org/license/bsd-3-clause",
        "You may use, change and pass on the covered material as long as its notice stays with it; its owner's name\n"
        "may not be used to advertise what you make. It comes without any warranty.",
    ),
)
KNOWN = {licence.spdx: licence for licence in _KNOWN}
"""Licences that can be named by their SPDX id."""

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
    "You may use, copy, change and pass on the atlas without fee as long as its copyright notice goes along.\n"
    "It comes without any warranty.",
)

_TERMS = TypeAdapter(dict[str, LicenceText])


def as_json(terms: Mapping[str, LicenceText]) -> dict[str, dict[str, str]]:
    """Return the licences of datasets as run.json contains them."""
    return {dataset: asdict(licence) for dataset, licence in sorted(terms.items())}


def from_json(recorded: object) -> dict[str, LicenceText]:
    """Return the inverse of `as_json`. Raises pydantic's ValidationError for anything else."""
    return _TERMS.validate_python(recorded)
