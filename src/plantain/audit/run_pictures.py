"""The originals of a run as pictures for an audit."""

from __future__ import annotations

from pathlib import Path

from plantain.audit.pictures import TrialPicture
from plantain.journal import BlobStore, JournalReader
from plantain.records import InputError


def run_pictures(run: Path) -> list[TrialPicture]:
    """Every prepared original of a run that is real, in the order of their ids.

    Raises:
        InputError: not a run, or it holds no original yet.
    """
    with JournalReader.open(run) as reader:
        blobs = BlobStore(run / "blobs")
        pictures = [
            TrialPicture(image, blobs.read(image.prepared_sha256))
            for image in reader.images()
            if not image.synthetic
        ]
    if not pictures:
        raise InputError(f"{run}: this run holds no original images yet; build it first")
    return pictures
