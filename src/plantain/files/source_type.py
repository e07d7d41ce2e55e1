"""The declared origin of an image file: its IPTC digital source type, in XMP or in a C2PA manifest."""

from __future__ import annotations

import re

SYNTHETIC = (
    "trainedAlgorithmicMedia",
    "compositeWithTrainedAlgorithmicMedia",
    "compositeSynthetic",
    "composite",
    "algorithmicMedia",
    "dataDrivenMedia",
    "virtualRecording",
    "digitalCreation",
    "digitalArt",
    "softwareImage",
)
"""Terms of http://cv.iptc.org/newscodes/digitalsourcetype/ for images that no device recorded, wholly or in part.

The last two are retired. `composite` may have generated parts, so it does not pass for real."""

_DECLARED = re.compile(
    # The term's whole address, anywhere; or the bare term as the value of the XMP property.
    rb"igital(?:sourcetype/|Source(?:[Ff]ile)?Type(?:>|\s*=\s*[\"'])\s*(?:\w+:)?)"
    rb"(" + b"|".join(f"(?i:{term})".encode() for term in SYNTHETIC) + rb")(?!\w)"
)


def declared_synthetic(data: bytes) -> str:
    """Return the IPTC term with which an image file declares itself synthetic; "" if it does not.

    Metadata is searched as text, so that JPEG, PNG, TIFF, WebP, GIF and damaged XMP are all covered: an address of 50
    characters does not occur by chance. Signatures are not checked, and compressed texts of a PNG are not unpacked.

    Args:
        data: the bytes of the whole file.
    """
    found = _DECLARED.search(data)
    if found is None:
        return ""
    word = found[1].decode().lower()
    return next(term for term in SYNTHETIC if term.lower() == word)
