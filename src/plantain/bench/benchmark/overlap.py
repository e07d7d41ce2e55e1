"""Contamination: pictures of a benchmark that something else shows too, such as what an editor was trained on.

Near duplicates are told by the codes of `pixels.likeness`, which survive another codec, size or exposure. Pictures are
compared whole, without their uniform borders, since a build's pictures are padded to a square, with up to 3 % cut off
all around on either side, and turned over.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.medebench import METADATA
from plantain.bench.benchmark.native_format import OWN
from plantain.catalogue.store import NAME as CATALOGUE
from plantain.catalogue.store import Catalogue
from plantain.files.opening import MAX_FILE_BYTES, check_received, read_inside
from plantain.journal import BadBlob, Journal, JournalReader
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode_untrusted, one_line
from plantain.pixels.likeness import BITS, LIMIT, Codes, distances, likeness
from plantain.records import InputError
from plantain.records.counts import counted

if TYPE_CHECKING:
    import pyarrow as pa

META = "bench.overlap"
"""Meta key under which a bench run keeps what was found, by arm and place."""

_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp"})
_BORDER = 6
_LEAST = 64
_CUTS = (0.01, 0.02, 0.03)
"""Shares of the sides that are cut off all around: a crop in between is at most half a step away."""

CUT_LIMIT = 25
"""Most bits between a picture and one that was cut or turned over: half a step of `_CUTS` moves up to 22 of them."""
_EVERY = 50

Watch = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Shared:
    """A picture of a benchmark and one that looks the same elsewhere.

    Attributes:
        sample, cluster: of the benchmark.
        shown: "previous" or "changed".
        other, group: the picture elsewhere, and what it belongs to there.
        bits: in how many of 256 bits their likeness differs.
        cut: they are alike once one of them is cropped or turned over.
    """

    sample: str
    cluster: str
    shown: str
    other: str
    group: str
    bits: int
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Overlap:
    """What a benchmark shares with something else.

    Attributes:
        benchmark, digest, place: names of both, and the hash of the benchmark's content.
        samples, clusters: of the benchmark; samples of one original are one cluster.
        seen: pictures that were looked at elsewhere.
        pairs: for each picture of the benchmark that is shown elsewhere, the nearest one.
    """

    benchmark: str
    digest: str
    place: str
    samples: int
    clusters: int
    seen: int
    pairs: tuple[Shared, ...]

    @property
    def samples_found(self) -> int:
        return len({pair.sample for pair in self.pairs})

    @property
    def clusters_found(self) -> int:
        return len({pair.cluster for pair in self.pairs})

    def as_json(self) -> dict[str, object]:
        return {
            **asdict(self),
            "limit_bits": LIMIT,
            "limit_bits_cut": CUT_LIMIT,
            "samples_found": self.samples_found,
            "clusters_found": self.clusters_found,
            "pairs": [asdict(pair) for pair in self.pairs],
        }

    def in_words(self) -> str:
        """One line for a table."""
        if not self.pairs:
            return f"no sample is a near duplicate of {counted(self.seen, 'picture')} in {self.place}"
        return (
            f"{self.clusters_found:,} of {counted(self.clusters, 'original')} "
            f"({counted(self.samples_found, 'sample')}) are near "
            f"duplicates of pictures in {self.place}"
        )


def overlap(bench: Benchmark, place: Path, watch: Watch = lambda done, total: None) -> Overlap:
    """Compares every picture of a benchmark, before and after, with every picture of a place.

    Args:
        bench: whose pictures are looked for.
        place: a catalogue, a run, a benchmark, or a folder such as a release: its files, tar shards and Parquet columns
            of images.
        watch: told how many pictures of the place were read, then how many of the benchmark's samples, and of how many.

    Raises:
        InputError: there is nothing at that place, or no picture in it.
    """
    names, codes, cuts = [], [], []
    for seen, (name, group, pixels) in enumerate(pictures_of(place)):
        if seen % _EVERY == 0:
            watch(seen, None)
        whole = _both(pixels)
        for number, code in enumerate(whole + _cut(pixels)):
            names.append((name, group))
            codes.append(np.frombuffer(code, np.uint8))
            cuts.append(number >= len(whole))
    if not codes:
        raise InputError(f"{place}: no pictures to compare with")
    theirs = _Codes(np.stack(codes), np.array(cuts))
    pairs = []
    for done, sample in enumerate(bench.samples):
        if done % _EVERY == 0:
            watch(done, len(bench.samples))
        shown = [("previous", bench.previous(sample))]
        shown += [("changed", bench.changed(sample))] if sample.changed is not None else []
        for what, pixels in shown:
            found = [theirs.nearest(code, False) for code in _both(pixels)]
            found += [theirs.nearest(code, True) for code in _cut(pixels) + _turned(pixels)]
            rank, bits, at, cut = min(found)
            if rank < 2 * BITS:
                name, group = names[at]
                pairs.append(Shared(sample.id, sample.cluster, what, name, group, bits, cut))
    clusters = len({sample.cluster for sample in bench.samples})
    return Overlap(
        bench.name, bench.digest, place.name, len(bench.samples), clusters, len(set(names)), tuple(pairs)
    )


async def record(found: Overlap, run: Path, arm: str) -> None:
    """Keeps in a bench run what its arm may have learned from, so that tables say it."""
    async with Journal.open(run) as journal:
        known = orjson.loads(journal.reader.meta(META) or "{}")
        known.setdefault(arm, {})[found.place] = {"said": found.in_words(), "digest": found.digest}
        await journal.set_meta(META, orjson.dumps(known).decode())


def recorded(reader: JournalReader) -> dict[str, list[str]]:
    """What a run knows of each arm's training pictures, a line for each place; by the arm's label."""
    known: dict[str, dict[str, dict[str, str]]] = orjson.loads(reader.meta(META) or "{}")
    return {arm: [record["said"] for _, record in sorted(places.items())] for arm, places in known.items()}


@dataclass(frozen=True, slots=True)
class _Codes:
    """Codes (N, 32) of a place, and of each whether its picture was cut for it."""

    codes: Codes
    cut: npt.NDArray[np.bool_]

    def nearest(self, code: bytes, cut: bool) -> tuple[int, int, int, bool]:
        """(rank, bits, place, whether either was cut) of the code that is most alike.

        The rank is below `BITS` for whole pictures within the limit, below twice that for cut ones, else above.
        """
        apart = distances(np.frombuffer(code, np.uint8), self.codes)
        either = self.cut | cut
        beyond = apart > np.where(either, CUT_LIMIT, LIMIT)
        rank = apart + 2 * BITS * beyond + BITS * (either & ~beyond)
        at = int(rank.argmin())
        return int(rank[at]), int(apart[at]), at, bool(either[at])


def _cut(pixels: Pixels) -> list[bytes]:
    """The codes of a picture with a little cut off all around."""
    found = []
    for share in _CUTS:
        down, right = round(pixels.shape[0] * share), round(pixels.shape[1] * share)
        found.append(likeness(pixels[down : pixels.shape[0] - down, right : pixels.shape[1] - right]))
    return found


def _turned(pixels: Pixels) -> list[bytes]:
    """The codes of a picture turned over, left to right."""
    return _both(np.ascontiguousarray(pixels[:, ::-1]))


def _both(pixels: Pixels) -> list[bytes]:
    """The codes of a picture, whole and without its borders; one where it has none."""
    within = _without_borders(pixels)
    return [likeness(pixels)] + ([likeness(within)] if within.shape != pixels.shape else [])


def _without_borders(pixels: Pixels) -> Pixels:
    """The picture without rows and columns at its edges that are all of the corner's colour."""
    grey = pixels.astype(np.int16).max(axis=2) if pixels.ndim == 3 else pixels.astype(np.int16)
    inside = np.abs(grey - grey[0, 0]) > _BORDER
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if rows.size < _LEAST or columns.size < _LEAST:
        return pixels
    return pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def pictures_of(place: Path) -> Iterator[tuple[str, str, Pixels]]:
    """(name, group, pixels) of every picture of a place. Raises InputError where there is nothing."""
    if (place / CATALOGUE).is_file():
        yield from _of_catalogue(place)
    elif (place / JOURNAL_NAME).is_file():
        yield from _of_run(place)
    elif (place / OWN).is_file() or (place / METADATA).is_file():
        for sample in (bench := Benchmark.load(place)).samples:
            yield f"{sample.id} previous", sample.cluster, bench.previous(sample)
            if sample.changed is not None:
                yield f"{sample.id} changed", sample.cluster, bench.changed(sample)
    elif place.is_dir():
        yield from _of_folder(place)
    else:
        raise InputError(f"{place}: not a catalogue, run, benchmark or folder")


