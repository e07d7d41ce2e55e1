"""Our own benchmark format, `benchmark.json` with three folders of images: read, write, withdraw patients.

Samples can only be withdrawn from this format; a published benchmark belongs to its authors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import cv2
import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plantain.bench.benchmark.samples import FOLDERS, EntryReader, Reading, Sample, id_order, plain_image
from plantain.files.opening import check_received, open_folder, read_inside, replace_file
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.encode import compressed, encode_mask, marked
from plantain.records import Direction, InputError, SourceImage, Withdrawal

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
    changed: str | None = None
    roi: str | None = None
    aligned: bool | None = None
    notes: tuple[str, ...] = ()
    sha256: dict[str, str] = Field(default_factory=dict)
    image: SourceImage | None = None


def read_own(metadata: Path) -> Reading:
    """Return the samples of `benchmark.json` with all problems of its rows and file headers.

    Raises:
        InputError: the file has another format or version.
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
    if not isinstance(name, str) or not name:
        raise InputError(f"{metadata}: name: expected text")
    if not isinstance(rows, list):
        raise InputError(f"{metadata}: samples: expected a list")
    reader = EntryReader(metadata.parent, metadata.name)
    for index, row in enumerate(rows):
        where = f"samples[{index}]"
        try:
            parsed = _Row.model_validate(row)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))[:80]
            reader.problem(f"{where}.{place}" if place else where, str(first["msg"])[:200])
            continue
        texts = {
            key: getattr(parsed, key) for key in _Row.model_fields if key not in {*FOLDERS, "sha256", "image"}
        }
        image = parsed.image or plain_image(parsed.id, (0, 0), name)
        written = {what: getattr(parsed, what) for what in FOLDERS}
        files = {what: (path,) if path else () for what, path in written.items()}
        reader.add(where, Sample(**texts, image=image, previous=Path(), size=(0, 0)), files, parsed.sha256)
    return reader.reading(name)


class BenchmarkWriter:
    """A writer of benchmarks in our own format, a sample at a time; `close` writes `benchmark.json`.

    Args:
        out: a new or empty folder, or the folder of an unfinished writer.
        name: the benchmark's name.
        facts: further entries of the file, such as its origin.

    Raises:
        InputError: the folder has other contents.
    """

    def __init__(self, out: Path, name: str, facts: dict[str, object] | None = None) -> None:
        if out.exists() and (not out.is_dir() or not _is_unfinished(out)):
            raise InputError(f"{out}: exists and is not an empty folder; give a new one")
        self.out, self.name, self.facts = out, name, facts or {}
        self._rows: dict[str, dict[str, object]] = {}
        self._latest: list[tuple[Pixels, bytes]] = []

    @property
    def count(self) -> int:
        """The number of samples added."""
        return len(self._rows)

    def __enter__(self) -> BenchmarkWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *ended: object) -> None:
        if kind is None:
            self.close()

    def add(
        self, sample: Sample, previous: Pixels, changed: Pixels | None = None, roi: Mask | None = None
    ) -> None:
        """Add one sample with an id of its own; its paths and hashes are set here.

        Args:
            sample: the sample's texts and image record.
            previous, changed: uint8 (H, W, 3) of one size.
            roi: bool (H, W), of the same size.
        """
        files = {"previous": self._encoded(previous, sample.image.synthetic)}
        if changed is not None:
            files["changed"] = self._encoded(changed, sample.notes_synthetic_truth)
        if roi is not None:
            files["roi"] = encode_mask(roi)
        paths = {what: f"{FOLDERS[what]}/{sample.id}.png" for what in files}
        for what, data in files.items():
            open_folder(self.out, FOLDERS[what])
            replace_file(self.out / paths[what], data)
        hashes = {what: hashlib.sha256(data).hexdigest() for what, data in files.items()}
        self._rows[sample.id] = _row_of(sample, paths, hashes)

    def _encoded(self, pixels: Pixels, synthetic: bool) -> bytes:
        """Return a PNG, marked if synthetic; the last two are cached, as one pair often becomes two samples."""
        data = next((known for array, known in self._latest if array is pixels), None)
        if data is None:
            data = encode_png(pixels)
            self._latest = [*self._latest[-1:], (pixels, data)]
        return marked(data) if synthetic else data

    def close(self) -> Path:
        """Write `benchmark.json` and return its path."""
        rows = [self._rows[key] for key in sorted(self._rows, key=id_order)]
        data = {"format": FORMAT, "version": VERSION, "name": self.name, **self.facts, "samples": rows}
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / OWN
        replace_file(path, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
        return path


def _is_unfinished(out: Path) -> bool:
    """Return True if a folder has only entries that a writer makes before `benchmark.json`."""
    names = {path.name for path in out.iterdir()}
    return names <= {*FOLDERS.values(), "proposals", f"{Path(OWN).stem}.part"}


def _row_of(sample: Sample, paths: dict[str, str], hashes: dict[str, str]) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(sample, name) for name in ("id", "organ", "task", "prompt")}
    row |= {"direction": sample.direction.value, "cluster": sample.cluster, **paths, "sha256": hashes}
    row["image"] = asdict(replace(sample.image, prepared_sha256=hashes["previous"]))
    row |= {
        name: value
        for name in ("rephrased", "detailed", "key_concept", "finding", "notes")
        if (value := getattr(sample, name))
    }
    return row if sample.aligned is None else row | {"aligned": sample.aligned}


