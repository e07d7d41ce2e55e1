"""DICOM files for tests: those that come with pydicom, and small ones made here."""

from __future__ import annotations

import io

import numpy as np
from pydicom import Dataset
from pydicom.data import get_testdata_file
from pydicom.uid import ExplicitVRLittleEndian

from plantain.pixels.dicom.files import read_dicom
from plantain.pixels.dicom.render import render_planes

RAMP = np.arange(4096, dtype=np.uint16).reshape(64, 64)


def file(name: str) -> bytes:
    path = get_testdata_file(name, download=False)
    assert path is not None, name
    with open(path, "rb") as handle:  # noqa: PTH123 - a path of pydicom's own
        return handle.read()


def made(values: np.ndarray = RAMP, **attributes: object) -> bytes:
    dataset = Dataset()
    dataset.ensure_file_meta()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID = "1.2.840.10008.5.1.4.1.1.7"
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID = "1.2.3"
    dataset.Rows, dataset.Columns = values.shape[:2]
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    bits = values.dtype.itemsize * 8
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = bits, bits, bits - 1
    dataset.PixelRepresentation = int(values.dtype.kind == "i")
    dataset.PixelData = values.tobytes()
    for name, value in attributes.items():
        setattr(dataset, name, value)
    data = io.BytesIO()
    dataset.save_as(data, enforce_file_format=True)
    return data.getvalue()


def decode_dicom(data: bytes, name: str, how: str = "file") -> np.ndarray:
    """Return the first frame, uint8 (H, W, 3)."""
    pixels = render_planes(read_dicom(data, name), name, how=how)
    return pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, axis=2)


def grey(data: bytes, how: str = "file") -> np.ndarray:
    pixels = decode_dicom(data, "a.dcm", how=how)
    assert np.array_equal(pixels[..., 0], pixels[..., 2])
    return pixels[..., 0]


def linear(values: np.ndarray, centre: float, width: float) -> np.ndarray:
    """Return grey levels by the standard's own formula (PS3.3, C.11.2.1.2.1)."""
    return np.rint((((values - (centre - 0.5)) / (width - 1)) + 0.5).clip(0, 1) * 255).astype(np.uint8)
