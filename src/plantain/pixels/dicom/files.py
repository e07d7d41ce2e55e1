"""DICOM files as they are found: with a preamble or without, deflated or not, with or without their transfer syntax."""

from __future__ import annotations

import io
import re
import struct
import warnings
import zlib
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pydicom
from pydicom import Dataset
from pydicom.errors import BytesLengthException, InvalidDicomError
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

from plantain.files.installed import install_line
from plantain.pixels.decode import MAX_DECODED_BYTES, BadImage, one_line

# What pydicom and the codecs raise on damaged files; anything else is our own fault.
DAMAGE: tuple[type[Exception], ...] = (
    *(AttributeError, ValueError, RuntimeError, NotImplementedError, OSError, LookupError, TypeError),
    *(EOFError, ArithmeticError, AssertionError, struct.error, zlib.error),
    *(BytesLengthException, InvalidDicomError, MemoryError, RecursionError),
)

# pydicom quotes odd values, which may be a patient's name; set once, since catch_warnings is not thread-safe.
warnings.filterwarnings("ignore", module=r"pydicom\.")
pydicom.config.settings.reading_validation_mode = pydicom.config.IGNORE

_DEFLATED = b"1.2.840.10008.1.2.1.99"
_DEFLATED_FRAMES = b"1.2.840.10008.1.2.8.1"
_HEAD = 2048
_GROUP_LENGTH = re.compile(rb"\x02\x00\x00\x00UL\x04\x00(.{4})", re.DOTALL)

# The first element of a data set without preamble: group 2 or 8, and a VR or, implicit, a length of two bytes.
_BARE = re.compile(rb"[\x02\x08]\x00.\x00([A-Z]{2}|..\x00\x00)|\x00[\x02\x08]\x00.[A-Z]{2}", re.DOTALL)


def read_dicom(data: bytes, name: str, *, header_only: bool = False) -> Dataset:
    """Parse a DICOM file. The preamble (128 bytes and "DICM") may be missing if the content is clearly DICOM.

    Raises:
        BadImage: not a DICOM file, damaged, or larger than 256 MB.
    """
    name = one_line(name)
    try:
        bare = data[128:132] != b"DICM"
        if bare and not _BARE.match(data):
            raise InvalidDicomError
        dataset = pydicom.dcmread(
            io.BytesIO(_inflated(data, name)), stop_before_pixels=header_only, force=bare
        )
        if bare and "SOPClassUID" not in dataset and "Rows" not in dataset:
            raise InvalidDicomError
        _settle_syntax(dataset)
        if not header_only:
            _settle_tables(dataset)
            _settle_offsets(dataset)
        return dataset
    except BadImage:
        raise
    except InvalidDicomError as error:
        raise BadImage(f"{name}: not a DICOM file") from error
    except DAMAGE as error:
        raise unreadable(name, error) from error


def read_header(file: BinaryIO, name: str) -> Dataset:
    """Read the header of an open DICOM file; all of it only if it is deflated or has no preamble.

    Raises:
        BadImage: as `read_dicom`.
    """
    head = file.read(_HEAD)
    file.seek(0)
    if head[128:132] != b"DICM" or _DEFLATED in head or _DEFLATED_FRAMES in head:
        return read_dicom(file.read(), name, header_only=True)
    try:
        dataset = pydicom.dcmread(file, stop_before_pixels=True)
        _settle_syntax(dataset)
    except DAMAGE as error:
        raise unreadable(one_line(name), error) from error
    return dataset


def frame_count(dataset: Dataset) -> int:
    """Return the number of frames that a header states, at least 1."""
    try:
        return max(1, int(dataset.get("NumberOfFrames") or 1))
    except (ValueError, TypeError):
        return 1


def unreadable(name: str, error: Exception) -> BadImage:
    """Return a one-line BadImage for an error of pydicom or a codec; for a missing codec it names the remedy."""
    why = one_line(" ".join(str(error).split()) or type(error).__name__)[:160]
    codec = f"; for codecs, {install_line('dicom')}" if "plugin" in why or "missing" in why else ""
    return BadImage(f"{name}: its pixels cannot be read ({why}){codec}")


