"""How often different films are taken for one another, and copies of one film are not: `plantain bench leakage`.

A benchmark of the films is compared by the command itself with folders of their copies, and one half of them with the
other. About 6 minutes for 300 films.

Usage: python benchmarks/leakage.py FOLDER [COPY...]

FOLDER has distinct radiographs, one a patient or several; COPY is a kind of copy, e.g. "JPEG 60". All by default.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.leakage import CUT_LIMIT
from plantain.bench.benchmark.native_format import BenchmarkWriter, encode_png
from plantain.bench.benchmark.samples import Sample, plain_image
from plantain.pixels.arrays import Pixels
from plantain.pixels.likeness import LIMIT


def cut(share: float) -> Callable[[Pixels], Pixels]:
    def one(pixels: Pixels) -> Pixels:
        down, right = round(pixels.shape[0] * share), round(pixels.shape[1] * share)
        return pixels[down : pixels.shape[0] - down, right : pixels.shape[1] - right]

    return one


def jpeg(pixels: Pixels) -> Pixels:
    Image.fromarray(pixels).save(file := io.BytesIO(), "JPEG", quality=60)
    return np.asarray(Image.open(file))


SPOILT: dict[str, Callable[[Pixels], Pixels]] = {
    "JPEG 60": jpeg,
    "half the size": lambda p: np.asarray(Image.fromarray(p).resize((p.shape[1] // 2, p.shape[0] // 2))),
    "10 % brighter": lambda p: np.clip(p * 1.1, 0, 255).astype(np.uint8),
    "1 % cut off each side": cut(0.01),
    "1.5 % cut off each side": cut(0.015),
    "2 % cut off each side": cut(0.02),
    "2 % cut off one side": lambda p: p[round(p.shape[0] * 0.02) :],
    "5 % cut off each side": cut(0.05),
    "turned over": lambda p: p[:, ::-1],
    "turned over, JPEG 60": lambda p: jpeg(np.ascontiguousarray(p[:, ::-1])),
}


def films_of(files: list[Path], out: Path) -> Benchmark:
    """A benchmark of these films, one a sample."""
    with BenchmarkWriter(out, out.name) as writer:
        for path in files:
            pixels = np.asarray(Image.open(path).convert("RGB"))
            size = (pixels.shape[1], pixels.shape[0])
            image = plain_image(path.stem, size, "films")
            sample = Sample(path.stem, "Lung", "film", "none", path.stem, image, Path(), size)
            writer.add(sample, pixels)
    return Benchmark.load(out)


def alike(bench: Benchmark, place: Path) -> list[dict[str, object]]:
    """The pairs that `plantain bench leakage BENCH PLACE --json` prints."""
    command = [sys.executable, "-m", "plantain", "bench", "leakage", str(bench.root), str(place), "--json"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return list(told[0]["pairs"])


def main() -> None:
    files = sorted(
        path for path in Path(sys.argv[1]).rglob("*") if path.suffix.lower() in (".png", ".jpg", ".jpeg")
    )
    wanted = sys.argv[2:] or list(SPOILT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = films_of(files, folder / "films")
        print(f"{len(files)} films; limit {LIMIT} of 256 bits, {CUT_LIMIT} where one is cut or turned over")
        for what in wanted:
            copies = folder / what.replace(" ", "-")
            copies.mkdir()
            for sample in bench.samples:
                copy = SPOILT[what](bench.previous(sample))
                (copies / f"{sample.id}.png").write_bytes(encode_png(np.ascontiguousarray(copy)))
            pairs = alike(bench, copies)
            right = sum(Path(str(pair["other"])).stem == pair["sample"] for pair in pairs)
            print(
                f"{what:26} known again {right} of {len(files)}; taken for another film {len(pairs) - right}",
                flush=True,
            )
            shutil.rmtree(copies)
        halves = files[::2], files[1::2]
        for number, (first, second) in enumerate(
            (halves, halves[::-1])
        ):  # each film among half of the others
            part, rest = films_of(first, folder / f"half {number}"), folder / f"rest {number}"
            rest.mkdir()
            for path in second:
                Image.open(path).convert("RGB").save(rest / f"{path.stem}.png")
            pairs = [(pair["sample"], pair["other"], pair["bits"]) for pair in alike(part, rest)]
            print(
                f"{len(first)} films against {len(second)} other ones: {len(pairs)} alike {pairs}", flush=True
            )


if __name__ == "__main__":
    main()
