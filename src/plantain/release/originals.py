"""Decides, source by source, which originals a release contains: never one that may not be passed on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from plantain.journal import BlobRef, JournalReader
from plantain.journal.questions.release import stored_image_rows
from plantain.privacy.licences import strictest
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import SourceImage

FOLDER = "originals"
INDEX = f"{FOLDER}/{FOLDER}.jsonl"
"""A line for every image of the folder: its path, its hash, and the source images that it is the original of."""

MEDIA = {"image/jpeg": "jpeg", "image/png": "png"}
"""Media types of prepared images, and the endings of their names."""

_ASKED_AT_ONCE = 500


_PNG = b"\x89PNG\r\n\x1a\n"


def media_type_of(data: bytes) -> str:
    """Return the media type of a prepared image, by its first bytes."""
    return "image/png" if data.startswith(_PNG) else "image/jpeg"


@dataclass(frozen=True, slots=True)
class Originals:
    """The originals of a release.

    Attributes:
        carried: by hash, each once, however many images and tasks have it.
        barred: hashes of originals that must not leave, under any name.
        counts: by dataset: how many of its images are released with their original, and how many without.
    """

    carried: Mapping[str, BlobRef]
    barred: frozenset[str]
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def decide_originals(reader: JournalReader, released: Collection[SourceImage], mode: str) -> Originals:
    """Decide for the images of closed tasks.

    A dataset is as strict as the strictest of its images, and an image that is also the original of a restricted one
    is never released.

    Args:
        released: images of closed tasks.
        mode: "auto" or "none", as in `ExportOptions`.
    """
    classes = strictest((image.dataset, image.licence) for image in reader.images())
    barred = frozenset(
        image.prepared_sha256
        for image in reader.images()
        if classes[image.dataset] not in FREE_TO_LEAVE and image.prepared_sha256
    )
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
