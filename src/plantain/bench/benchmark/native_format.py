"""Our own format of a benchmark: `benchmark.json` beside `previous/`, `changed/` and `previous_mask/`."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final

import cv2
import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from plantain.bench.benchmark.entries import BenchmarkEntry, EntryReader, Reading, id_order
from plantain.bench.benchmark.samples import Sample
from plantain.files.opening import read_inside
from plantain.files.writing import replace_file
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.encode import encode_mask
from plantain.records import Direction, Geometry, InputError, Licence, SourceImage

OWN: Final = "benchmark.json"
FORMAT: Final = "plantain-benchmark"
VERSION: Final = 1

_Text = Annotated[str, Field(max_length=20_000)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str
    organ: str = Field(min_length=1, max_length=200)
    task: str = Field(min_length=1, max_length=400)
    prompt: str = Field(min_length=1, max_length=20_000)
    previous: str
    rephrased: _Text = ""
    detailed: _Text = ""
    key_concept: _Text = ""
    direction: Direction = Direction.CHANGE
    finding: _Text = ""
    cluster: _Text = ""
    source: _Text = ""
    changed: str | None = None
    roi: str | None = None
    aligned: bool | None = None
    notes: tuple[str, ...] = ()
    sha256: dict[str, str] = Field(default_factory=dict)
    image: dict[str, object] | None = None


_ROW = TypeAdapter(_Row)
_IMAGE = TypeAdapter(SourceImage)


def read_own(metadata: Path, *, keep_sources: bool = False) -> Reading:
    """Reads `benchmark.json`.

    Raises:
        InputError: it is no such file, or a newer version of it.
    """
    try:
        data = orjson.loads(read_inside(metadata.parent, metadata))
    except orjson.JSONDecodeError as error:
        raise InputError(f"{metadata}: not JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{metadata}: format: expected {FORMAT!r}")
    version, name, rows = data.get("version"), data.get("name"), data.get("samples")
    if version != VERSION:
        raise InputError(
            f"{metadata}: version: {str(version)[:20]} is not read; this plantain reads {VERSION}"
        )
    if not isinstance(name, str) or not name or not isinstance(rows, list):
        field = "samples" if isinstance(name, str) and name else "name"
        raise InputError(f"{metadata}: {field}: expected {'a list' if field == 'samples' else 'text'}")
    reader = EntryReader(metadata.parent, metadata.name, name, keep_sources)
    for index, row in enumerate(rows):
        where = f"samples[{index}]"
        try:
            parsed = _ROW.validate_python(row)
            image = None if parsed.image is None else _IMAGE.validate_python(parsed.image)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))[:80]
            reader.problem(f"{where}.{place}" if place else where, str(first["msg"])[:200])
            continue
        reader.add(_entry(where, parsed, image))
    return reader.reading(name)


def _entry(where: str, row: _Row, image: SourceImage | None) -> BenchmarkEntry:
    return BenchmarkEntry(
        where=where,
        id=row.id,
        organ=row.organ,
        task=row.task,
        prompt=row.prompt,
        previous=(row.previous,),
        changed=(row.changed,) if row.changed else (),
        roi=(row.roi,) if row.roi else (),
        rephrased=row.rephrased,
        detailed=row.detailed,
        key_concept=row.key_concept,
        direction=row.direction,
        finding=row.finding,
        cluster=row.cluster,
        source=row.source,
        aligned=row.aligned,
        notes=row.notes,
        image=image,
        sha256=row.sha256,
    )


class BenchmarkWriter:
    """Writes a benchmark in our own format, a sample at a time; `benchmark.json` comes last, so that what was cut
    short is no benchmark yet.

    Args:
        out: a folder that does not exist, is empty, or holds only what a writer that was cut short left.
        name: of the benchmark.
        facts: anything else that the file should say of how it was made.

    Raises:
        InputError: the folder holds something.
    """

    def __init__(self, out: Path, name: str, facts: dict[str, object] | None = None) -> None:
        if out.exists() and (not out.is_dir() or not _unfinished(out)):
            raise InputError(f"{out}: exists and is not an empty folder; give a new one")
        self.out, self.name, self.facts = out, name, facts or {}
        self._rows: dict[str, dict[str, object]] = {}
        self._latest: list[tuple[Pixels, bytes]] = []

    @property
    def count(self) -> int:
        """Samples added so far."""
        return len(self._rows)

    def __enter__(self) -> BenchmarkWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()

    def add(
        self, sample: Sample, previous: Pixels, changed: Pixels | None = None, roi: Mask | None = None
    ) -> None:
        """Adds one sample; its paths, size and hashes are set here, whatever they say.

        Args:
            sample: everything known of it.
            previous, changed: uint8 (H, W, 3) of one size.
            roi: bool (H, W).
        """
        if sample.id in self._rows:
            raise ValueError(f"sample {sample.id!r} already exists")
        height, width = previous.shape[:2]
        files = {"previous": ("previous", self._encoded(previous))}
        if changed is not None:
            files["changed"] = ("changed", self._encoded(changed))
        if roi is not None:
            files["roi"] = ("previous_mask", encode_mask(roi))
        for what, array in (("changed", changed), ("roi", roi)):
            if array is not None and array.shape[:2] != (height, width):
                raise ValueError(
                    f"sample {sample.id!r}: {what} is {array.shape[:2]}, previous {(height, width)}"
                )
        paths, hashes = {}, {}
        for what, (folder, data) in files.items():
            path = self.out / folder / f"{sample.id}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data)
            paths[what] = f"{folder}/{sample.id}.png"
            hashes[what] = hashlib.sha256(data).hexdigest()
        self._rows[sample.id] = _row_of(sample, paths, hashes)

    def _encoded(self, pixels: Pixels) -> bytes:
        """As PNG; the last two are remembered, since one pair often makes two samples, there and back."""
        for array, data in self._latest:
            if array is pixels:
                return data
        data = encode_png(pixels)
        self._latest = [*self._latest[-1:], (pixels, data)]
        return data

    def close(self) -> Path:
        """Writes `benchmark.json` and returns its path."""
        rows = [self._rows[key] for key in sorted(self._rows, key=id_order)]
        data = {"format": FORMAT, "version": VERSION, "name": self.name, **self.facts, "samples": rows}
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / OWN
        replace_file(path, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
        return path


def _unfinished(out: Path) -> bool:
    """Nothing but the folders that a writer fills before it writes `benchmark.json`."""
    names = {path.name for path in out.iterdir()}
    return names <= {"previous", "changed", "previous_mask", "proposals", f"{Path(OWN).stem}.part"}


def encode_png(pixels: Pixels) -> bytes:
    """Lossless and deterministic: uint8 (H, W, 3) as PNG."""
    done, data = cv2.imencode(
        ".png", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_PNG_COMPRESSION, 4]
    )
    if not done:
        raise ValueError(f"cannot encode an image of shape {pixels.shape}")
    return bytes(data.tobytes())


def _row_of(sample: Sample, paths: dict[str, str], hashes: dict[str, str]) -> dict[str, object]:
    image = asdict(replace(sample.image, prepared_sha256=hashes["previous"]))
    row: dict[str, object] = {
        "id": sample.id,
        "organ": sample.organ,
        "task": sample.task,
        "prompt": sample.prompt,
        "direction": sample.direction.value,
        "cluster": sample.cluster,
        **paths,
        "sha256": hashes,
        "image": image,
    }
    for name in ("rephrased", "detailed", "key_concept", "finding", "source"):
        if getattr(sample, name):
            row[name] = getattr(sample, name)
    if sample.aligned is not None:
        row["aligned"] = sample.aligned
    if sample.notes:
        row["notes"] = list(sample.notes)
    return row


def plain_image(sample_id: str, size: tuple[int, int], dataset: str) -> SourceImage:
    """What is known of an image of which nothing is known but its size: unknown licence above all."""
    width, height = size
    geometry = Geometry(width, height, "pad", 0, 0, width, height)
    return SourceImage(sample_id, dataset, "unknown", (), Licence.UNKNOWN, "", "", geometry)
