"""A picture that the catalogue holds already: described as before, described more fully, or at odds with it."""

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

    UNCHANGED, LABELLED = range(2)


def compare(name: str, image: SourceImage, catalogue: Catalogue, there_id: str, mode: str) -> Again | Refused:
    """Compares a picture with what the catalogue says of it; labels and permission that came later are added.

    Nothing else of an image that is there ever changes: where labels contradict each other, the person decides.

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
    fuller = there
    if image.labels != there.labels:
        note = "; ".join(said for said in there.note.split("; ") if said not in ("", NO_LABEL))
        fuller = replace(there, labels=image.labels, group=image.group, split=image.split, note=note)
    if waiting is None and image.consent is not None:
        fuller = replace(fuller, consent=image.consent)
    if fuller != there:
        catalogue.flush()
        with catalogue.transaction():
            if waiting is not None:
                redescribe(catalogue, fuller)
            elif fuller.labels == there.labels:
                catalogue.replace(there, fuller)
            else:
                catalogue.relabel(there, fuller)
    return Again.UNCHANGED if fuller.labels == there.labels else Again.LABELLED


def _odds(there: SourceImage, image: SourceImage) -> str:
    """In what the catalogue's record of a picture differs from the source's."""
    labels = ", ".join(there.labels) or "no label"
    if (there.id, there.dataset) == (image.id, image.dataset):
        return f"is there already, labelled {labels}; choose another --out"
    why = f"the same picture as {there.id} ({labels}) of {there.dataset}"
    if (there.id, there.labels) == (image.id, image.labels):
        why += f"; if its folder was renamed, say --dataset {shlex.quote(there.dataset)}"
    return why