def _inflated(data: bytes, name: str) -> bytes:
    """A deflated data set unpacked, within bounds, under the syntax that it then has; any other as it is."""
    head = data[:_HEAD]
    if _DEFLATED_FRAMES in head:
        raise BadImage(f"{name}: deflated frames are not read; convert it to another transfer syntax")
    if _DEFLATED not in head:
        return data
    found = _GROUP_LENGTH.match(data, 132)
    end = 144 + int.from_bytes(found[1], "little") if found else 0
    if _DEFLATED not in data[:end]:
        raise BadImage(f"{name}: deflated, and its file meta information cannot be read")
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
    body = unpacking.decompress(data[end:], MAX_DECODED_BYTES + 1)
    if len(body) > MAX_DECODED_BYTES:
        raise BadImage(f"{name}: unpacks to more than {MAX_DECODED_BYTES >> 20} MB")
    plain = ExplicitVRLittleEndian.encode().ljust(len(_DEFLATED), b"\0")
    return data[:end].replace(_DEFLATED, plain) + body


def _settle_syntax(dataset: Dataset) -> None:
    """Writes down the transfer syntax by which a file was read that does not name its own."""
    if "TransferSyntaxUID" in dataset.file_meta:
        return
    implicit, little = dataset.original_encoding
    dataset.file_meta.TransferSyntaxUID = (
        ImplicitVRLittleEndian if implicit else ExplicitVRLittleEndian if little else ExplicitVRBigEndian
    )


def _settle_offsets(dataset: Dataset) -> None:
    """Empties a table of offsets that do not ascend from 0, by which frames would be confused (PS3.5, A.4)."""
    data = dataset.get("PixelData")
    if not dataset.file_meta.TransferSyntaxUID.is_encapsulated or not data or len(data) < 8:
        return
    end = 8 + int.from_bytes(data[4:8], "little")
    offsets = np.frombuffer(data[8 : end - end % 4], "<u4").astype(np.int64)
    if offsets.size and (offsets[0] or (np.diff(offsets) <= 0).any()):
        dataset.PixelData = data[:4] + bytes(4) + data[end:]


def _settle_tables(dataset: Dataset) -> None:
    """Rewrites look-up tables as pydicom applies them right: as numbers, and palettes as little-endian 16 bits.

    pydicom reads VOI and modality tables of OW as 16-bit entries, 8-bit entries as indices of 8 bits, and palettes in
    this machine's byte order.
    """
    little = dataset.original_encoding[1] is not False
    for name in ("ModalityLUTSequence", "VOILUTSequence"):
        for item in dataset.get(name) or ():
            data, (count, first, depth) = item.get("LUTData"), item.LUTDescriptor
            if isinstance(data, bytes):
                item["LUTData"].VR = "US"
                item.LUTData = _entries(data, count or 1 << 16, little).tolist()
            if first > 0x7FFF and (dataset.PixelRepresentation or dataset.get("RescaleIntercept", 0) < 0):
                first -= 1 << 16  # a negative value under the representation of positive ones
            item.LUTDescriptor = [count, first, depth if 10 <= depth <= 16 and name[0] == "V" else 16]
    for colour in ("Red", "Green", "Blue", "Alpha"):
        field = f"{colour}PaletteColorLookupTableData"
        descriptor = dataset.get(f"{colour}PaletteColorLookupTableDescriptor")
        if isinstance(data := dataset.get(field), bytes) and descriptor:
            entries = _entries(data, descriptor[0] or 1 << 16, little)
            wide = len(data) >= 2 * entries.size
            setattr(dataset, field, (entries if wide else entries * 257).astype("<u2").tobytes())


def _entries(data: bytes, count: int, little: bool) -> npt.NDArray[np.uint16]:
    """Return the entries of a table: 16-bit words, or 8 bits two to a word, the first in its low byte (PS3.5, 8.2)."""
    if len(data) >= 2 * count:
        return np.frombuffer(data, "<u2" if little else ">u2", count).astype(np.uint16)
    ordered = data if little else np.frombuffer(data, ">u2").astype("<u2").tobytes()
    return np.frombuffer(ordered, np.uint8, min(count, len(ordered))).astype(np.uint16)
