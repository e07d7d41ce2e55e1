"""The header of one frame: enhanced multi-frame files keep it in functional groups."""

from __future__ import annotations

from pydicom import Dataset

_GROUPS = ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence")
_FIELDS = (
    ("PlaneOrientationSequence", ("ImageOrientationPatient",)),
    ("PixelMeasuresSequence", ("PixelSpacing",)),
    ("FrameVOILUTSequence", ("WindowCenter", "WindowWidth", "VOILUTFunction")),
    ("PixelValueTransformationSequence", ("RescaleSlope", "RescaleIntercept")),
)
"""Functional groups (PS3.3, C.7.6.16) and the fields that we read; those of a frame override shared ones."""


def header_of_frame(dataset: Dataset, frame: int) -> Dataset:
    """Return the header of one frame, without pixels; the data set itself where nothing is nested.

    Args:
        frame: from 0; one that the groups do not describe has the shared fields.
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
    header = own_header(dataset)
    for field, value in nested.items():
        setattr(header, field, value)
    return header


def own_header(dataset: Dataset) -> Dataset:
    """Return a copy of a header without pixels. Elements are copied unread, so that damaged ones do not matter."""
    header = Dataset()
    header.update({tag: dataset.get_item(tag) for tag in list(dataset.keys()) if tag.group < 0x7FE0})
    return header