def _of_catalogue(place: Path) -> Iterator[tuple[str, str, Pixels]]:
    with Catalogue.open(place) as catalogue:
        for image in catalogue.images():
            yield image.id, image.group or image.id, decode_untrusted(catalogue.read(image), image.id)


def _of_run(place: Path) -> Iterator[tuple[str, str, Pixels]]:
    with JournalReader.open(place) as reader:
        shown = [(image.id, image.group or image.id, image.prepared_sha256) for image in reader.images()]
        for row in reader.tasks():
            attempts = reader.attempts(row.id, row.generation)
            shown += [
                (f"{row.id} round {attempt.round}", row.task.image_id, attempt.edited)
                for attempt in attempts
                if attempt.edited
            ]
        for name, group, sha256 in shown:
            try:
                pixels = decode_untrusted(reader.read_blob(sha256), name)
            except BadBlob:
                continue  # of an imported release that did not bring it
            yield name, group, pixels


def _of_folder(place: Path) -> Iterator[tuple[str, str, Pixels]]:
    check_received(place)
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if path.suffix.lower() in _SUFFIXES:
            pictures: Iterator[tuple[str, bytes]] = iter([(name, read_inside(place, path))])
        elif path.suffix == ".tar":
            pictures = _of_tar(path, name)
        elif path.suffix == ".parquet":
            pictures = _of_parquet(path, name)
        else:
            continue
        for member, data in pictures:
            pixels = decode_untrusted(data, member)
            if path.suffix != ".parquet" or not _is_mask(data, pixels):
                yield member, member, pixels


