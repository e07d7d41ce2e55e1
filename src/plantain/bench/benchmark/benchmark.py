"""A benchmark as the rest of the program sees it: samples, the pixels behind them, and their regions of interest."""

from __future__ import annotations

import functools
import hashlib
import io
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import orjson
from PIL import Image, ImageOps

from plantain.bench.benchmark.medebench import METADATA, read_medebench
from plantain.bench.benchmark.native_format import OWN, read_document, read_own
from plantain.bench.benchmark.samples import Reading, Sample
from plantain.files.opening import check_inside, open_folder, read_inside, replace_file
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import declared_size, decode_untrusted
from plantain.pixels.encode import encode_mask
from plantain.records import InputError
from plantain.records.messages import command_line, like_path

Grey = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]

SOFT = 0.001
"""Share of pixels between the darkest and the brightest eighth from which a mask counts as soft."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredMask:
    """The content of a mask's file.

    Attributes:
        grey: uint8 (H, W), the luminance, which the published code uses; transparency is ignored.
        region: bool (H, W), the intended region.
        remark: why the two differ, or another peculiarity; "" for a plain binary mask.
    """

    grey: Grey
    region: Mask
    remark: str

    @property
    def broken(self) -> bool:
        """True if the region is empty or the whole image."""
        return bool(self.region.all() or not self.region.any())


def read_mask(data: bytes, name: str) -> StoredMask:
    """Return the region and the grey levels of a mask's file, at the file's own size.

    Pixels above half of the brightest level are the region, so 0 and 1, 0 and 255 and soft edges give the same one.
    In a map of at most 8 labels, all below 16, every label but 0 is the region.

    Raises:
        BadImage: the bytes are not an image.
    """
    grey, seen_through = _luminance(data, decode_untrusted(data, name))
    top = int(grey.max())
    numbers = 0 < top < 16 and np.unique(grey).size <= 9
    region: Mask = grey > (0 if numbers else top / 2)
    middle = float(((grey > top / 8) & (grey < top * 7 / 8)).mean())
    remark = ""
    if not top or region.all():
        remark = "it marks the whole image" if top else "it marks nothing"
    elif numbers:
        remark = f"stored as 0 to {top}, which the published code reads as almost empty"
    elif middle > SOFT:
        remark = f"soft edges: {middle:.1%} of pixels have intermediate levels; cut at half of the brightest"
    elif top != 255:
        remark = f"its brightest level is {top}, not 255, so the published code hides only part of the region"
    if seen_through:
        remark = "; ".join(filter(None, (remark, "its transparency is ignored, as in the published code")))
    return StoredMask(grey, region, remark)


def _luminance(data: bytes, shown: Pixels) -> tuple[Grey, bool]:
    """Return the luminance of a valid file, and True if it is transparent anywhere."""
    image: Image.Image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if image.mode[0] in "IF":
        return shown[..., 0], False
    seen_through = False
    if image.has_transparency_data:
        image = image.convert("RGBA")
        seen_through = int(np.asarray(image)[..., 3].min()) < 255
        image = image.convert("RGB")
    return np.asarray(image.convert("L")), seen_through


def resized_grey(grey: Grey, size: tuple[int, int]) -> Grey:
    """Return a grey mask, uint8 (H, W), resized to `size` (width, height) by nearest neighbour, as published."""
    if (grey.shape[1], grey.shape[0]) == size:
        return grey
    return np.asarray(Image.fromarray(grey).resize(size, Image.Resampling.NEAREST))


def resized_region(region: Mask, size: tuple[int, int]) -> Mask:
    """Return a region, bool (H, W), resized to `size` (width, height) by nearest neighbour."""
    return np.asarray(resized_grey(region.astype(np.uint8), size) > 0)


def proposed_regions(root: Path, sample_id: str) -> tuple[Mask, ...]:
    """Return a sample's proposed regions, bool (H, W), best first; () if none. Raise InputError if unreadable."""
    path = root / "proposals.json"
    if not path.is_file():
        return ()
    try:
        entries = orjson.loads(read_inside(root, path))["samples"].get(sample_id, [])
        files = [root / entry["file"] for entry in entries]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: samples: not plantain's format") from error
    return tuple(read_mask(read_inside(root, file), str(file)).region for file in files)


