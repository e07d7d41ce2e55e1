"""How often different films are taken for one another, and copies of one film are not: `plantain bench overlap`.

Usage: python benchmarks/overlap.py FOLDER   (a folder of distinct radiographs, one a patient or several)
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from plantain.pixels.arrays import Pixels
from plantain.pixels.likeness import LIMIT, close_pairs, distances, likeness


def spoilt(pixels: Pixels) -> dict[str, Pixels]:
    """A film as others may keep it."""
    image = Image.fromarray(pixels)
    image.save(file := io.BytesIO(), "JPEG", quality=60)
    half = image.resize((image.width // 2, image.height // 2))
    edge = max(1, image.width // 50)
    return {
        "JPEG 60": np.asarray(Image.open(file)),
        "half the size": np.asarray(half),
        "10 % brighter": np.clip(pixels * 1.1, 0, 255).astype(np.uint8),
        "2 % cut off each side": pixels[edge:-edge, edge:-edge],
        "turned over": pixels[:, ::-1],
    }


def main() -> None:
    files = sorted(
        path for path in Path(sys.argv[1]).rglob("*") if path.suffix.lower() in (".png", ".jpg", ".jpeg")
    )
    codes, missed = [], dict[str, int]()
    for path in files:
        pixels = np.asarray(Image.open(path).convert("RGB"))
        code = np.frombuffer(likeness(pixels), np.uint8)
        codes.append(code)
        for what, other in spoilt(pixels).items():
            apart = distances(code, np.frombuffer(likeness(other), np.uint8)[None])[0]
            missed[what] = missed.get(what, 0) + int(apart > LIMIT)
    stacked = np.stack(codes)
    found = [(files[one].name, files[other].name, bits) for one, other, bits in close_pairs(stacked)]
    pairs = len(files) * (len(files) - 1) // 2
    print(f"{len(files)} films, {pairs:,} pairs; limit {LIMIT} of 256 bits")
    print(f"different files within the limit: {len(found)}", *(f"  {pair}" for pair in found[:20]), sep="\n")
    for what, n in missed.items():
        print(f"not known again, {what}: {n} of {len(files)}")


if __name__ == "__main__":
    main()
