"""The mark of synthetic images, as other programs write it: Image::ExifTool 12.57 wrote the packets below."""

from __future__ import annotations

import base64
import zlib

import pytest

from plantain.files.source_type import declared_synthetic
from plantain.pixels.encode import XMP_PACKET, marked

URL = "http://cv.iptc.org/newscodes/digitalsourcetype/"

# exiftool -api Compact=NoPadding -XMP-iptcExt:DigitalSourceType=compositeSynthetic, on a PNG of 8 x 8 that Pillow made
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAByWlUWHRYTUw6Y29tLmFkb2JlLnhtcAAAAAAAPD94cGFja2V0IGJlZ2luPSfvu78n"
    "IGlkPSdXNU0wTXBDZWhpSHpyZVN6TlRjemtjOWQnPz4KPHg6eG1wbWV0YSB4bWxuczp4PSdhZG9iZTpuczptZXRhLycgeDp4bXB0az0nSW1hZ2U6"
    "OkV4aWZUb29sIDEyLjU3Jz4KPHJkZjpSREYgeG1sbnM6cmRmPSdodHRwOi8vd3d3LnczLm9yZy8xOTk5LzAyLzIyLXJkZi1zeW50YXgtbnMjJz4K"
    "CiA8cmRmOkRlc2NyaXB0aW9uIHJkZjphYm91dD0nJwogIHhtbG5zOklwdGM0eG1wRXh0PSdodHRwOi8vaXB0Yy5vcmcvc3RkL0lwdGM0eG1wRXh0"
    "LzIwMDgtMDItMjkvJz4KICA8SXB0YzR4bXBFeHQ6RGlnaXRhbFNvdXJjZVR5cGU+Y29tcG9zaXRlU3ludGhldGljPC9JcHRjNHhtcEV4dDpEaWdp"
    "dGFsU291cmNlVHlwZT4KIDwvcmRmOkRlc2NyaXB0aW9uPgo8L3JkZjpSREY+CjwveDp4bXBtZXRhPgo8P3hwYWNrZXQgZW5kPSdyJz8+optYcgAA"
    "ABBJREFUeJxjbGCAACYGihgAJggAkF0wpR4AAAAASUVORK5CYII="
)

SHORTHAND = "Iptc4xmpExt:DigitalSourceType='{}'/>"  # what -api Compact=Shorthand gives instead of an element
ELEMENT = "<Iptc4xmpExt:DigitalSourceType>{}</Iptc4xmpExt:DigitalSourceType>"
RESOURCE = (
    '<Iptc4xmpExt:DigitalSourceType rdf:resource="{}"/>'  # a URI as a property's value (XMP part 1, 7.5)
)


def png_with(chunk: bytes) -> bytes:
    size, check = (len(chunk) - 4).to_bytes(4, "big"), zlib.crc32(chunk).to_bytes(4, "big")
    plain = PNG[:33] + PNG[PNG.index(b"IDAT") - 4 :]  # without the packet that it has
    return plain[:-12] + size + chunk + check + plain[-12:]


def test_the_mark_of_exiftool_is_read() -> None:
    assert declared_synthetic(PNG) == "compositeSynthetic"


@pytest.mark.parametrize("form", [SHORTHAND, ELEMENT, RESOURCE])
@pytest.mark.parametrize(
    ("term", "declared"),
    [
        ("trainedAlgorithmicMedia", "trainedAlgorithmicMedia"),
        ("compositeWithTrainedAlgorithmicMedia", "compositeWithTrainedAlgorithmicMedia"),
        ("CompositeSynthetic", "compositeSynthetic"),
        ("composite", "composite"),
        ("digitalCapture", ""),
        ("compositeCapture", ""),  # of captures only
        ("algorithmicallyEnhanced", ""),  # a recording, sharpened
        ("humanEdits", ""),
    ],
)
def test_terms_of_the_vocabulary(form: str, term: str, declared: str) -> None:
    assert declared_synthetic(form.format(URL + term).encode()) == declared


def test_a_bare_word_counts_only_as_the_value_of_the_property() -> None:
    assert declared_synthetic(SHORTHAND.format("algorithmicMedia").encode()) == "algorithmicMedia"
    assert not declared_synthetic(b"<dc:title>DigitalSourceType and composite</dc:title>")
    assert not declared_synthetic((ELEMENT.format(URL + "print") + "<dc:title>composite</dc:title>").encode())


def test_compressed_texts_of_a_png_are_unpacked_and_damaged_ones_are_not_a_fault() -> None:
    packed = zlib.compress(XMP_PACKET)
    assert not declared_synthetic(png_with(b"tEXtComment\0none"))
    assert declared_synthetic(png_with(b"iTXtXML:com.adobe.xmp\0\1\0\0\0" + packed)) == "compositeSynthetic"
    assert declared_synthetic(png_with(b"zTXtxmp\0\0" + packed)) == "compositeSynthetic"
    assert not declared_synthetic(png_with(b"zTXtxmp\0\0" + packed[:9] + b"\xff" * 20))


def test_our_own_marks_are_read() -> None:
    assert declared_synthetic(marked(png_with(b"tEXtComment\0none"))) == "compositeSynthetic"
