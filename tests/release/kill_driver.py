"""Exports in forked children, kills them at random moments, lets the next one go on; prints finished releases.

Arguments: run, scratch folder, kills, seed. One interpreter with everything imported, so that a child begins at once.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import plantain.release.layouts.med_banana
import plantain.release.layouts.parquet
import plantain.release.layouts.webdataset  # noqa: F401
from plantain.release.export import export_run
from plantain.release.layouts.contract import LAYOUTS
from plantain.release.plan import ExportOptions


def start(run: Path, out: Path) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            export_run(run, out, ExportOptions(LAYOUTS, shard_bytes=200_000, licences=("CC-BY-4.0",)))
            status = 0
        finally:
            os._exit(status)
    return child


def main(run: Path, scratch: Path, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    begun = time.monotonic()
    assert os.waitpid(start(run, scratch / "first"), 0)[1] == 0
    print(scratch / "first")
    whole = time.monotonic() - begun
    number = killed = 0
    while killed < kills:
        out = scratch / f"killed-{number}"
        # Whole exports are few and kills many: most moments lie anywhere in what is left of the work.
        child = start(run, out)
        time.sleep(rng.random() * whole * rng.choice((0.3, 0.6, 1.0)))
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            killed += 1
        else:
            assert status == 0
            print(out)
            number += 1
    assert os.waitpid(start(run, scratch / f"killed-{number}"), 0)[1] == 0
    print(scratch / f"killed-{number}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
