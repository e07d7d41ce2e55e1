"""A source image, its licence and geometry, requests to withdraw it, and destinations to which it may be sent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Licence(StrEnum):
    """Terms of a source image. Only OPEN and ATTRIBUTION allow sending it to a hosted model without consent."""

    OPEN = "open"
    ATTRIBUTION = "attribution"
    CREDENTIALED = "credentialed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Geometry:
    """The crop and scale by which the prepared square was made from the original; invertible.

    Attributes:
        width, height: size of the original in pixels.
        mode: "pad": aspect kept, black border.
        left, top, inner_width, inner_height: the box of the resized original in the prepared image, in pixels.
    """

    width: int
    height: int
    mode: str
    left: int
    top: int
    inner_width: int
    inner_height: int


@dataclass(frozen=True, slots=True)
class Consent:
    """The owner's permission to send an image to a hosted model: `by` is the signatory, `agreement` the document."""

    by: str
    agreement: str


_TURN = re.compile(r"\+turn[0-9]-([0-9a-f]{20})-[0-9a-f]{8}$")
"""End of the id of an accepted edit that a further turn edits: turn, the task that made it, and its hash."""


def parent_of(image_id: str) -> str:
    """Return the id of the task that made an image as its accepted edit; "" for an image of a catalogue."""
    found = _TURN.search(image_id)
    return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class SourceImage:
    """The record of a prepared image of a catalogue.

    Attributes:
        id: the source's own image id, unique in its catalogue (e.g. "s50000230", "0_left").
        dataset, version: the dataset that it is from, and its version; "" if unknown.
        modality: "chest_xray", "brain_mri", "fundus", or a user's own.
        labels: names of findings present; the modality's normal class if none is; () if the source has no labels.
        licence: terms of its owner.
        group: patient or study whose images must stay in one split; None if the source has no such id.
        split: the source's own split; "" if it has none.
        source_sha256, prepared_sha256: hash (hex) of the source file, and of the prepared JPEG (benchmarks: PNG).
        frame: index of the frame or slice in the source file; 0 for the first or only one.
        geometry: how it was resized to the prepared size.
        view, projection, position, sequence, contrast, plane: e.g. "frontal", "PA", "erect", "T1", "none", "axial", and
            for the view of a brain slice "sella" or "without sella"; "unknown" if the source does not state it.
        laterality: "left" or "right", the eye that a fundus shows; "mirrored" if a slice or film is shown mirrored;
            "not recorded" if the patient's left is unknown, so that no instruction may name a side; else "unknown".
        spacing_mm: pixel spacing of the prepared image in millimetres; None if unknown.
        text_checked: True if it was checked for burned-in text.
        synthetic: True if the pixels are rendered or edited.
        consent: permission for hosted models; None if none is recorded.
        note: remark for readers, e.g. "population average", "not a healthy chest".
    """

    id: str
    dataset: str
    modality: str
    labels: tuple[str, ...]
    licence: Licence
    source_sha256: str
    prepared_sha256: str
    geometry: Geometry
    version: str = ""
    group: str | None = None
    split: str = ""
    frame: int = 0
    view: str = "unknown"
    projection: str = "unknown"
    position: str = "unknown"
    sequence: str = "unknown"
    contrast: str = "unknown"
    plane: str = "unknown"
    laterality: str = "unknown"
    spacing_mm: float | None = None
    text_checked: bool = False
    synthetic: bool = False
    consent: Consent | None = None
    note: str = ""

    @property
    def parent(self) -> str:
        """The id of the task whose accepted edit this image is; "" for an image of a catalogue."""
        return parent_of(self.id)

    @property
    def origin(self) -> str:
        """The id of the catalogue's image that it was made from, over all turns; its own id if it is not an edit."""
        return _TURN.sub("", self.id)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The names of groups (patients, studies) and of single images whose images must be removed."""

    groups: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """All names of groups and images."""
        return self.groups | self.images

    def marks(self) -> dict[str, str]:
        """Return "group NAME" or "image NAME" by name: the text whose keyed hash is kept after its removal."""
        return {
            **{group: f"group {group}" for group in sorted(self.groups)},
            **{image: f"image {image}" for image in sorted(self.images)},
        }

    def naming(self, image: SourceImage, *groups: str | None) -> frozenset[str]:
        """Return the names that select an image for removal; empty if none does.

        A rendering ("0_left+drusen") and the source image of a later turn are removed with the image that they are of;
        by its own id, such an image is removed alone.

        Args:
            image: its record.
            groups: further patients or studies that the image belongs to.
        """
        return self.groups.intersection((image.group, *groups)) | self.images.intersection(
            (image.id, image.origin, image.id.partition("+")[0])
        )


class Reach(StrEnum):
    """Where a server is: on this machine, on the owner's premises, or hosted elsewhere."""

    LOOPBACK = "loopback"
    ON_PREMISES = "on premises"
    HOSTED = "hosted"


@dataclass(frozen=True, slots=True)
class Destination:
    """The server to which images are sent.

    Attributes:
        address: scheme, host and port; a provider's name if it has its own connection.
        reach: loopback is proved by the connection, on-premises declared by the owner, everything else is hosted.
        why: why it is not loopback, for messages.
    """

    address: str
    reach: Reach
    why: str = ""


class NotAllowed(Exception):
    """An image may not be sent to this destination. One line, without the id of a credentialed image."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One image in a request: its hash, and the journalled call that sends it (None: the current call)."""

    sha256: str
    call: int | None = None
