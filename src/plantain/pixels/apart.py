"""Decoding by a codec that a damaged file can crash: in a process of its own, which takes only itself down.

GDCM is the only free decoder of lossless JPEG and JPEG-LS here, and it does not survive every damaged stream. Run as
`python -m plantain.pixels.apart FD`, this module reads DICOM files of one frame from a pipe and writes arrays. The
process is kept for the next frame, since starting it takes longer than decoding; each thread that decodes has one, and
after a refusal, a crash or a stall it gets another: a damaged file may have damaged it.
"""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import threading
import weakref
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import numpy as np
import numpy.typing as npt
from pydicom import Dataset, dcmread
from pydicom.encaps import encapsulate
from pydicom.pixels import pixel_array

LIMIT_S = 30
"""Seconds that one frame may take."""

MOST_BYTES = 1 << 30
"""No answer may be longer: the child is not trusted either, once a damaged file was in it."""

_NEEDED = (
    *("Rows", "Columns", "SamplesPerPixel", "PhotometricInterpretation", "PlanarConfiguration"),
    *("BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation"),
)
_ARRAY = b"\x93NUMPY"
"""Start of an answer; any other is a refusal in words."""

_REFUSALS: tuple[type[Exception], ...] = (
    *(AttributeError, ValueError, RuntimeError, NotImplementedError, OSError, LookupError, TypeError),
    *(EOFError, ArithmeticError, AssertionError, struct.error, MemoryError),
)

_own = threading.local()


def decode_apart(dataset: Dataset, coded: bytes, bits: int) -> npt.NDArray[np.integer]:
    """Return a compressed frame of `bits` stored bits as pydicom's pixel array, decoded by GDCM in another process.

    Raises:
        ValueError: the decoder refused, crashed or took too long.
    """
    lean = Dataset()
    lean.ensure_file_meta()
    lean.file_meta.TransferSyntaxUID = dataset.file_meta.TransferSyntaxUID
    for keyword in _NEEDED:
        if keyword in dataset:
            lean[keyword] = dataset[keyword]
    lean.BitsStored = bits
    lean.PixelData = encapsulate([coded])
    lean["PixelData"].VR = "OB"
    file = io.BytesIO()
    lean.save_as(file, implicit_vr=False, little_endian=True)
    decoder: _Decoder | None = getattr(_own, "decoder", None)
    if decoder is None or decoder.process.poll() is not None:
        decoder = _own.decoder = _Decoder()
    return decoder.decode(file.getvalue())


class _Decoder:
    """One child process; it ends with the thread that made it, whose end of the pipe is then closed."""

    def __init__(self) -> None:
        self._pipe, theirs = Pipe()
        number = str(theirs.fileno())
        # Codecs print to standard output when they please.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "plantain.pixels.apart", number],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        weakref.finalize(self, _end, self.process)

    def decode(self, file: bytes) -> npt.NDArray[np.integer]:
        """Send a file to the child process and return its array. Raise ValueError as `decode_apart` does."""
        why = "the decoder crashed on it"
        try:
            self._pipe.send_bytes(file)
            if self._pipe.poll(LIMIT_S):
                answer = self._pipe.recv_bytes(MOST_BYTES)
                if answer.startswith(_ARRAY):
                    values: npt.NDArray[np.integer] = np.load(io.BytesIO(answer), allow_pickle=False)
                    return values
                why = answer.decode(errors="replace") or "the decoder refused it"
            else:
                why = f"the decoder took more than {LIMIT_S} s"
        except (OSError, EOFError):
            pass  # the child is gone, or announces more bytes than allowed
        _end(self.process)
        raise ValueError(why)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _main() -> None:
    """Decode the files that come, until the pipe is closed."""
    with Connection(int(sys.argv[1])) as pipe:
        while True:
            try:
                file = pipe.recv_bytes()
            except EOFError:
                return
            try:
                out = io.BytesIO()
                dataset = dcmread(io.BytesIO(file), force=True)
                np.save(out, pixel_array(dataset, decoding_plugin="gdcm"), allow_pickle=False)
                pipe.send_bytes(out.getbuffer())
            except _REFUSALS as error:
                pipe.send_bytes(" ".join(str(error).split())[:300].encode())


if __name__ == "__main__":
    _main()
