"""Licences that the owner of source images names for a release, and the content that they allow.

Originals are decided source by source: one that may not be passed on is never released.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from plantain.journal import BlobRef, JournalReader
from plantain.journal.questions.release import stored_image_rows
from plantain.journal.questions.tasks import licences_of_closed
from plantain.privacy.licences import KNOWN, UNKNOWN, LicenceText, from_json, is_ours_to_choose, strictest
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import InputError, Licence, SourceImage
from plantain.records.messages import nearest
from plantain.release.plan import IMPORTED, ExportOptions

_ADDRESS = re.compile(r"https?://[^\s]+")

_STATE = (
    "repeat your plantain ingest with --licence open, and the build; or, of a table of edits, import them again with "
    "--set licence=open"
)
"""How to state the licence of images whose licence is unknown."""

Terms = Mapping[str, LicenceText]
"""Licences by dataset."""


def released_terms(reader: JournalReader, options: ExportOptions) -> Terms:
    """Return dataset -> licence of its edits, as named by the owners of its images.

    Raises:
        InputError: no task is closed, a source is credentialed and no agreement was named, or a named licence is not
            allowed for its dataset.
    """
    classes = _classes(reader)
    if not classes:
        raise InputError(f"{reader.run}: no task is closed yet, so there is nothing to release")
    restricted = sorted(name for name, allowed in classes.items() if allowed is Licence.CREDENTIALED)
    if restricted and not options.redistribution_approved.strip():
        raise InputError(
            f"images of {', '.join(restricted)} are credentialed: their edits may not be "
            "redistributed; name the agreement that allows it with --redistribution-approved REFERENCE"
        )
    facts = _release_facts(reader)
    if facts is None:
        return named_terms(options.licences, classes)
    if options.licences:
        raise InputError(
            f"--licence {options.licences[0]}: {reader.run} was imported from a release; its images keep the licence "
            "they came under: leave out --licence"
        )
    terms = facts.get("terms", {})
    return dict.fromkeys(classes, UNKNOWN) if terms is None else from_json(terms)


def _release_facts(reader: JournalReader) -> dict[str, Any] | None:
    """Return the facts of a run imported from a release; None for a build or an imported table of edits."""
    facts: dict[str, Any] | None = orjson.loads(reader.meta(IMPORTED) or "null")
    return None if facts is None or facts.get("kind") == "pairs" else facts


def check_licences(reader: JournalReader, options: ExportOptions) -> tuple[str, ...]:
    """Check that all edits have a licence, named or decided by their source; an imported release keeps its licences.

    Returns:
        Remarks on named licences whose source is not in the run, and on originals of unknown licence.

    Raises:
        InputError: some have none; the message names datasets and option. Also as `released_terms`.
    """
    terms = released_terms(reader, options)
    if _release_facts(reader) is not None:
        return ()
    classes = _classes(reader)
    missing = [name for name, allowed in classes.items() if is_ours_to_choose(name, allowed, terms)]
    if missing:
        asked = " ".join(f"--licence {shlex.quote(f'{name}=TERMS')}" for name in missing)
        raise InputError(
            f"{reader.run}: the licence of the edits of {', '.join(missing)} is missing: pass --licence TERMS for all, "
            f"or {asked}; TERMS is an SPDX id ({', '.join(KNOWN)}) or a web address"
        )
    remarks = [
        f"licence {text}: not used, the run has no such source; it has {', '.join(classes)}"
        for text in options.licences
        if (dataset := _dataset(text)) and dataset not in classes
    ]
    unknown = ", ".join(name for name in classes if classes[name] is Licence.UNKNOWN)
    if unknown and options.originals == "auto":
        remarks.append(
            f"originals of {unknown} are left out, and with them the table of training pairs: their licence is "
            f"unknown; if they are open: {_STATE}"
        )
    return tuple(remarks)


def _classes(reader: JournalReader) -> dict[str, Licence]:
    """Return the licence class of each dataset with a closed task."""
    return dict(sorted(strictest(licences_of_closed(reader)).items()))


def named_terms(named: Sequence[str], classes: Mapping[str, Licence]) -> Terms:
    """Parse the named licences into dataset -> licence.

    Args:
        named: each "DATASET=LICENCE", or "LICENCE" for every source that is open or only requires
            attribution; LICENCE is an SPDX id or a web address. Datasets that are not among `classes` are ignored.
        classes: licence class of each dataset.

    Raises:
        InputError: a licence is unknown, or may not be named for its dataset.
    """
    terms: dict[str, LicenceText] = {}
    own: dict[str, LicenceText] = {}
    free = [name for name, allowed in classes.items() if allowed in FREE_TO_LEAVE]
    for text in named:
        dataset = _dataset(text)
        licence = _licence(text.removeprefix(f"{dataset}=") if dataset else text, text)
        if dataset in free:
            own[dataset] = licence
        elif dataset in classes:
            raise InputError(
                f"--licence {text}: images of {dataset} are of class {classes[dataset]}; only images that are "
                "open, or ask for attribution alone, can be put under a licence of your choice"
                + (f"; if they are: {_STATE}" if classes[dataset] is Licence.UNKNOWN else "")
            )
        elif not dataset and free:
            terms = dict.fromkeys(free, licence)
        elif not dataset:
            sources = ", ".join(f"{name} ({allowed})" for name, allowed in sorted(classes.items()))
            raise InputError(
                f"--licence {text}: no source of this run is open or asks for attribution alone: {sources}; leave the "
                f"option out" + (f", or if they are: {_STATE}" if Licence.UNKNOWN in classes.values() else "")
            )
    return terms | own


def _dataset(text: str) -> str:
    """Return the dataset of "DATASET=LICENCE"; "" for a licence alone."""
    return "" if _ADDRESS.fullmatch(text) or "=" not in text else text.partition("=")[0]


def _licence(named: str, given: str) -> LicenceText:
    if named in KNOWN:
        return KNOWN[named]
    if _ADDRESS.fullmatch(named):
        plain = re.sub(r"[^A-Za-z0-9]+", "-", named.partition("://")[2]).strip("-")
        id = f"LicenseRef-{plain[:40] or 'owner'}-{hashlib.sha256(named.encode()).hexdigest()[:8]}"
        return LicenceText(id, "Terms that the owner of the source images names for these images", named)
    near = nearest(named, KNOWN)
    hint = f"did you mean {near}? " if near else ""
    raise InputError(
        f"--licence {given}: {hint}it takes an SPDX id ({', '.join(KNOWN)}) or a web address; DATASET= in front of it "
        "means one source only"
    )


_ASKED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Originals:
    """The originals of a release: which are included and which must not be.

    Attributes:
        carried: included originals by hash.
        barred: hashes of originals that must not be released under any name.
        counts: by dataset, numbers of images that are released with and without their original.
    """

    carried: Mapping[str, BlobRef]
    barred: frozenset[str]
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def decide_originals(reader: JournalReader, released: Collection[SourceImage], mode: str) -> Originals:
    """Decide which originals of closed tasks may be released.

    A dataset is as strict as the strictest of its images, and an image that is also the original of a restricted one
    is never released. The source image of a later turn is an edit, not an original.

    Args:
        released: images of closed tasks.
        mode: "auto" or "none", as in `ExportOptions`.
    """
    classes = strictest((image.dataset, image.licence) for image in reader.images())
    barred = frozenset(
        image.prepared_sha256
        for image in reader.images()
        if classes[image.dataset] not in FREE_TO_LEAVE and image.prepared_sha256 and not image.parent
    )
    released = [image for image in released if not image.parent]
    wanted = {image.prepared_sha256 for image in released} - barred - {""} if mode == "auto" else set()
    carried = {}
    ordered = sorted(wanted)
    for first in range(0, len(ordered), _ASKED_AT_ONCE):
        for sha256, _, media_type, _ in stored_image_rows(reader, ordered[first : first + _ASKED_AT_ONCE]):
            if reader.has_blob(sha256):
                size = reader.blob_path(sha256).stat().st_size
                carried[sha256] = BlobRef(sha256, size, media_type)
    counts: dict[str, Counter[str]] = {}
    for image in released:
        held = "carried" if image.prepared_sha256 in carried else "left_out"
        counts.setdefault(image.dataset, Counter(carried=0, left_out=0))[held] += 1
    return Originals(carried, barred, {name: dict(counts[name]) for name in sorted(counts)})
