"""What a worker says of itself: enough to tell two kinds of workers apart, whose pictures may differ in a bit."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from functools import cache
from pathlib import Path

LIBRARIES = ("numpy", "opencv-python-headless", "torch", "diffusers")
"""Packages whose version can change a pixel."""


@cache
def machine_kind() -> str:
    """Processor or GPUs of this process, and versions, e.g. "NVIDIA H200; numpy 2.3.4, torch 2.13.0".

    Torch is not imported for it: GPUs are read from the driver's files, and only where this process may use some.
    """
    versions = ", ".join(f"{name} {version}" for name in LIBRARIES if (version := _version(name)))
    return f"{_graphics() or _processor()}; {versions}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _graphics() -> str:
    if os.environ.get("CUDA_VISIBLE_DEVICES", "none") in ("", "-1", "none", "NoDevFiles"):
        return ""
    models = {
        line.partition(":")[2].strip()
        for card in Path("/proc/driver/nvidia/gpus").glob("*/information")
        for line in card.read_text(errors="replace").splitlines()
        if line.startswith("Model")
    }
    return ", ".join(sorted(models))