def encode_png(pixels: Pixels) -> bytes:
    """Return uint8 (H, W, 3) as PNG, lossless and deterministic."""
    return compressed(".png", pixels, cv2.IMWRITE_PNG_COMPRESSION, 4)


@dataclass(frozen=True, slots=True)
class WithdrawnSamples:
    """The samples that a withdrawal would remove from a benchmark.

    Attributes:
        name, root: the benchmark's name and folder.
        ids: samples to remove, sorted.
        known: requested names that occur in the benchmark.
    """

    name: str
    root: Path
    ids: tuple[str, ...]
    known: frozenset[str] = frozenset()


def is_benchmark(folder: Path) -> bool:
    """Return True if a folder is a benchmark in our own format."""
    return (folder / OWN).is_file()


def asked_samples(root: Path, asked: Withdrawal, tasks: Collection[str] = ()) -> WithdrawnSamples:
    """Find the samples that a withdrawal requests or that come from withdrawn tasks, without changing anything.

    Args:
        root: the benchmark's folder.
        asked: groups as named by image records or clusters, with or without the dataset; images as named by records
            or samples.
        tasks: ids of a build's withdrawn tasks; the ids of their samples start with a task id's first 12 characters.
    """
    data = read_document(root)
    named = {}
    for row in data["samples"]:
        image, cluster = row.get("image") or {}, str(row.get("cluster", ""))
        groups = asked.groups.intersection((image.get("group"), cluster, cluster.partition("/")[2]))
        named[str(row["id"])] = groups | asked.images.intersection((image.get("id"), str(row["id"])))
    starts = {task[:12] for task in tasks if data.get("made_from")}
    gone = {name for name, names in named.items() if names or name.partition("-")[0] in starts}
    known = frozenset().union(*named.values())
    return WithdrawnSamples(str(data["name"]), root, tuple(sorted(gone)), known)


def withdraw_from_benchmark(found: WithdrawnSamples) -> None:
    """Delete the samples' image files, then their rows; after an interruption, call it again to finish."""
    if not found.ids:
        return
    check_received(found.root, levels=2)
    gone = set(found.ids)
    for folder in sorted(path for path in found.root.iterdir() if path.is_dir()):
        for path in folder.iterdir():
            if path.is_file() and path.stem in gone:
                path.unlink()
    data = read_document(found.root)
    data["samples"] = [row for row in data["samples"] if str(row["id"]) not in gone]
    replace_file(found.root / OWN, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")


def read_document(root: Path) -> dict[str, Any]:
    """Return the parsed `benchmark.json`. Raise InputError if it is missing or cannot be read as a benchmark."""
    path = root / OWN
    if not path.is_file():
        raise InputError(f"{path}: no such file; only plantain's own format can be changed")
    try:
        data: dict[str, Any] = orjson.loads(read_inside(root, path))
        data["name"], [row["id"] for row in data["samples"]]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: cannot be read as a benchmark ({error})") from error
    return data
