"""Licences that the owner of source images names for the edits of them, instead of the one that we would choose."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from plantain.privacy.licence_texts import CC0, CC_BY, ODC_BY, LicenceText
from plantain.records import InputError, Licence
from plantain.records.suggestions import nearest

LARGEST_TEXT = 200_000
"""Bytes of a licence file: run.json contains it too, so that an import knows it."""

_GIVEN = (Licence.OPEN, Licence.ATTRIBUTION)
"""Classes whose edits can be put under a licence of one's choice."""

_ADDRESS = re.compile(r"https?://[^\s]+")

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


def named_terms(named: Sequence[str], classes: Mapping[str, Licence]) -> dict[str, LicenceText]:
    """Return the licence of each dataset for which one was named.

    Args:
        named: each "LICENCE", for every source that is open or only asks for attribution, or "DATASET=LICENCE", for
            one of them; LICENCE is an SPDX id, a web address, or a file with the terms. A dataset that is not among
            `classes` is left out; see `unused`.
        classes: licence class of each dataset.

    Raises:
        InputError: no such licence, or a dataset whose edits need its own licence.
    """
    terms: dict[str, LicenceText] = {}
    own: dict[str, LicenceText] = {}
    for text in named:
        dataset, _, rest = text.partition("=")
        if dataset in classes:
            own[dataset] = _licence(rest, text)
            if classes[dataset] not in _GIVEN:
                raise InputError(
                    f"--licence {text}: images of {dataset} are of class {classes[dataset]}; only edits of images "
                    "that are open, or ask for attribution alone, can be put under a licence of your choice"
                )
            continue
        if text in unused(named, classes):
            _licence(rest, text)
            continue
        terms = {name: _licence(text, text) for name, allowed in classes.items() if allowed in _GIVEN}
        if not terms:
            sources = ", ".join(f"{name} ({allowed})" for name, allowed in sorted(classes.items()))
            raise InputError(f"--licence {text}: no source is open or asks for attribution, only: {sources}")
    return terms | own


def unused(named: Sequence[str], classes: Mapping[str, Licence]) -> list[str]:
    """Return each DATASET=LICENCE of a dataset that is not among `classes`."""
    return [
        text
        for text in named
        if (parts := text.partition("="))[1]
        and parts[0] not in classes
        and not _ADDRESS.fullmatch(text)
        and not Path(text).is_file()
    ]


def named_original_terms(named: Sequence[str], classes: Mapping[str, Licence]) -> dict[str, LicenceText]:
    """Return the licence under which the owner publishes each dataset for which one was named.

    Args:
        named: each "DATASET=LICENCE", LICENCE as for `named_terms`.
        classes: licence class of each dataset.

    Raises:
        InputError: no such licence or dataset, or one whose originals are not passed on anyway.
    """
    terms = {}
    for text in named:
        dataset, _, rest = text.partition("=")
        if text in unused(named, classes):
            _licence(rest, text, "--original-licence")
            continue
        if classes.get(dataset) not in _GIVEN:
            sources = ", ".join(f"{name} ({allowed})" for name, allowed in sorted(classes.items()))
            raise InputError(
                f"--original-licence {text}: expected DATASET=TERMS for a source that is open or asks for attribution "
                f"alone; this run has {sources}"
            )
        terms[dataset] = _licence(rest, text, "--original-licence")
    return terms


def as_json(terms: Mapping[str, LicenceText]) -> dict[str, dict[str, str]]:
    """Return the terms as run.json contains them."""
    return {dataset: asdict(licence) for dataset, licence in sorted(terms.items())}


def from_json(recorded: object) -> dict[str, LicenceText]:
    """Return the inverse of `as_json`. Raises TypeError for anything else."""
    if not isinstance(recorded, Mapping):
        raise TypeError("terms: expected an object")
    return {str(dataset): LicenceText(**_strings(fields)) for dataset, fields in recorded.items()}


def _strings(fields: object) -> dict[str, str]:
    if not isinstance(fields, Mapping) or not all(isinstance(value, str) for value in fields.values()):
        raise TypeError("terms: expected texts")
    if not re.fullmatch(r"[A-Za-z0-9.+-]{1,80}", str(fields.get("spdx", ""))):
        raise TypeError("terms: expected an SPDX id")
    return {str(name): value for name, value in fields.items()}


def _licence(named: str, given: str, option: str = "--licence") -> LicenceText:
    if named in KNOWN:
        return KNOWN[named]
    if _ADDRESS.fullmatch(named):
        meaning = "The owner of the source images names the terms at this address for these images."
        return LicenceText(
            _reference(named, named), "Terms that the owner of the images names", named, meaning
        )
    path = Path(named)
    if named and path.is_file():
        return _from_file(path, option)
    near = nearest(named, KNOWN)
    hint = f"did you mean {near}? " if near else ""
    raise InputError(
        f"{option} {given}: {hint}it takes an SPDX id ({', '.join(KNOWN)}), a web address, or a file with the terms; "
        "DATASET= in front of it means one source only"
    )


def _from_file(path: Path, option: str) -> LicenceText:
    try:
        data = path.read_bytes()
        text = data.decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{option} {path}: not a readable text file in UTF-8: {error}") from error
    if not text or len(data) > LARGEST_TEXT:
        raise InputError(f"{option} {path}: empty, or longer than {LARGEST_TEXT:,} bytes")
    return LicenceText(_reference(path.stem, text), "Terms that the owner of the images names", "", text)


def _reference(name: str, text: str) -> str:
    """Return an id for terms that have none of their own, by their text."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name.removeprefix("https://").removeprefix("http://")).strip("-")
    return f"LicenseRef-{plain[:40] or 'owner'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
