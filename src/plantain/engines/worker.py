"""A worker of a Ray cluster, and how work and answers travel: images apart from the rest, each once."""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import os
import pickle
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

from plantain.records import InputError
from plantain.version import __version__

LARGE = 16_384
"""Bytes from which on a file travels apart."""

LIBRARIES = ("numpy", "opencv-python-headless", "torch", "diffusers")
"""Packages whose version can change a pixel."""

Work = tuple[Callable[..., object], tuple[object, ...]]


class RemoteWorker:
    """An actor of Ray on a worker's machine: does one piece of work at a time and keeps what it loaded.

    Args:
        environment: variables that it gets.
        version: the head's plantain. Raises InputError where another is installed here: other code, other images.
    """

    def __init__(self, environment: Mapping[str, str], version: str) -> None:
        if version != __version__:
            raise InputError(
                f"plantain {__version__} on a worker's machine, {version} on the head's: install one"
            )
        os.environ.update(environment)
        import cv2

        cv2.setNumThreads(1)

    def kind(self) -> str:
        """Return what it computes on."""
        return machine_kind()

    def run(self, work: bytes, names: Sequence[str], *images: bytes) -> tuple[bytes | list[str], ...]:
        """Do a piece of work: (function, arguments), packed. Return the packed answer, names and images."""
        function, arguments = cast(Work, unpack(work, dict(zip(names, images, strict=True))))
        answer, files = pack(function(*arguments))
        return answer, list(files), *files.values()


class _Packer(pickle.Pickler):
    def __init__(self, to: io.BytesIO) -> None:
        super().__init__(to, protocol=5)
        self.files: dict[str, bytes] = {}

    def persistent_id(self, found: object) -> str | None:
        if type(found) is not bytes or len(found) < LARGE:
            return None
        sha256 = hashlib.sha256(found).hexdigest()
        self.files[sha256] = found
        return sha256


class _Unpacker(pickle.Unpickler):
    def __init__(self, data: bytes, files: Mapping[str, bytes]) -> None:
        super().__init__(io.BytesIO(data))
        self._files = files

    def persistent_load(self, sha256: str) -> bytes:
        return self._files[sha256]


def pack(value: object) -> tuple[bytes, dict[str, bytes]]:
    """Return a value as bytes, and its large files by their SHA-256."""
    to = io.BytesIO()
    packer = _Packer(to)
    packer.dump(value)
    return to.getvalue(), packer.files


def unpack(data: bytes, files: Mapping[str, bytes]) -> object:
    """Return what `pack` made into bytes on another machine of the same user."""
    return _Unpacker(data, files).load()


@cache
def machine_kind() -> str:
    """Return processor or GPUs of this process, and versions, e.g. "NVIDIA H200; numpy 2.3.4, torch 2.13.0".

    Images of two kinds may differ in a bit. Torch is not imported: GPUs are read from the driver's files, and only
    where this process may use some.
    """
    versions = []
    for name in LIBRARIES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    cards: set[str] = set()
    if os.environ.get("CUDA_VISIBLE_DEVICES", "none") not in ("", "-1", "none", "NoDevFiles"):
        for card in Path("/proc/driver/nvidia/gpus").glob("*/information"):
            cards |= _named("Model", card)
    processor = next(
        iter(_named("model name", Path("/proc/cpuinfo"))), platform.processor() or platform.machine()
    )
    return f"{', '.join(sorted(cards)) or processor}; {', '.join(versions)}"


def _named(field: str, file: Path) -> set[str]:
    """Return the values of a field in a file of lines `field: value`."""
    lines = file.read_text(errors="replace").splitlines() if file.is_file() else []
    return {line.partition(":")[2].strip() for line in lines if line.startswith(field)}
