"""A picture that the catalogue already holds: described the same, described more fully, or in conflict."""

from __future__ import annotations

import shlex
from dataclasses import replace
from enum import Enum

from plantain.catalogue.quarantine import held_one, redescribe
from plantain.catalogue.store import Catalogue
from plantain.records import SourceImage
from plantain.sources.entries import Refused
from plantain.sources.label_table import NO_LABEL


class Again(Enum):
    """What became of a picture that was there."""

    UNCHANGED, LABELLED, REGROUPED = range(3)


def compare(name: str, image: SourceImage, catalogue: Catalogue, there_id: str, mode: str) -> Again | Refused:
    """Compares a picture with what the catalogue says of it, and brings that up to date.

    Labels, permission, and a mark that says synthetic, are added where they came later. A group or split that is told
    now takes the place of another: who corrects a patient means it. What is told no more is kept. Labels that
    contradict each other are for a person.

    Args:
        name: how messages name the file.
        image: as the source describes it now.
        there_id: the image of the catalogue, or of its quarantine, that was made of the same bytes.
        mode: how this ingest prepares images.
    """
    waiting = held_one(catalogue, there_id)
    there = waiting.image if waiting is not None else catalogue.get(there_id)
    same = (there.id, there.dataset) == (image.id, image.dataset)
    if not same or there.labels not in ((), image.labels):
        return Refused(name, _odds(there, image))
    if there.geometry.mode != mode:
        return Refused(name, f"is there already, prepared with {there.geometry.mode}; choose another --out")
    if there.licence != image.licence:
        return Refused(name, f"is there already with licence {there.licence}; choose another --out")
    own = there.group if waiting is not None else catalogue.own_group(there)
    group, split = image.group or own, image.split or there.split
    moved = (group, split) != (own, there.split)
    fuller = there
    if moved or image.labels != there.labels:
        fuller = replace(there, labels=image.labels, group=group, split=split)
    if image.labels != there.labels:
        fuller = replace(
            fuller, note="; ".join(note for note in there.note.split("; ") if note not in ("", NO_LABEL))
        )
    if image.synthetic and not there.synthetic:
        notes = dict.fromkeys(filter(None, (*fuller.note.split("; "), *image.note.split("; "))))
        fuller = replace(fuller, synthetic=True, note="; ".join(notes))
    if waiting is None and image.consent is not None:
        fuller = replace(fuller, consent=image.consent)
    if fuller != there:
        catalogue.flush()
        with catalogue.transaction():
            if waiting is not None:
                redescribe(catalogue, fuller)
            elif moved or fuller.labels != there.labels:
                catalogue.relabel(there, fuller)
            else:
                catalogue.replace(there, fuller)
    return Again.LABELLED if fuller.labels != there.labels else Again.REGROUPED if moved else Again.UNCHANGED


def _odds(there: SourceImage, image: SourceImage) -> str:
    """In what the catalogue's record of a picture differs from the source's."""
    labels = ", ".join(there.labels) or "no label"
    if (there.id, there.dataset) == (image.id, image.dataset):
        return f"is there already, labelled {labels}; choose another --out"
    why = f"the same picture as {there.id} ({labels}) of {there.dataset}"
    if (there.id, there.labels) == (image.id, image.labels):
        why += f"; if its folder was renamed, say --dataset {shlex.quote(there.dataset)}"
    return why
