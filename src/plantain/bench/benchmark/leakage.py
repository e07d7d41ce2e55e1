"""Data leakage: images of a benchmark that also occur elsewhere, such as in an editor's training data.

Near duplicates are found by the 256-bit codes of `pixels.likeness`, which survive another codec, size or exposure.
Images are compared whole and without uniform borders, as a build pads images to a square.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.catalogue.store import NAME as CATALOGUE
from plantain.catalogue.store import Catalogue
from plantain.files.opening import (
    MAX_FILE_BYTES,
    check_inside,
    check_received,
    files_like,
    is_system_file,
    open_regular,
    read_inside,
)
from plantain.files.parquet import BATCH, open_parquet, unpacks_too_far
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage, decode_untrusted, one_line
from plantain.pixels.likeness import LIMIT, distances, likeness
from plantain.records import InputError
from plantain.records.messages import counted, like_path

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_UNREAD = 10
"""Unread files in a printed line; the JSON has all."""

_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp"})
_BORDER_LEVELS, _SMALLEST = 6, 64
_HEAD = 1 << 16
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{2000}")


@dataclass(frozen=True, slots=True)
class Duplicate:
    """An image of a benchmark and its nearest duplicate elsewhere.

    Attributes:
        sample, cluster: the sample's id and its cluster in the benchmark.
        shown: "previous" or "changed".
        other: path or name of the duplicate.
        bits: number of differing bits of the two images' 256-bit codes.
    """

    sample: str
    cluster: str
    shown: str
    other: str
    bits: int


@dataclass(frozen=True, slots=True)
class Leakage:
    """The images that a benchmark shares with another folder.

    Attributes:
        benchmark: name of the benchmark.
        place: name of the other folder.
        samples, clusters: their numbers in the benchmark; samples of one original form one cluster.
        seen: number of images in the other folder.
        pairs: the nearest duplicate of each image of the benchmark that occurs there.
        unread: files, tar members and columns there that may contain images and were not read.
    """

    benchmark: str
    place: str
    samples: int
    clusters: int
    seen: int
    pairs: tuple[Duplicate, ...]
    unread: tuple[str, ...] = ()

    @property
    def samples_found(self) -> int:
        return len({pair.sample for pair in self.pairs})

    @property
    def clusters_found(self) -> int:
        return len({pair.cluster for pair in self.pairs})

    @property
    def line(self) -> str:
        """One line with the number of originals and samples that occur in the other folder."""
        if not self.pairs:
            compared = f"{counted(self.seen, 'image')} in {self.place}"
            return f"no sample is a near duplicate of {compared}{_not_read(self.unread)}"
        return (
            f"{self.clusters_found:,} of {counted(self.clusters, 'original')} "
            f"({counted(self.samples_found, 'sample')}) are near duplicates of images in {self.place}"
            f"{_not_read(self.unread)}"
        )

    def as_json(self) -> dict[str, object]:
        return asdict(self) | {"samples_found": self.samples_found, "clusters_found": self.clusters_found}


def _not_read(unread: Sequence[str]) -> str:
    more = f" and {len(unread) - SHOWN_UNREAD} more" if len(unread) > SHOWN_UNREAD else ""
    return f"; not read, so not compared: {', '.join(unread[:SHOWN_UNREAD])}{more}" if unread else ""


def find_leakage(
    bench: Benchmark, place: Path, progress: Callable[[int, int | None], None] = lambda done, total: None
) -> Leakage:
    """Find near duplicates of a benchmark's images, before and after, in another folder.

    Args:
        bench: the benchmark.
        place: a catalogue, or a folder such as a release: its image files, tar shards and Parquet columns of images.
        progress: called with the images read so far (total None), then with the samples compared and their total.

    Raises:
        InputError: the place does not exist, has no image, or a file of it cannot be read.
    """
    names: list[str] = []
    codes: list[bytes] = []
    unread: list[str] = []
    for seen, (name, pixels) in enumerate(_images_of(place, unread), 1):
        progress(seen, None)
        of_image = _codes(pixels)
        names += [name] * len(of_image)
        codes += of_image
    if not codes:
        raise InputError(f"{place}: no images to compare with{_not_read(unread)}")
    there = np.frombuffer(b"".join(codes), np.uint8).reshape(len(codes), -1)
    pairs = []
    for done, sample in enumerate(bench.samples, 1):
        progress(done, len(bench.samples))
        shown = {"previous": bench.previous(sample)}
        if sample.changed is not None:
            shown["changed"] = bench.changed(sample)
        for what, pixels in shown.items():
            bits = np.stack([distances(np.frombuffer(code, np.uint8), there) for code in _codes(pixels)])
            nearest = bits.min(axis=0)
            at = int(nearest.argmin())
            if nearest[at] <= LIMIT:
                pairs.append(Duplicate(sample.id, sample.cluster, what, names[at], int(nearest[at])))
    counts = len(bench.samples), len({sample.cluster for sample in bench.samples}), len(set(names))
    return Leakage(bench.name, place.name, *counts, tuple(pairs), tuple(unread))


def _codes(pixels: Pixels) -> list[bytes]:
    """Return the codes of an image, as it is and without uniform borders."""
    within = _without_borders(pixels)
    return [likeness(pixels)] + ([likeness(within)] if within.shape != pixels.shape else [])


def _without_borders(pixels: Pixels) -> Pixels:
    """Return the image without outer rows and columns that have the corner's grey level."""
    grey = pixels.astype(np.int16).max(axis=2)
    inside = np.abs(grey - grey[0, 0]) > _BORDER_LEVELS
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if rows.size < _SMALLEST or columns.size < _SMALLEST:
        return pixels
    return pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _images_of(place: Path, unread: list[str]) -> Iterator[tuple[str, Pixels]]:
    """Yield (name, pixels) of every image of a place; add files that may have images and are not read to `unread`.

    Raises:
        InputError: it is neither a catalogue nor a folder.
    """
    if (place / CATALOGUE).is_file():
        with Catalogue.open(place) as catalogue:
            for image in catalogue.images():
                yield image.id, decode_untrusted(catalogue.read(image), image.id)
    elif place.is_dir():
        check_received(place)
        for path in files_like(place, "**/*"):
            yield from _images_in_file(place, path, unread)
    else:
        raise InputError(f"{place}: not a catalogue or folder{like_path(place)}")


