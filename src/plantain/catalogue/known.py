"""An image that the catalogue already has: described the same, described more fully, or in conflict."""

from __future__ import annotations

import shlex
from dataclasses import replace
from enum import Enum

from plantain.catalogue.quarantine import held_one, redescribe
from plantain.catalogue.store import Catalogue
from plantain.records import SourceImage
from plantain.sources.entries import Refused
from plantain.sources.label_table import NO_LABEL


class Fate(Enum):
    """What became of an ingested image."""

    ADDED, HELD, UNCHANGED, LABELLED, REGROUPED = range(5)


def compare(name: str, image: SourceImage, catalogue: Catalogue, there_id: str, mode: str) -> Fate | Refused:
    """Compare an image with its record in the catalogue, and update the record.

    Labels, permission and a mark as synthetic are added if they came later. A group or split that is given now replaces
    another; one that is given no more is kept. Labels that contradict each other are refused.

    Args:
        name: of the file in messages.
        image: as the source describes it now.
        there_id: of the image made of the same bytes, in the catalogue or its quarantine.
        mode: how this ingest prepares images.
    """
    waiting = held_one(catalogue, there_id)
    there = waiting.image if waiting is not None else catalogue.get(there_id)
    same = (there.id, there.dataset) == (image.id, image.dataset)
    if not same or there.labels not in ((), image.labels):
        return Refused(name, _difference(there, image))
    if there.geometry.mode != mode:
        return Refused(name, f"is there already, prepared with {there.geometry.mode}; choose another --to")
    if there.licence != image.licence:
        return Refused(name, f"is there already with licence {there.licence}; choose another --to")
    own = there.group if waiting is not None else catalogue.own_group(there)
    group, split = image.group or own, image.split or there.split
    moved, labelled = (group, split) != (own, there.split), image.labels != there.labels
    fuller = replace(there, labels=image.labels, group=group, split=split) if moved or labelled else there
    notes = [note for note in there.note.split("; ") if note and not (labelled and note == NO_LABEL)]
    if image.synthetic and not there.synthetic:
        notes += filter(None, image.note.split("; "))
        fuller = replace(fuller, synthetic=True)
    fuller = replace(fuller, note="; ".join(dict.fromkeys(notes)))
    if waiting is None and image.consent is not None:
        fuller = replace(fuller, consent=image.consent)
    if fuller != there:
        catalogue.flush()
        with catalogue.transaction():
            if waiting is not None:
                redescribe(catalogue, fuller)
            elif moved or labelled:
                catalogue.relabel(there, fuller)
            else:
                catalogue.replace(there, fuller)
    return Fate.LABELLED if labelled else Fate.REGROUPED if moved else Fate.UNCHANGED


def _difference(there: SourceImage, image: SourceImage) -> str:
    """Return how the catalogue's record differs from the source's."""
    labels = ", ".join(there.labels) or "no label"
    if (there.id, there.dataset) == (image.id, image.dataset):
        return f"is there already, labelled {labels}; choose another --to"
    why = f"the same picture as {there.id} ({labels}) of {there.dataset}"
    if (there.id, there.labels) == (image.id, image.labels):
        why += f"; if its folder was renamed, say --dataset {shlex.quote(there.dataset)}"
    return why
