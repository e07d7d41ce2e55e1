"""The declared origin of an image file: its IPTC digital source type, in XMP or in a C2PA manifest."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

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

_PNG = b"\x89PNG\r\n\x1a\n"
_UNPACKED = 1 << 20
"""Most bytes that are unpacked of one compressed text of a PNG; a packet of XMP has a few thousand."""


def declared_synthetic(data: bytes) -> str:
    """Return the IPTC term with which an image file declares itself synthetic; "" if it does not.

    Metadata is searched as text, so that JPEG, PNG, TIFF, WebP, GIF and damaged XMP are all covered: an address of 50
    characters does not occur by chance. Signatures are not checked.

    Args:
        data: the bytes of the whole file.
    """
    for text in (data, *_compressed_texts(data)):
        found = _DECLARED.search(text)
        if found is not None:
            word = found[1].decode().lower()
            return next(term for term in SYNTHETIC if term.lower() == word)
    return ""


def _compressed_texts(data: bytes) -> Iterator[bytes]:
    """Yield the content of a PNG's compressed text chunks (PNG 11.3.3); nothing for other files."""
    at = len(_PNG) if data.startswith(_PNG) else len(data)
    while at + 12 <= len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + size]
        at += 12 + size
        rest = body.partition(b"\0")[2]
        if kind == b"iTXt" and rest[:1] == b"\1":
            packed = rest[2:].split(b"\0", 2)[-1]  # behind language and translated keyword
        elif kind == b"zTXt":
            packed = rest[1:]
        else:
            continue
        try:
            yield zlib.decompressobj().decompress(packed, _UNPACKED)
        except zlib.error:
            continue
