"""Whether a picture may go to an address: decided over plain records, for the pictures that it was made from."""

from __future__ import annotations

from collections.abc import Collection

from plantain.records import Consent, Destination, Licence, NotAllowed, Reach, SourceImage

FREE_TO_LEAVE = frozenset({Licence.OPEN, Licence.ATTRIBUTION})


def agreement(image: SourceImage, given: Consent | None) -> str | None:
    """Under which agreement a source may be sent to a hosted model; None where nobody has allowed it.

    Args:
        image: the source as the run recorded it.
        given: the owners' permission for the whole run, where one was stated.
    """
    if image.licence in FREE_TO_LEAVE:
        return f"licence {image.licence}"
    consent = image.consent or given
    return None if consent is None else f"{consent.agreement} ({consent.by})"


def agreements(sources: Collection[SourceImage], given: Consent | None, to: Destination) -> dict[str, str]:
    """Image id -> agreement, for every source of one picture: the strictest of them decides.

    Raises:
        NotAllowed: a source was not let go, or nobody knows what the picture was made from.
    """
    if to.reach is not Reach.HOSTED:
        return dict.fromkeys((image.id for image in sources), f"declared {to.reach}") or {
            "": f"declared {to.reach}"
        }
    if not sources:
        raise NotAllowed(
            "a picture of unknown origin was held back: only what the run knows, or made itself, may be sent"
        )
    found: dict[str, str] = {}
    for image in sources:
        allowed = agreement(image, given)
        if allowed is None:
            raise NotAllowed(f"{named(image)} {why_not(image)}")
        found[image.id] = allowed
    return found


def named(image: SourceImage) -> str:
    """A source for a message. Errors end in logs that are passed around: a credentialed id is not for them."""
    if image.licence is Licence.CREDENTIALED:
        return f"an image of {image.dataset}"
    return f"image {image.id!r} of {image.dataset}"


def why_not(image: SourceImage) -> str:
    """Why a source is not free to leave."""
    return "is credentialed" if image.licence is Licence.CREDENTIALED else "has no known licence"
