"""The process of a device without weights: python -m models.diffusers.waiting_device FD DEVICE. No torch.

All but the engine is plantain's own; the pictures come back as they were read. It draws nothing before a file `go` is
in the folder that `NOTES` names, and an edit of `ENDLESS` steps never comes to an end. In that folder it notes by an
empty file of its seed which edit was read, and which is drawn.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from plantain.models.diffusers import quiet, worker
from plantain.models.diffusers.canvases import Drawing, Prepared, prepare
from plantain.models.diffusers.jobs import Batch
from plantain.records import OK

NOTES = "WAITING_DEVICE_NOTES"
ENDLESS = 999


def _note(what: str, batch: Batch) -> None:
    for job in batch.jobs:
        (Path(os.environ[NOTES]) / f"{what} {job.seed}").touch()


def noted(batch: Batch) -> Prepared:
    prepared = prepare(batch)
    _note("read", batch)
    return prepared


class Engine:
    """Stands in for the one that has weights."""

    def __init__(self, device: str) -> None:
        self._device = device

    def draw(self, prepared: Prepared) -> list[Drawing]:
        _note("drawn", prepared.batch)
        while not (Path(os.environ[NOTES]) / "go").exists():
            time.sleep(0.01)
        settings = prepared.batch.steering.settings
        if settings["steps"] == ENDLESS:
            threading.Event().wait()
        return [self._drawing(prepared, place, settings) for place in range(len(prepared.batch.jobs))]

    def _drawing(self, prepared: Prepared, place: int, settings: dict[str, Any]) -> Drawing:
        original = prepared.originals[place]
        record = {
            "method": prepared.batch.loading.method,
            "settings": settings,
            "geometry": original.frame.as_json(),
            "device": self._device,
            "precision": "none",
            "together": len(prepared.batch.jobs),
        }
        return Drawing(original.canvas, OK, record, original.frame)


if __name__ == "__main__":
    stand_in = ModuleType("plantain.models.diffusers.engine")
    stand_in.Engine = Engine  # type: ignore[attr-defined]
    sys.modules[stand_in.__name__] = stand_in
    quiet.quiet_libraries = lambda: None
    worker.prepare = noted
    worker.main(int(sys.argv[1]), sys.argv[2])
