"""How often different films are taken for one another, and copies of one film are not: `plantain bench overlap`.

A benchmark of the films is compared with folders of their copies, and with itself. About 4 minutes for 300 films.

Usage: python benchmarks/overlap.py FOLDER   (a folder of distinct radiographs, one a patient or several)
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import BenchmarkWriter, encode_png, plain_image
from plantain.bench.benchmark.overlap import CUT_LIMIT, overlap
from plantain.bench.benchmark.samples import Sample
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


def main() -> None:
    files = sorted(
        path for path in Path(sys.argv[1]).rglob("*") if path.suffix.lower() in (".png", ".jpg", ".jpeg")
    )
    with tempfile.TemporaryDirectory() as folder:
        films = Path(folder) / "films"
        with BenchmarkWriter(films, "films") as writer:
            for number, path in enumerate(files):
                pixels = np.asarray(Image.open(path).convert("RGB"))
                size = (pixels.shape[1], pixels.shape[0])
                image = plain_image(str(number), size, "films")
                sample = Sample(str(number), "Lung", "film", "none", str(number), image, Path(), size)
                writer.add(sample, pixels)
        bench = Benchmark.load(films)
        print(f"{len(files)} films; limit {LIMIT} of 256 bits, {CUT_LIMIT} where one is cut or turned over")
        for what, spoil in SPOILT.items():
            copies = Path(folder) / "copies"
            copies.mkdir()
            for sample in bench.samples:
                copy = spoil(bench.previous(sample))
                (copies / f"{sample.id}.png").write_bytes(encode_png(np.ascontiguousarray(copy)))
            pairs = overlap(bench, copies).pairs
            right = sum(pair.other == f"{pair.sample}.png" for pair in pairs)
            print(
                f"{what:26} known again {right} of {len(files)}; taken for another film {len(pairs) - right}"
            )
            for path in copies.iterdir():
                path.unlink()
            copies.rmdir()
        others = []
        for sample in bench.samples:  # each film among all the others
            others.append((sample.id, bench.previous(sample)))
        half = len(others) // 2
        for first, second in ((others[:half], others[half:]), (others[half:], others[:half])):
            part = Benchmark("half", films, tuple(bench.sample(name) for name, _ in first), bench.hashes)
            rest = Path(folder) / "rest"
            rest.mkdir()
            for name, pixels in second:
                (rest / f"{name}.png").write_bytes(encode_png(pixels))
            pairs = overlap(part, rest).pairs
            told = [
                (files[int(one.sample)].name, files[int(Path(one.other).stem)].name, one.bits)
                for one in pairs
            ]
            print(f"{len(first)} films against {len(second)} other ones: {len(pairs)} alike {told}")
            for path in rest.iterdir():
                path.unlink()
            rest.rmdir()


if __name__ == "__main__":
    main()