def choose_region(root: Path, sample_id: str, region: Mask, who: str, how: str) -> None:
    """Write a mask file as a sample's region of interest, and note in the metadata who chose it and how.

    This changes the benchmark's digest: load the benchmark again afterwards.

    Args:
        root: the folder of a benchmark in our own format.
        sample_id: the sample.
        region: bool (H, W), True inside; resized to the size of the image before by nearest neighbour.
        who: the reader's pseudonym.
        how: text for the note, e.g. "proposal 2", "drawn" or "proposal 1, corrected".

    Raises:
        InputError: the benchmark or sample is unknown, or the region is empty or the whole image.
    """
    path, data = root / OWN, read_document(root)
    row = next((row for row in data["samples"] if row["id"] == sample_id), None)
    if row is None:
        raise InputError(f"{path}: no sample {sample_id!r}")
    if not region.any() or region.all():
        raise InputError(f"{path}: sample {sample_id}: a region must mark a part of the image")
    size = declared_size(read_inside(root, root / row["previous"]))
    mask = encode_mask(resized_region(region, size))
    row["roi"] = f"previous_mask/{sample_id}.png"
    row["sha256"]["roi"] = hashlib.sha256(mask).hexdigest()
    notes = [note for note in row.get("notes", []) if not note.startswith("region:")]
    row["notes"] = [*notes, f"region: chosen by {who} ({how})"]
    target = root / row["roi"]
    open_folder(root, target.parent.name)
    replace_file(target, mask)
    replace_file(path, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")


@dataclass(frozen=True)
class Benchmark:
    """A benchmark on disk. Make one with `Benchmark.load`; pixels are read on demand.

    Attributes:
        name: e.g. "MedEBench".
        root: the benchmark's folder.
        samples: sorted by id.
        hashes: SHA-256 (hex) of the files (previous, changed, roi) by sample id; "" where the sample has none.

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
        check` finds more. Source addresses are dropped, as they can name patients; clusters contain only their hashes.

        Args:
            path: the folder, or the metadata file in it.

        Raise InputError if the path has no benchmark, or one with problems; the first is named.
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
        """Return the benchmark with only the samples of these ids; unknown ids are ignored."""
        kept = frozenset(ids)
        return replace(self, samples=tuple(sample for sample in self.samples if sample.id in kept))

    def sample(self, sample_id: str) -> Sample:
        """Return the sample with this id. Raise InputError if the benchmark has none."""
        found = self._by_id.get(sample_id)
        if found is None:
            raise InputError(f"{self.root}: no sample {sample_id!r}")
        return found

    def previous(self, sample: Sample) -> Pixels:
        """Return the sample's image before the change, uint8 (H, W, 3), of `sample.size`."""
        return _pixels(sample.previous)

    def changed(self, sample: Sample) -> Pixels:
        """Return the image after the change, uint8 (H, W, 3), resized to `sample.size` (bicubic, as published).

        Raise InputError if the sample has none.
        """
        return resized_bicubic(_pixels(_present(sample.changed, sample, "real image after")), sample.size)

    def mask(self, sample: Sample) -> StoredMask:
        """Return the grey levels and the region of the sample's mask file, at its own size. InputError without one."""
        path = _present(sample.roi, sample, "region of interest")
        return read_mask(path.read_bytes(), str(path))

    def roi(self, sample: Sample) -> Mask:
        """Return the region of interest at `sample.size`: bool (H, W), True inside. Raise InputError without one."""
        return resized_region(self.mask(sample).region, sample.size)

    def roi_grey(self, sample: Sample) -> Grey:
        """Return the mask file's grey levels at `sample.size`: uint8 (H, W). Raise InputError without a mask."""
        return resized_grey(self.mask(sample).grey, sample.size)

    def content_of(self, sample: Sample) -> str:
        """Return the SHA-256 (hex) of everything in a sample that outputs and scores depend on: its texts and files.

        Its cluster and key concept are excluded; attention scores record the concept that they were measured for.
        """
        texts = (sample.id, sample.organ, sample.task, sample.prompt, sample.rephrased, sample.detailed)
        fields = [*texts, sample.direction.value, sample.finding, *self.hashes[sample.id]]
        return hashlib.sha256(orjson.dumps(fields)).hexdigest()

    @functools.cached_property
    def digest(self) -> str:
        """The SHA-256 (hex) of the contents and clusters of all samples, independent of the folder's path."""
        fields = [[self.content_of(sample), sample.cluster] for sample in self.samples]
        return hashlib.sha256(orjson.dumps(fields)).hexdigest()

    @functools.cached_property
    def _by_id(self) -> dict[str, Sample]:
        return {sample.id: sample for sample in self.samples}


def read_benchmark(path: Path) -> Reading:
    """Return the samples of a benchmark of either format with all problems of its metadata and file headers.

    Raises:
        InputError: the path has no benchmark.
    """
    metadata = metadata_of(path)
    return read_own(metadata) if metadata.name == OWN else read_medebench(metadata)


def resized_bicubic(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Return an image, uint8 (H, W, 3), resized to `size` (width, height) as published (Pillow's bicubic)."""
    if (pixels.shape[1], pixels.shape[0]) == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC))


def metadata_of(path: Path) -> Path:
    """Return the metadata file of a benchmark's folder, or the file itself. Raise InputError if there is none."""
    if path.is_file() and path.suffix == ".json":
        return path
    if not path.is_dir():
        near = like_path(path) or f"; a benchmark is a folder with {OWN} or {METADATA}"
        raise InputError(f"{path}: no such folder{near}")
    for candidate in (path / OWN, path / METADATA, path / "editing" / METADATA):
        if candidate.is_file():
            check_inside(path, candidate)
            return candidate
    raise InputError(
        f"{path}: no benchmark: neither {OWN} nor MedEBench's {METADATA} in it (bench from-build makes one of a run, "
        "bench prepare one of pairs)"
    )


def _pixels(path: Path) -> Pixels:
    return decode_untrusted(path.read_bytes(), str(path))


def _present(path: Path | None, sample: Sample, what: str) -> Path:
    if path is None:
        raise InputError(f"sample {sample.id}: no {what}")
    return path
