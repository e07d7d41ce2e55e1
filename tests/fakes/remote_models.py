"""A small editor whose drawing runs on an engine's workers, each of which logs its request before it draws."""

from __future__ import annotations

import os
import time
from pathlib import Path

import cv2
import numpy as np

from plantain.engines.contract import engine_in_place
from plantain.engines.local import LocalEngine
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.records import Outcome
from plantain.roles import EditedImage, EditRequest, EncodedImage, NormalForm, Reply, failed, on_worker

HERE = LocalEngine()


def draw(log: Path, data: bytes, seed: int, seconds: float) -> EditedImage:
    """Notes the seed, durably in one write, and draws a disc."""
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{seed} {os.getpid()}\n".encode())
    os.close(fd)
    time.sleep(seconds)
    pixels = decode(data).copy()
    height, width = pixels.shape[:2]
    rng = np.random.default_rng(seed)
    centre = int(rng.integers(width // 4, width // 2)), int(rng.integers(height // 4, height // 2))
    cv2.circle(pixels, centre, height // 20, (int(rng.integers(256)), 90, 40), -1)
    drawn = encode_jpeg(pixels)
    return EditedImage(EncodedImage(drawn, "image/jpeg"), None, "local", normal=NormalForm.of(drawn))


class RemoteEditor:
    """Draws on the run's engine; in processes of this machine where there is none."""

    name = "quick/editor"
    fingerprint = "1"

    def __init__(self, log: Path, seconds: float = 0.0) -> None:
        self.log, self.seconds = log, seconds

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        engine = engine_in_place.get() or HERE
        drawn = await on_worker(
            engine, "editor", draw, self.log, request.original.data, request.seed, self.seconds
        )
        return failed(drawn) if isinstance(drawn, Outcome) else Reply(drawn)
