"""A worker of a Ray cluster, and its kind of device."""

from __future__ import annotations

import importlib.metadata
import os
import pickle
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from plantain.records import InputError
from plantain.version import __version__

LIBRARIES = ("numpy", "opencv-python-headless", "torch", "diffusers")
"""Packages whose version can change a pixel."""


class RemoteWorker:
    """An actor of Ray on a worker's machine: does one piece of work at a time and keeps loaded models.

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
        """Return the kind of device."""
        return machine_kind()

    def run(self, work: bytes) -> object:
        """Do a piece of work: (function, arguments), pickled by the head so that a missing package can be named."""
        function, arguments = pickle.loads(work)
        return function(*arguments)


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
