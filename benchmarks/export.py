"""MB/s of `plantain export` and `plantain verify` against `cp` plus `sha256sum` of the same bytes in the same run.

The run is synthetic in its story and real in its bytes: 1024x1024 JPEG files in normal form (pieces of a real
retina), each with its own hash, four attempts and an original a task. A copy that may be lost in a power cut is the
floor. The machine may be busy: every round runs all four one after the other, and medians over the rounds of the ratios
are compared with the targets. Usage:

    python benchmarks/export.py --images 20000 --layout parquet med-banana --rounds 5

Exit code 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from simulated.releases import make_run, plantain, timed

EXPORT_TARGET, VERIFY_TARGET = 0.8, 1.0
"""Of `cp` plus `sha256sum`, and of `sha256sum` alone."""


def measure(scratch: Path, images: int, layout: str, rounds: int) -> tuple[dict[str, object], bool]:
    """One line of the table, and whether its targets are met."""
    run, out, copy = scratch / f"run{images}", scratch / "out", scratch / "copy"
    if not run.exists():
        make_run(run, images, 1024)
        os.sync()
    exports, verifies, seconds, peaks = [], [], [], []
    for _ in range(rounds):
        for folder in (out, copy):
            shutil.rmtree(folder, ignore_errors=True)
        os.sync()
        export_s, export_mb = plantain(
            "export", str(run), "--to", str(out), "--layout", layout, "--licence", "CC-BY-4.0", "--json"
        )
        copy_s, _ = timed(["cp", "-r", str(out), str(copy)])
        sum_s, _ = timed(["sh", "-c", f"find {copy} -type f -print0 | xargs -0 sha256sum"])
        verify_s, verify_mb = plantain("verify", str(out), "--json")
        exports.append((copy_s + sum_s) / export_s)
        verifies.append(sum_s / verify_s)
        seconds.append((export_s, copy_s, sum_s, verify_s))
        peaks.append((export_mb, verify_mb))
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
    export_x, verify_x = statistics.median(exports), statistics.median(verifies)
    found = {
        "images": images,
        "layout": layout,
        "MB": round(size),
        "export / (cp + sha256sum)": round(export_x, 2),
        "verify / sha256sum": round(verify_x, 2),
        "seconds (export, cp, sha256sum, verify)": [
            round(statistics.median(s), 1) for s in zip(*seconds, strict=True)
        ],
        "peak MB (export, verify)": [round(max(mb)) for mb in zip(*peaks, strict=True)],
        "load": round(os.getloadavg()[0], 1),
    }
    return found, export_x >= EXPORT_TARGET and verify_x >= VERIFY_TARGET


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, nargs="*", default=[2000])
    parser.add_argument("--layout", nargs="*", default=["parquet", "med-banana"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scratch", type=Path, default=None)
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(dir=args.scratch) as name:
        for images in args.images:
            for layout in args.layout:
                found, met = measure(Path(name), images, layout, args.rounds)
                print(json.dumps(found), flush=True)
                good = good and met
    print(
        f"targets (export {EXPORT_TARGET} of cp + sha256sum, verify {VERIFY_TARGET} of sha256sum): "
        f"{'met' if good else 'MISSED'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
