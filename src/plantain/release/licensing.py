"""Checks before anything is written that a run may be released as asked."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import orjson

from plantain.journal import JournalReader
from plantain.journal.questions.tasks import licences_of_closed
from plantain.privacy.licence_terms import KNOWN, from_json, named_original_terms, named_terms, unused
from plantain.privacy.licence_texts import STRICTEST_LAST, UNKNOWN, LicenceText, is_ours_to_choose
from plantain.records import InputError, Licence
from plantain.release.plan import IMPORTED, ExportOptions


def released_terms(reader: JournalReader, options: ExportOptions) -> Mapping[str, LicenceText]:
    """Return the licences that the images' owner named, by dataset.

    Raises:
        InputError: no task is closed, a source is credentialed and no agreement was named, or a licence was named that
            cannot be given.
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
    recorded = reader.meta(IMPORTED)
    if recorded is None:
        return named_terms(options.licences, classes)
    if options.licences:
        raise InputError(
            f"--licence {options.licences[0]}: {reader.run} was imported; its images keep the licence they came under"
        )
    terms = orjson.loads(recorded).get("terms", {})
    return dict.fromkeys(classes, UNKNOWN) if terms is None else from_json(terms)


def original_terms(reader: JournalReader, options: ExportOptions) -> Mapping[str, LicenceText]:
    """Return the licences under which owners publish their images, by dataset, where one was named.

    Raises:
        InputError: a licence or a dataset that is not known, or one whose originals cannot be passed on.
    """
    recorded = reader.meta(IMPORTED)
    if recorded is None:
        return named_original_terms(options.original_licences, _classes(reader))
    if options.original_licences:
        raise InputError(
            f"--original-licence {options.original_licences[0]}: {reader.run} was imported; its originals keep the "
            "licence they came under"
        )
    return from_json(orjson.loads(recorded).get("original_terms", {}))


def licences_unused(reader: JournalReader, options: ExportOptions) -> tuple[str, ...]:
    """Return a remark on each licence that was named for a source that is not in the run."""
    classes = _classes(reader)
    named = unused([*options.licences, *options.original_licences], classes)
    sources = ", ".join(classes)
    return tuple(f"licence {text}: not used, the run has no such source; it has {sources}" for text in named)


def refuse_unnamed(reader: JournalReader, options: ExportOptions) -> None:
    """Raise InputError for edits without a chosen licence; an imported run keeps the licences that it has.

    Raises:
        InputError: names the datasets and the option; also as `released_terms`.
    """
    terms = released_terms(reader, options)
    if reader.meta(IMPORTED) is not None:
        return
    missing = [name for name, allowed in _classes(reader).items() if is_ours_to_choose(name, allowed, terms)]
    if missing:
        asked = " ".join(f"--licence {shlex.quote(f'{name}=TERMS')}" for name in missing)
        raise InputError(
            f"{reader.run}: the licence of the edits of {', '.join(missing)} is missing: pass --licence TERMS for all, "
            f"or {asked}; TERMS is an SPDX id ({', '.join(KNOWN)}), a web address, or a file with the terms"
        )


def _classes(reader: JournalReader) -> dict[str, Licence]:
    """Return the licence class of each dataset: the strictest of its images."""
    classes: dict[str, Licence] = {}
    for dataset, found in licences_of_closed(reader):
        classes[dataset] = max(classes.get(dataset, found), found, key=STRICTEST_LAST.index)
    return dict(sorted(classes.items()))