def _images_in_file(place: Path, path: Path, unread: list[str]) -> Iterator[tuple[str, Pixels]]:
    name = str(path.relative_to(place))
    if path.suffix.lower() in _SUFFIXES:
        yield from _decoded(name, read_inside(place, path), unread)
    elif path.suffix == ".tar":
        for member, data in _images_in_tar(path, name, unread):
            yield from _decoded(member, data, unread)
    elif path.suffix == ".parquet":
        for cell, data in _images_in_parquet(path, name, unread):
            yield from _decoded(cell, data, unread)
    elif path.is_file():
        check_inside(place, path)
        with open_regular(path, name, None) as file:
            if _may_have_images(file.read(_HEAD)):
                unread.append(one_line(name))


def _decoded(name: str, data: bytes, unread: list[str]) -> Iterator[tuple[str, Pixels]]:
    try:
        yield name, decode_untrusted(data, name)
    except BadImage:
        unread.append(one_line(name))


def _may_have_images(head: bytes) -> bool:
    """Return True if a file's first bytes have a NUL, which no text has, or an image as base64."""
    return b"\0" in head or _BASE64.search(head) is not None


def _images_in_tar(path: Path, name: str, unread: list[str]) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if not member.isfile() or is_system_file(member.name):
                    continue
                if member.size > MAX_FILE_BYTES:
                    raise InputError(f"{path}: {member.name[:200]!r} claims {member.size >> 20} MB")
                file = archive.extractfile(member)
                if file is None:
                    continue
                if Path(member.name).suffix.lower() in _SUFFIXES:
                    yield f"{name}/{member.name}", file.read()
                elif _may_have_images(file.read(_HEAD)):
                    unread.append(one_line(f"{name}/{member.name}"))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{path}: not a readable tar file: {one_line(str(error))}") from error


def _images_in_parquet(path: Path, name: str, unread: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield images as `datasets` embeds them: structs of bytes and path."""
    with open_parquet(path) as file:
        fields = [field for field in file.schema_arrow if field.name != "mask"]
        columns = [field.name for field in fields if _is_image_column(field.type)]
        others = [field for field in fields if field.name not in columns]
        unread += [one_line(f"{name}: {field.name}") for field in others if "binary" in str(field.type)]
        if too_far := unpacks_too_far(file, frozenset(columns)):
            raise InputError(f"{path}: {too_far}")
        start = 0
        for batch in file.iter_batches(BATCH, columns=columns) if columns else ():
            for field, cells in zip(batch.schema, batch.columns, strict=True):
                for row, cell in enumerate(cells.to_pylist()):
                    if cell and cell["bytes"]:
                        yield f"{name}: {field.name}, row {start + row}", cell["bytes"]
            start += batch.num_rows


def _is_image_column(type: pa.DataType) -> bool:
    import pyarrow as pa

    if not pa.types.is_struct(type) or not {"bytes", "path"} <= {part.name for part in type}:
        return False
    return bool(pa.types.is_binary(data := type.field("bytes").type) or pa.types.is_large_binary(data))
