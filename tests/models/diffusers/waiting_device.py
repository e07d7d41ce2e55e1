"""The process of a device without weights: python -m models.diffusers.waiting_device FD DEVICE. No torch.

All but the engine is plantain's own; canvases come back unchanged. It draws nothing before a file `go` is in the
folder that `NOTES` names, and an edit of `ENDLESS` steps never ends. It creates an empty file there for each edit that
it draws.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

from plantain.models.diffusers import quiet, worker
from plantain.models.diffusers.jobs import Done, Job
from plantain.records import OK

NOTES = "WAITING_DEVICE_NOTES"
ENDLESS = 999


class Engine:
    """Replaces the one that has weights."""

    def __init__(self, device: str) -> None:
        self._device = device

    def run(self, job: Job) -> Done:
        notes, settings = Path(os.environ[NOTES]), job.steering.settings
        (notes / f"drawn {job.seed}").touch()
        while not (notes / "go").exists():
            time.sleep(0.01)
        if settings["steps"] == ENDLESS:
            threading.Event().wait()
        record = {
            "method": job.loading.method,
            "settings": settings,
            "device": self._device,
            "precision": "none",
        }
        return Done(job.canvas, OK, record)


if __name__ == "__main__":
    fake = ModuleType("plantain.models.diffusers.engine")
    fake.Engine = Engine  # type: ignore[attr-defined]
    sys.modules[fake.__name__] = fake
    quiet.quiet_libraries = lambda: None
    worker.main(int(sys.argv[1]), sys.argv[2])
