"""A benchmark as the rest of the program sees it: samples, and the pixels behind them."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import orjson
from PIL import Image

from plantain.bench.benchmark.entries import Reading
from plantain.bench.benchmark.medebench import METADATA, read_medebench
from plantain.bench.benchmark.native_format import OWN, read_own
from plantain.bench.benchmark.regions import Grey, StoredMask, read_mask, resized_grey, resized_region
from plantain.bench.benchmark.samples import Sample
from plantain.files.opening import check_inside
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import decode_untrusted
from plantain.records import InputError
from plantain.records.messages import command_line


@dataclass(frozen=True)
class Benchmark:
    """A benchmark on disk. Make one with `Benchmark.load`; pixels are read on demand.

    Attributes:
        name: e.g. "MedEBench".
        root: its folder.
        samples: sorted by id.
        hashes: SHA-256 of (previous, changed, roi) by sample id, "" without a file.

    Example:
        >>> bench = Benchmark.load("bench")
        >>> bench.previous(bench.sample("1")).shape, bench.roi(bench.sample("1")).dtype
        ((96, 120, 3), dtype('bool'))
    """

    name: str
    root: Path
    samples: tuple[Sample, ...]
    hashes: dict[str, tuple[str, str, str]]

    @classmethod
    def load(cls, path: Path | str) -> Benchmark:
        """Read a benchmark: MedEBench as published, or our own format.

        Metadata and the files' headers are checked and every file is hashed; no pixel is decoded. `plantain bench
        check` finds more. Addresses of the pairs are dropped, as they can name patients; their hashes name clusters.

        Args:
            path: the folder, or the metadata file in it.

        Raises:
            InputError: the path has no benchmark, or one with problems; the first is named.
        """
        reading = read_benchmark(Path(path))
        if errors := reading.errors:
            more = (
                f" (and {len(errors) - 1} more: {command_line('bench', 'check', path)})" if errors[1:] else ""
            )
            detail = str(errors[0]).partition(": ")[2]
            raise InputError(f"{reading.root / errors[0].file}: {detail}{more}")
        samples = tuple(replace(sample, source="") for sample in reading.samples)
        return cls(reading.name, reading.root, samples, reading.hashes)

    def __len__(self) -> int:
        return len(self.samples)

    def subset(self, ids: Collection[str]) -> Benchmark:
        """Return the benchmark with these samples only."""
        kept = frozenset(ids)
        return replace(self, samples=tuple(sample for sample in self.samples if sample.id in kept))

    def sample(self, sample_id: str) -> Sample:
        """Return one sample. Raises InputError if there is none of that id."""
        found = self._by_id.get(sample_id)
        if found is None:
            raise InputError(f"{self.root}: no sample {sample_id!r}")
        return found

    def previous(self, sample: Sample) -> Pixels:
        """Return the image before, uint8 (H, W, 3), of `sample.size`."""
        return _pixels(sample.previous)

    def changed(self, sample: Sample) -> Pixels:
        """Return the image after, uint8 (H, W, 3), resized to the previous image's size (bicubic, as published).

        Raises:
            InputError: the sample has none.
        """
        return resized_bicubic(_pixels(_present(sample.changed, sample, "real image after")), sample.size)

    def mask(self, sample: Sample) -> StoredMask:
        """Return the region's file at its own size. Raises InputError if the sample has none."""
        path = _present(sample.roi, sample, "region of interest")
        return read_mask(path.read_bytes(), str(path))

    def roi(self, sample: Sample) -> Mask:
        """Return the region of interest, bool (H, W), resized to the previous image's size (nearest neighbour)."""
        return resized_region(self.mask(sample).region, sample.size)

    def roi_grey(self, sample: Sample) -> Grey:
        """Return the region's file as grey levels, uint8 (H, W), as the published code reads it."""
        return resized_grey(self.mask(sample).grey, sample.size)

    def content_of(self, sample: Sample) -> str:
        """Return the SHA-256 of all of a sample that outputs and scores depend on: its texts and files.

        Its cluster is left out, as it can change when samples are added, and so is its key concept.
        """
        texts = (sample.id, sample.organ, sample.task, sample.prompt, sample.rephrased, sample.detailed)
        fields = [*texts, sample.direction.value, sample.finding, *self.hashes[sample.id]]
        return hashlib.sha256(orjson.dumps(fields)).hexdigest()

    @functools.cached_property
    def digest(self) -> str:
        """Return the SHA-256 over all samples without their key concepts; the same wherever the folder is."""
        fields = [[self.content_of(sample), sample.cluster] for sample in self.samples]
        return hashlib.sha256(orjson.dumps(fields)).hexdigest()

    @functools.cached_property
    def _by_id(self) -> dict[str, Sample]:
        return {sample.id: sample for sample in self.samples}


def read_benchmark(path: Path) -> Reading:
    """Read metadata and headers of either format, with every problem and the addresses of the pairs.

    Raises:
        InputError: the path has no benchmark.
    """
    metadata = metadata_of(path)
    return read_own(metadata) if metadata.name == OWN else read_medebench(metadata)


def resized_bicubic(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Return an image at another (width, height), as the published code resizes (Pillow's bicubic)."""
    if (pixels.shape[1], pixels.shape[0]) == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC))


def metadata_of(path: Path) -> Path:
    """Return the metadata file of a benchmark of either format. Raises InputError if there is none."""
    if path.is_file() and path.suffix == ".json":
        return path
    if not path.is_dir():
        raise InputError(f"{path}: no such folder; a benchmark is a folder with {OWN} or {METADATA}")
    for candidate in (path / OWN, path / METADATA, path / "editing" / METADATA):
        if candidate.is_file():
            check_inside(path, candidate)
            return candidate
    raise InputError(f"{path}: no benchmark: neither {OWN} nor MedEBench's {METADATA} in it")


def _pixels(path: Path) -> Pixels:
    return decode_untrusted(path.read_bytes(), str(path))


def _present(path: Path | None, sample: Sample, what: str) -> Path:
    if path is None:
        raise InputError(f"sample {sample.id}: no {what}")
    return path