def _of_tar(path: Path, name: str) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if not member.isfile() or Path(member.name).suffix.lower() not in _SUFFIXES:
                    continue
                if member.size > MAX_FILE_BYTES:
                    raise InputError(f"{path}: {member.name[:200]!r} claims {member.size >> 20} MB")
                file = archive.extractfile(member)
                if file is not None:
                    yield f"{name}/{member.name}", file.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{path}: not a readable tar file: {one_line(str(error))}") from error


def _of_parquet(path: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """Images as `datasets` embeds them: structs of bytes and path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from plantain.files.unpacking import unpacks_too_far

    try:
        with pq.ParquetFile(path) as file:
            columns = [field.name for field in file.schema_arrow if _holds_pictures(field.type)]
            if too_far := unpacks_too_far(file, frozenset(columns)):
                raise InputError(f"{path}: {too_far}")
            begin = 0
            # Few rows at once: a dictionary can make every one of them as large as the largest picture.
            for batch in file.iter_batches(4, columns=columns) if columns else ():
                for field, cells in zip(batch.schema, batch.columns, strict=True):
                    for row, cell in enumerate(cells.to_pylist() if _holds_pictures(field.type) else ()):
                        if cell and cell["bytes"]:
                            yield f"{name}: {field.name}, row {begin + row}", cell["bytes"]
                begin += batch.num_rows
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:  # the last: a path that is not UTF-8
        raise InputError(f"{path}: not a readable Parquet file: {one_line(str(error))}") from error


def _holds_pictures(type: pa.DataType) -> bool:
    import pyarrow as pa

    if not pa.types.is_struct(type) or not {"bytes", "path"} <= {part.name for part in type}:
        return False
    return bool(pa.types.is_binary(data := type.field("bytes").type) or pa.types.is_large_binary(data))


def _is_mask(data: bytes, pixels: Pixels) -> bool:
    """Whether a grey or indexed picture has two values at most."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        grey = image.mode in ("1", "L", "P")
    values = pixels[:, :, 0]
    return grey and bool(((values == values.min()) | (values == values.max())).all())
