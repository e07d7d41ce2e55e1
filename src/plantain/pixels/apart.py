"""Decoding by a codec that a damaged file can crash: in a process of its own, which takes only itself down.

GDCM is the only free decoder of lossless JPEG and JPEG-LS here, and it does not survive every damaged stream. Run as
`python -m plantain.pixels.apart`, this module reads DICOM files of one frame from its input, each behind its length,
and writes arrays. The process is kept for the next frame, since starting it takes longer than decoding; each thread
that decodes has one, and after a refusal, a crash or a stall it gets another: a damaged file may have damaged it.
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
import subprocess
import sys
import threading
import weakref
from typing import IO

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
_LENGTH = struct.Struct(">?Q")
"""Of a message: 1 for an answer, 0 for a refusal in words; and its length."""

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
    if decoder is None or not decoder.alive:
        decoder = _own.decoder = _Decoder()
    return decoder.decode(file.getvalue())


class _Decoder:
    """One child process; it ends with the thread that made it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "plantain.pixels.apart"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        weakref.finalize(self, _end, self._process)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def decode(self, file: bytes) -> npt.NDArray[np.integer]:
        """Send a file to the child process and return its array. Raise ValueError as `decode_apart` does."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = threading.Timer(LIMIT_S, self._process.kill)
        late.start()
        try:
            _write(self._process.stdin, True, file)
            fine, answer = _read(self._process.stdout)
        except (OSError, EOFError) as error:
            self._process.kill()
            self._process.wait()
            slow = not late.is_alive()
            raise ValueError(
                f"the decoder took more than {LIMIT_S} s" if slow else "the decoder crashed on it"
            ) from error
        finally:
            late.cancel()
        if not fine:
            self._process.kill()
            self._process.wait()
            raise ValueError(answer.decode(errors="replace") or "the decoder refused it")
        values: npt.NDArray[np.integer] = np.load(io.BytesIO(answer), allow_pickle=False)
        return values


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the child by closing its input, without waiting for its output."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _write(pipe: IO[bytes], fine: bool, data: bytes) -> None:
    pipe.write(_LENGTH.pack(fine, len(data)) + data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> tuple[bool, bytes]:
    """One message. Raises EOFError where the other side is gone, or announces more bytes than allowed."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    fine, length = _LENGTH.unpack(head)
    if length > MOST_BYTES:
        raise EOFError
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError
    return bool(fine), data


def _main() -> None:
    """Decodes what comes, until nothing comes any more."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Codecs print to standard output when they please; only messages may go where messages are read.
    os.dup2(2, 1)
    while True:
        try:
            _, file = _read(source)
        except EOFError:
            return
        try:
            out = io.BytesIO()
            dataset = dcmread(io.BytesIO(file), force=True)
            np.save(out, pixel_array(dataset, decoding_plugin="gdcm"), allow_pickle=False)
            _write(sink, True, out.getvalue())
        except _REFUSALS as error:
            _write(sink, False, " ".join(str(error).split())[:300].encode())


if __name__ == "__main__":
    _main()
