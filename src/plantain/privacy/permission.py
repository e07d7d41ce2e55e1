"""Permission to send an image to an address, by the records of its source images, which derived images inherit."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from plantain.records import Consent, Destination, Licence, NotAllowed, Reach, SourceImage

FREE_TO_LEAVE = frozenset({Licence.OPEN, Licence.ATTRIBUTION})


def agreement(image: SourceImage, given: Consent | None) -> str | None:
    """Return the agreement under which a source image may be sent to a hosted model; None if it may not.

    Args:
        image: the source image as the run recorded it.
        given: the owners' permission for the whole run, if stated.
    """
    if image.licence in FREE_TO_LEAVE:
        return f"licence {image.licence}"
    consent = image.consent or given
    return None if consent is None else f"{consent.agreement} ({consent.by})"


def agreements(sources: Collection[SourceImage], given: Consent | None, to: Destination) -> dict[str, str]:
    """Return the agreement of every source image of an image to be sent, by id; each source needs one.

    Args:
        sources: records of the source images; empty if they are unknown.
        given: consent in the settings; None without one.
        to: where the image is sent; if that is not a hosted service, every image has the agreement "declared ...".

    Raises:
        NotAllowed: of a hosted service: a source has no agreement, or the sources of the image are unknown.
    """
    if to.reach is not Reach.HOSTED:
        return dict.fromkeys((image.id for image in sources), f"declared {to.reach}") or {
            "": f"declared {to.reach}"
        }
    if not sources:
        raise NotAllowed(
            "an image of unknown origin was not sent: only images of the run, and images made from them, may be sent"
        )
    found: dict[str, str] = {}
    for image in sources:
        allowed = agreement(image, given)
        if allowed is None:
            raise NotAllowed(f"{named(image)} {why_not(image)}")
        found[image.id] = allowed
    return found


def named(image: SourceImage) -> str:
    """Return a source image's name for messages, without its id if it is credentialed, since errors are shared."""
    if image.licence is Licence.CREDENTIALED:
        return f"an image of {image.dataset}"
    return f"image {image.id!r} of {image.dataset}"


def why_not(image: SourceImage) -> str:
    """Return why a source image needs an agreement: "is credentialed" or "has no known licence"."""
    return "is credentialed" if image.licence is Licence.CREDENTIALED else "has no known licence"


_SOURCES: dict[str, frozenset[str]] = {}
"""SHA-256 of a derived image -> those of its source images, in every run."""


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of an image's file, in hex."""
    return hashlib.sha256(data).hexdigest()


def made_from(data: bytes, *sources: bytes) -> bytes:
    """Record from which images an image was made (padded, annotated, joined), and return its bytes.

    Args:
        data: the new image's file.
        sources: files of the images that it shows.
    """
    made, origins = sha256_of(data), frozenset(map(sha256_of, sources))
    if made not in origins:
        _SOURCES[made] = _SOURCES.get(made, frozenset()) | origins
    return data


def sources_of(sha256: str) -> frozenset[str]:
    """Return the SHA-256 (hex) of each image from which this one was made; empty if none were recorded."""
    return _SOURCES.get(sha256, frozenset())
