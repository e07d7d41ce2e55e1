"""An editor whose answers come from an engine's workers, ready made, so that what is measured is their way."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from plantain.engines.contract import engine_in_place
from plantain.engines.local import LocalEngine
from plantain.models.remote import normal_form, on_worker
from plantain.records import OK, Outcome
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed
from simulated.million import RAW, Simulated, usage

HERE = LocalEngine()


def drawn(log: str, pictures: str, number: int, original: bytes, seed: int, seconds: float) -> EditedImage:
    """Notes the seed in one write and hands back a picture in normal form."""
    if log:
        fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, f"{seed}\n".encode())
        os.close(fd)
    assert original
    time.sleep(seconds)
    data = Path(pictures, f"{number}.jpg").read_bytes()
    return EditedImage(EncodedImage(data, "image/jpeg"), normal=normal_form(data))


def returned(data: bytes, number: int) -> bytes:
    """Another picture of that size, without computing one."""
    return number.to_bytes(8, "big") + data[8:]


@dataclass
class OnWorkers(Simulated):
    """Edits on the run's engine; in processes of this machine where there is none."""

    folder: Path = Path()
    log: Path | None = None
    seconds: float = 0.0
    count: int = 200
    latency_s: float = 0.0
    pictures: list[bytes] = field(default_factory=list)

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        number = request.seed % self.count
        found = await on_worker(
            engine_in_place.get() or HERE,
            "editor",
            drawn,
            str(self.log or ""),
            str(self.folder),
            number,
            request.original.data,
            request.seed,
            self.seconds,
        )
        if isinstance(found, Outcome):
            return failed(found)
        return Reply(found, OK, usage(1200, 0, images=1), raw=RAW)
