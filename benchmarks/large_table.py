"""Tables of 1.5 million rows, each read in a process of its own: seconds, and the most memory that it took.

A table of labels beside three pictures (`ingest`), people's ratings (`bench rank`'s reader), and a release's
trajectories (`import`). A file larger than any real one is refused in one line.

Run: python benchmarks/large_table.py [--rows 1500000]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from plantain.cli import main as plantain
from plantain.records import InputError

MOST_MB = 1024


def labels(folder: Path, rows: int) -> str:
    import cv2

    rng = np.random.default_rng(1)
    for number in range(3):
        cv2.imwrite(
            str(folder / f"x{number}.png"),
            rng.integers(40 * number, 40 * number + 90, (300, 300, 3), dtype=np.uint8),
        )
    with (folder / "labels.csv").open("w", encoding="utf-8") as file:
        file.write("file,labels,Patient ID,note\n")
        for row in range(rows):
            name = f"x{row}.png" if row < 3 else f"folder{row % 97}/picture-{row:07d}.png"
            file.write(f"{name},AMD,P{row // 3:06d},some words that nobody reads {row}\n")
    words = ["ingest", "folder", str(folder), "--modality", "fundus", "--licence", "open", "--skip-text"]
    return f"exit code {plantain([*words, '--out', str(folder / 'catalogue')])}"


def ratings(folder: Path, rows: int) -> str:
    from plantain.bench.leaderboard.humans import _lines

    path = folder / "ratings.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write("sample,model,EA,CP,VQ\n")
        file.writelines(f"sample-{row:07d},editor-{row % 9},5,7,8.5\n" for row in range(rows))
    return f"{sum(1 for _ in _lines(path))} rows"


def trajectories(folder: Path, rows: int) -> str:
    (folder / "trajectories").mkdir()
    with (folder / "trajectories" / "trajectories.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(
            json.dumps({"task": {"id": f"{row:032x}"}, "attempts": []}) + "\n" for row in range(rows)
        )
    return f"exit code {plantain(['import', str(folder), '--run', str(folder / 'run')])}"


TABLES: dict[str, Callable[[Path, int], str]] = {
    "labels": labels,
    "ratings": ratings,
    "trajectories": trajectories,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_500_000)
    parser.add_argument("--table", choices=TABLES)
    options = parser.parse_args()
    if not options.table:
        again = [sys.executable, __file__, "--rows", str(options.rows), "--table"]
        return max(subprocess.run([*again, name]).returncode for name in TABLES)
    with tempfile.TemporaryDirectory() as made:
        begun = time.process_time()
        try:
            said = TABLES[options.table](Path(made), options.rows)
        except InputError as error:
            said = str(error)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{options.table}: {options.rows} rows, {time.process_time() - begun:.0f} s of processor, "
            f"at most {peak:.0f} MB: {said}",
            flush=True,
        )
    return int(peak > MOST_MB)


if __name__ == "__main__":
    sys.exit(main())
