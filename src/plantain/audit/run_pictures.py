"""The originals of a run, or the pictures of a catalogue, for an audit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from plantain.audit.pictures import TrialPicture
from plantain.catalogue.store import NAME as CATALOGUE
from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy
from plantain.journal import JournalReader
from plantain.records import InputError, SourceImage

MOST = 400
"""Pictures that are held in memory: more tell a judge from chance no better than an audit has time for."""


def run_pictures(run: Path, taxonomy: Taxonomy | None = None, most: int = MOST) -> list[TrialPicture]:
    """Prepared originals of a run that are real, in the order of their ids; see `catalogue_pictures`.

    Raises:
        InputError: not a run, or it holds no original yet.
    """
    with JournalReader.open(run) as reader:
        images = [image for image in reader.images() if reader.has_blob(image.prepared_sha256)]
        pictures = _pictures(images, taxonomy, most, lambda image: reader.read_blob(image.prepared_sha256))
    if not pictures:
        raise InputError(f"{run}: this run holds no original images yet; build it first")
    return pictures


def catalogue_pictures(
    folder: Path, taxonomy: Taxonomy | None = None, most: int = MOST
) -> list[TrialPicture]:
    """Pictures of a catalogue that are real, in the order of their ids.

    Of a modality that has pictures without a finding only those are taken: what is drawn is then all that there is.
    Above `most`, pictures are drawn by hash.

    Raises:
        InputError: no catalogue, or no real picture in it.
    """
    with Catalogue.open(folder) as catalogue:
        pictures = _pictures(catalogue.images(), taxonomy, most, catalogue.read)
    if not pictures:
        raise InputError(f"{folder}: this catalogue holds no real picture")
    return pictures


def is_catalogue(folder: Path) -> bool:
    """Whether a folder is a catalogue."""
    return (folder / CATALOGUE).is_file()


def _pictures(
    images: Iterable[SourceImage], taxonomy: Taxonomy | None, most: int, read: Callable[[SourceImage], bytes]
) -> list[TrialPicture]:
    normal = {f.name for f in taxonomy.findings if f.normal} if taxonomy is not None else set()
    real = [image for image in images if not image.synthetic]
    healthy = {image.modality for image in real if set(image.labels) & normal}
    kept = [image for image in real if image.modality not in healthy or set(image.labels) <= normal]
    kept.sort(key=lambda image: hashlib.sha256(image.id.encode()).digest())
    return [TrialPicture(image, read(image)) for image in sorted(kept[:most], key=lambda image: image.id)]
