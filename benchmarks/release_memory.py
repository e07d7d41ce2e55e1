"""Peak memory of `plantain export` and `plantain verify` for every layout, each a process of its own.

Two questions, measured apart. Do very many attempts fit: 100,000 of them, in tasks of four rounds and again one each
(as many source images as attempts), with images of 64x64 pixels, since rows are what grows. And is memory flat
in the size of the images: 1024x1024 files, few and four times as many. Target: 500 MB.

    python benchmarks/release_memory.py --attempts 100000 --full 2000 8000

Exit code 1 where the target is missed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from simulated.releases import ROUNDS, make_run, plantain

LAYOUTS = ("trajectory", "med-banana", "parquet", "preference", "webdataset")
EVERYTHING = ",".join(LAYOUTS)
TARGET_MB = 500


def measure(scratch: Path, run: Path, what: str) -> bool:
    """A line for each layout; whether all of them met the target."""
    out = scratch / "out"
    good = True
    for layout in (*LAYOUTS, EVERYTHING):
        shutil.rmtree(out, ignore_errors=True)
        export_s, export_mb = plantain(
            "export", str(run), "--to", str(out), "--layout", layout, "--licence", "CC-BY-4.0", "--json"
        )
        verify_s, verify_mb = plantain("verify", str(out), "--json")
        good = good and max(export_mb, verify_mb) <= TARGET_MB
        name = "all of them" if layout == EVERYTHING else layout
        print(
            f"{what:<44} {name:<12} export {export_mb:4.0f} MB ({export_s:4.0f} s)"
            f"   verify {verify_mb:4.0f} MB ({verify_s:4.0f} s)",
            flush=True,
        )
    shutil.rmtree(out, ignore_errors=True)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attempts", type=int, default=100_000)
    parser.add_argument(
        "--full", type=int, nargs="*", default=[2000, 8000], help="numbers of full-size images"
    )
    parser.add_argument("--scratch", type=Path, default=None)
    args = parser.parse_args()
    cases = [(args.attempts, 64, ROUNDS), (args.attempts, 64, 1)] if args.attempts else []
    cases += [(images, 1024, ROUNDS) for images in args.full]
    good = True
    for attempts, side, rounds in cases:
        with tempfile.TemporaryDirectory(dir=args.scratch) as name:
            run = Path(name) / "run"
            make_run(run, attempts, side, rounds)
            what = f"{attempts:,} attempts, {rounds} a task, {side}x{side}"
            good = measure(Path(name), run, what) and good
    print(f"target {TARGET_MB} MB: {'met' if good else 'MISSED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
