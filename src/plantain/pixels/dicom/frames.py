"""What a DICOM file says of one of its frames: enhanced multi-frame files keep it in nested groups, not on top."""

from __future__ import annotations

from pydicom import Dataset

_GROUPS = ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence")
_FIELDS = (
    ("PlaneOrientationSequence", ("ImageOrientationPatient",)),
    ("PixelMeasuresSequence", ("PixelSpacing",)),
    ("FrameVOILUTSequence", ("WindowCenter", "WindowWidth", "VOILUTFunction")),
    ("PixelValueTransformationSequence", ("RescaleSlope", "RescaleIntercept")),
)
"""Functional groups (PS3.3, C.7.6.16) and the fields that we read of each; those of a frame override shared ones."""


def header_of_frame(dataset: Dataset, frame: int) -> Dataset:
    """The header as it holds for one frame, without pixels; the data set itself where nothing is nested.

    Args:
        dataset: of a file.
        frame: from 0; one that the groups do not describe has what all frames share.
    """
    nested: dict[str, object] = {}
    for name in _GROUPS:
        sequence = dataset.get(name)
        at = frame if name.startswith("PerFrame") else 0
        if sequence is None or at >= len(sequence):
            continue
        for group, fields in _FIELDS:
            held = sequence[at].get(group)
            for field in fields if held else ():
                value = held[0].get(field)
                if value is not None:
                    nested[field] = value
    if not nested:
        return dataset
    header = Dataset()
    # Raw elements are taken over unread: a damaged one must not stop those that are whole.
    header.update({tag: dataset.get_item(tag) for tag in list(dataset.keys()) if tag.group < 0x7FE0})
    for field, value in nested.items():
        setattr(header, field, value)
    return header
