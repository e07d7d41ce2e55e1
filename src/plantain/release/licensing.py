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
from pathlib import Path
from typing import Any

import orjson

from plantain.journal import BlobRef, JournalReader
from plantain.journal.questions.release import stored_image_rows
from plantain.journal.questions.tasks import licences_of_closed
from plantain.privacy.licences import KNOWN, UNKNOWN, LicenceText, from_json, is_ours_to_choose, strictest
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import InputError, Licence, SourceImage
from plantain.records.messages import COMMANDS, nearest, typed_before
from plantain.release.plan import IMPORTED, MEDIA, ExportOptions

LARGEST_TEXT = 200_000
"""Bytes of a licence file: run.json contains it too, so that an import knows it."""

_ADDRESS = re.compile(r"https?://[^\s]+")

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
        return named_terms(options.licences, classes, _how_to_state(reader))
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


def _how_to_state(reader: JournalReader) -> str:
    """Return the commands that state the licence of images whose licence is unknown."""
    recorded = reader.meta(COMMANDS)
    if reader.meta(IMPORTED) is not None:
        again = typed_before(recorded, reader.run.with_name(f"{reader.run.name}-open"), "import")
        return f"import them again: {again[0] if again else 'plantain import ...'} --set licence=open"
    build = typed_before(recorded, reader.run, "build", "demo")[:1] or ["build"]
    return f"repeat your plantain ingest with --licence open, then {build[0]}, then this export"


def licence_remarks(reader: JournalReader, options: ExportOptions) -> tuple[str, ...]:
    """Return remarks on named licences whose source is not in the run, and on originals of unknown licence."""
    classes = _classes(reader)
    unknown = ", ".join(name for name in classes if classes[name] is Licence.UNKNOWN)
    omitted = (
        f"originals of {unknown} are left out, and with them the table of training pairs: their licence is unknown; "
        f"if they are open: {_how_to_state(reader)}"
    )
    sources = ", ".join(classes)
    return (
        *(
            f"licence {text}: not used, the run has no such source; it has {sources}"
            for text in options.licences
            if _is_of_another_source(text, classes)
        ),
        *([omitted] if unknown and options.originals == "auto" and _release_facts(reader) is None else []),
    )


def refuse_unnamed(reader: JournalReader, options: ExportOptions) -> None:
    """Check that all edits have a licence, named or decided by their source; an imported release keeps its licences.

    Raises:
        InputError: some have none; the message names datasets and option. Also as `released_terms`.
    """
    terms = released_terms(reader, options)
    if _release_facts(reader) is not None:
        return
    missing = [name for name, allowed in _classes(reader).items() if is_ours_to_choose(name, allowed, terms)]
    if missing:
        asked = " ".join(f"--licence {shlex.quote(f'{name}=TERMS')}" for name in missing)
        raise InputError(
            f"{reader.run}: the licence of the edits of {', '.join(missing)} is missing: pass --licence TERMS for all, "
            f"or {asked}; TERMS is an SPDX id ({', '.join(KNOWN)}), a web address, or a file with the terms"
        )


def _classes(reader: JournalReader) -> dict[str, Licence]:
    """Return the licence class of each dataset with a closed task."""
    return dict(sorted(strictest(licences_of_closed(reader)).items()))


def named_terms(
    named: Sequence[str], classes: Mapping[str, Licence], remedy: str = "ingest with --licence open"
) -> Terms:
    """Parse the named licences into dataset -> licence.

    Args:
        named: each "DATASET=LICENCE", or "LICENCE" for every source that is open or only requires
            attribution; LICENCE is an SPDX id, a web address, or a file with the terms. Datasets that are not among
            `classes` are ignored.
        classes: licence class of each dataset.
        remedy: the commands that state an unknown licence.

    Raises:
        InputError: a licence is unknown, or a dataset requires a licence by its name.
    """
    terms: dict[str, LicenceText] = {}
    own: dict[str, LicenceText] = {}
    free = [name for name, allowed in classes.items() if allowed in FREE_TO_LEAVE]
    for text in named:
        dataset, _, rest = text.partition("=")
        if dataset in classes or _is_of_another_source(text, classes):
            licence = _licence(rest, text)
            if dataset in free:
                own[dataset] = licence
            elif dataset in classes:
                raise InputError(
                    f"--licence {text}: images of {dataset} are of class {classes[dataset]}; only images that are "
                    "open, or ask for attribution alone, can be put under a licence of your choice"
                    + (f"; if they are: {remedy}" if classes[dataset] is Licence.UNKNOWN else "")
                )
        elif free:
            terms = dict.fromkeys(free, _licence(text, text))
        elif Licence.UNKNOWN in classes.values():
            unknown = ", ".join(sorted(name for name in classes if classes[name] is Licence.UNKNOWN))
            raise InputError(
                f"--licence {text}: the licence of the images of {unknown} is unknown, so their edits cannot be "
                f"licensed: leave the option out, or if the images are open: {remedy}"
            )
        else:
            sources = ", ".join(f"{name} ({allowed})" for name, allowed in sorted(classes.items()))
            raise InputError(
                f"--licence {text}: expected DATASET=TERMS with an open or attribution dataset; this run has {sources}"
            )
    return terms | own


def _is_of_another_source(text: str, classes: Mapping[str, Licence]) -> bool:
    """Return True for DATASET=LICENCE of a dataset that is not among `classes`."""
    dataset, equals, _ = text.partition("=")
    return (
        bool(equals) and dataset not in classes and not _ADDRESS.fullmatch(text) and not Path(text).is_file()
    )


def _licence(named: str, given: str) -> LicenceText:
    if named in KNOWN:
        return KNOWN[named]
    if _ADDRESS.fullmatch(named):
        meaning = "The owner of the source images names the terms at this address for these images."
        return LicenceText(
            _reference(named, named), "Terms that the owner of the images names", named, meaning
        )
    path = Path(named)
    if named and path.is_file():
        return _from_file(path)
    near = nearest(named, KNOWN)
    hint = f"did you mean {near}? " if near else ""
    raise InputError(
        f"--licence {given}: {hint}it takes an SPDX id ({', '.join(KNOWN)}), a web address, or a file with the terms; "
        "DATASET= in front of it means one source only"
    )


def _from_file(path: Path) -> LicenceText:
    try:
        data = path.read_bytes()
        text = data.decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--licence {path}: not a readable text file in UTF-8: {error}") from error
    if not text or len(data) > LARGEST_TEXT:
        raise InputError(f"--licence {path}: empty, or longer than {LARGEST_TEXT:,} bytes")
    return LicenceText(_reference(path.stem, text), "Terms that the owner of the images names", "", text)


def _reference(name: str, text: str) -> str:
    """Return an id for terms that have none of their own, by their text."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name.removeprefix("https://").removeprefix("http://")).strip("-")
    return f"LicenseRef-{plain[:40] or 'owner'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


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
            if media_type in MEDIA and reader.has_blob(sha256):
                size = reader.blob_path(sha256).stat().st_size
                carried[sha256] = BlobRef(sha256, size, media_type)
    counts: dict[str, Counter[str]] = {}
    for image in released:
        held = "carried" if image.prepared_sha256 in carried else "left_out"
        counts.setdefault(image.dataset, Counter(carried=0, left_out=0))[held] += 1
    return Originals(carried, barred, {name: dict(counts[name]) for name in sorted(counts)})
