"""MB/s of `plantain export` and `plantain verify` against `cp` plus `sha256sum` of the same bytes in the same run.

The run is synthetic in its story and real in its bytes: 1024x1024 JPEG files in normal form (pieces of a real
retina), each with its own hash. A copy that may be lost in a power cut is the floor; beside it stands one that is made
durable, as an export makes its files. Usage:

    python benchmarks/export.py --images 1000 20000 --layout parquet med-banana

Exit code 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from simulated.releases import make_run, plantain, timed

EXPORT_TARGET, VERIFY_TARGET = 0.5, 0.9


def measure(scratch: Path, images: int, layout: str) -> tuple[dict[str, object], bool]:
    """One line of the table, and whether its targets are met."""
    load = os.getloadavg()[0]
    run, out, copy = scratch / f"run{images}", scratch / "out", scratch / "copy"
    if not run.exists():
        make_run(run, images, 1024)
        os.sync()
    for folder in (out, copy):
        shutil.rmtree(folder, ignore_errors=True)
    export_s, export_mb = plantain(
        "export", str(run), "--to", str(out), "--layout", layout, "--licence", "CC-BY-4.0", "--json"
    )
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
    os.sync()
    copy_s, _ = timed(["cp", "-r", str(out), str(copy)])
    begun = time.perf_counter()
    os.sync()
    sync_s = time.perf_counter() - begun
    sum_s, _ = timed(["sh", "-c", f"find {copy} -type f -print0 | xargs -0 sha256sum"])
    verify_s, verify_mb = plantain("verify", str(out), "--json")
    floor = copy_s + sum_s
    told = {
        "images": images,
        "layout": layout,
        "MB": round(size),
        "export MB/s": round(size / export_s),
        "verify MB/s": round(size / verify_s),
        "cp+sha256sum MB/s": round(size / floor),
        "cp+sync+sha256sum MB/s": round(size / (floor + sync_s)),
        "export / floor": round(floor / export_s, 2),
        "export / durable floor": round((floor + sync_s) / export_s, 2),
        "verify / floor": round(floor / verify_s, 2),
        "export peak MB": round(export_mb),
        "verify peak MB": round(verify_mb),
        "load before": round(load, 2),
    }
    return told, floor / export_s >= EXPORT_TARGET and floor / verify_s >= VERIFY_TARGET


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, nargs="*", default=[1000])
    parser.add_argument("--layout", nargs="*", default=["parquet", "med-banana"])
    parser.add_argument("--scratch", type=Path, default=None)
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(dir=args.scratch) as name:
        for images in args.images:
            for layout in args.layout:
                told, met = measure(Path(name), images, layout)
                print(json.dumps(told), flush=True)
                good = good and met
    print(
        f"targets (export {EXPORT_TARGET}, verify {VERIFY_TARGET} of the floor): {'met' if good else 'MISSED'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
