"""What is edited: a source image, its licence and its geometry."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Licence(StrEnum):
    """What the owner of a source image allows. Only the first two may leave the machine unasked."""

    OPEN = "open"
    ATTRIBUTION = "attribution"
    CREDENTIALED = "credentialed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Geometry:
    """How the prepared square relates to the original: enough to invert it exactly.

    Attributes:
        width, height: size of the original in pixels.
        mode: "pad" (aspect kept, black border) or "stretch".
        left, top, inner_width, inner_height: where the resized original lies in the prepared image.
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
    """The owner's recorded permission to send an image to a hosted model."""

    by: str
    agreement: str


@dataclass(frozen=True, slots=True)
class SourceImage:
    """One image of a catalogue, prepared. Unknown attributes say "unknown", never a guess.

    Attributes:
        id: the source's own image id, unique in its catalogue (e.g. "s50000230", "0_left").
        dataset, version: where it comes from.
        modality: "chest_xray", "brain_mri", "fundus", or a user's own.
        labels: names of findings present; the modality's normal class when none is.
        licence: what its owner allows.
        group: patient or study that must never be split; None where the source has no such id.
        split: the source's own split, or "".
        source_sha256, prepared_sha256: of the file read and of the prepared PNG or JPEG blob.
        frame: index in a multi-frame or multi-slice file.
        geometry: how it was brought to the prepared size.
        view, projection, position, sequence, contrast, plane: as recorded, else "unknown"; the view of a slice says
            whether it shows the sella, "sella" or "without sella".
        laterality: the eye, "left" or "right"; "not recorded" where nobody knows which half of a slice is left, so
            that no instruction may name a side; "mirrored" where a slice or film is shown the other way round; else
            "unknown".
        spacing_mm: pixel spacing of the prepared image where known.
        text_checked: whether burned-in text was looked for.
        synthetic: True where the pixels are themselves rendered or edited.
        consent: permission for hosted models, if recorded.
        note: what a reader must know (e.g. "population average", "not a healthy chest").
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
