"""Decoding by a codec that a damaged file can crash: in a process of its own, which takes only itself down.

GDCM is the only free decoder of lossless JPEG and JPEG-LS here, and it does not survive every damaged stream. Run as
`python -m plantain.pixels.apart`, this module reads one DICOM file of one frame from its input and writes an array.
"""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import numpy.typing as npt
from pydicom import Dataset, dcmread
from pydicom.encaps import encapsulate
from pydicom.pixels import pixel_array

LIMIT_S = 30
"""Seconds that one frame may take."""

_NEEDED = (
    *("Rows", "Columns", "SamplesPerPixel", "PhotometricInterpretation", "PlanarConfiguration"),
    *("BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation"),
)


def decode_apart(dataset: Dataset, coded: bytes) -> npt.NDArray[np.integer]:
    """One compressed frame, decoded by GDCM in another process; nothing of the header but its shape goes there.

    Raises:
        ValueError: the decoder refused, crashed or took too long.
    """
    lean = Dataset()
    lean.ensure_file_meta()
    lean.file_meta.TransferSyntaxUID = dataset.file_meta.TransferSyntaxUID
    for keyword in _NEEDED:
        if keyword in dataset:
            lean[keyword] = dataset[keyword]
    lean.PixelData = encapsulate([coded])
    lean["PixelData"].VR = "OB"
    file = io.BytesIO()
    lean.save_as(file, implicit_vr=False, little_endian=True)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "plantain.pixels.apart"],
            input=file.getvalue(),
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"the decoder took more than {LIMIT_S} s") from error
    if done.returncode < 0:
        raise ValueError("the decoder crashed on it")
    if done.returncode:
        raise ValueError(
            done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or "the decoder refused it"
        )
    values: npt.NDArray[np.integer] = np.load(io.BytesIO(done.stdout), allow_pickle=False)
    return values


def _main() -> None:
    dataset = dcmread(io.BytesIO(sys.stdin.buffer.read()), force=True)
    out = io.BytesIO()
    np.save(out, pixel_array(dataset, decoding_plugin="gdcm"), allow_pickle=False)
    sys.stdout.buffer.write(out.getvalue())


if __name__ == "__main__":
    _main()
