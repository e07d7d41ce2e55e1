"""Importing a table of pairs: rows a second and memory, which must not grow with the rows.

Rows name some originals and their edits, and another finding each, so that every row becomes a task. Their
pixels are 1,024 a side as published sets have them (JPEG, taken as they are), or with `--side 256` are enlarged.

    python benchmarks/import_pairs.py [ROWS] [--side 1024] [--originals 50]
"""

from __future__ import annotations

import argparse
import csv
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from plantain.release.importing.pairs import import_pairs

COLUMNS = ("id", "original", "edited", "instruction", "finding", "modality", "direction", "verdict")


def table(folder: Path, rows: int, side: int, originals: int) -> Path:
    """Images with a film's grain, and the rows about them: ten edits of an original follow each other."""
    rng = np.random.default_rng(18)
    for number in range(originals):
        film = 90 + 30 * np.sin(np.arange(side) / side * 9)[None] + rng.normal(0, 4, (side, side))
        Image.fromarray(film.astype(np.uint8)).save(folder / f"{number}.jpg", quality=92)
        film[side // 4 : side // 2, side // 4 : side // 2] += 25
        Image.fromarray(film.astype(np.uint8)).save(folder / f"{number}-edited.jpg", quality=92)
    path = folder / "edits.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in range(rows):
            number = row // 10 % originals
            words = (
                f"Add finding {row}",
                f"finding {row}",
                "chest_xray",
                "add",
                ("true", "false", "")[row % 3],
            )
            writer.writerow((row, f"{number}.jpg", f"{number}-edited.jpg", *words))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=10_000)
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument("--originals", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = table(Path(name), options.rows, options.side, options.originals)
        started = time.monotonic()
        summary = import_pairs(path, Path(name) / "run")
        assert summary.tasks == options.rows, summary.left_out
        took, used = time.monotonic() - started, resource.getrusage(resource.RUSAGE_SELF)
        each = (used.ru_utime + used.ru_stime) / summary.tasks * 1000
        print(f"{summary.tasks:9,} tasks {took:6.0f} s  {peak_mb():5.0f} MB, {each:.0f} ms of a core each")


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
