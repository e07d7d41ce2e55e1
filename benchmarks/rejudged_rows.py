"""Memory and time of what `plantain rejudge` holds of a run's rows: three judges on n attempts of as many pictures.

    python benchmarks/rejudged_rows.py [N]

Prints seconds to take the rows in, seconds to compute tallies and flips, and what the process's peak grew by.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Iterator

from plantain.audit.rejudging.flips import JudgedRow
from plantain.audit.rejudging.table import JudgedTable

JUDGES = ("a/one", "a/two", "published")
CRITERIA = ("instruction_compliance", "structural_plausibility", "realism", "fidelity")


def rows(n: int) -> Iterator[list[JudgedRow]]:
    draw = random.Random(5)
    for number in range(n):
        about = (
            "chest_xray",
            f"finding {number % 12}",
            ("add", "remove")[number % 2],
            f"group of image {number}",
        )
        yield [
            JudgedRow(
                f"row {number}", f"{number:020x}", 0, 1, judge, draw.random() < 0.5,
                {name: draw.random() < 0.7 for name in CRITERIA}, *about, "0" * 64, "1" * 64,
            )
            for judge in JUDGES
        ]  # fmt: skip


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    before, begun, table = peak_mb(), time.monotonic(), JudgedTable()
    for own in rows(n):
        table.add(own)
    taken, held = time.monotonic(), peak_mb()
    told, found = table.tallies(), table.flips()
    print(f"{n:,} attempts, {len(told)} judges, {len(found)} cells of flips")
    print(f"taken in: {taken - begun:.0f} s, +{held - before:.0f} MB")
    print(f"computed: {time.monotonic() - taken:.0f} s, +{peak_mb() - before:.0f} MB in all")


if __name__ == "__main__":
    main()
