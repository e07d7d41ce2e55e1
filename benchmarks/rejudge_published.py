"""Published edits under a judge: Med-Banana's sample, imported as pairs and judged again.

Its originals are not published. The median, pixel by pixel, of three or more edits of one source stands in for its
original; what all of them changed is lost in it, so this measures the way, and only roughly the edits.

    python benchmarks/rejudge_published.py TREE --to FOLDER [--judge M]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from plantain.pixels.decode import decode_untrusted
from plantain.pixels.encode import encode_source
from plantain.pixels.prepare import settle_grey
from plantain.release.importing.published import PublishedTree

FEWEST = 3


def stand_ins(tree: Path, to: Path) -> int:
    """Writes the median of each source's edits under its image's id; returns how many there are."""
    groups: dict[str, list[Path]] = defaultdict(list)
    for edit in PublishedTree(tree).edits():
        groups[edit.key.image_id].append(edit.path)
    to.mkdir(parents=True, exist_ok=True)
    made = 0
    for image, paths in groups.items():
        if len(paths) >= FEWEST:
            pixels = [decode_untrusted(path.read_bytes(), path.name) for path in paths]
            median = np.median(pixels, axis=0).astype(np.uint8)
            (to / f"{image}.jpg").write_bytes(encode_source(settle_grey(median)))
            made += 1
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--judge", action="append", default=None)
    options = parser.parse_args()
    print(f"{stand_ins(options.tree, options.to / 'originals')} originals stood in for")
    run = options.to / "run"
    plantain = [sys.executable, "-m", "plantain"]
    joined = ["--originals", str(options.to / "originals")]
    subprocess.run(
        [*plantain, "import", str(options.tree), "--layout", "pairs", "--run", str(run), *joined], check=True
    )
    judges = [f"--judge={name}" for name in options.judge or ["offline/instruments"]]
    subprocess.run([*plantain, "judge", "rejudge", str(run), *judges], check=True)


if __name__ == "__main__":
    main()
