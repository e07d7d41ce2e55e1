"""One sample of a benchmark (a pair of images, the instruction, the region of the change), and how it is read.

From a row of any metadata file to a `Sample`: find, measure and hash its files, and settle its cluster.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qs, unquote, urlsplit

from plantain.files import opening
from plantain.pixels.decode import declared_size, one_line
from plantain.records import Direction, Geometry, InputError, Licence, SourceImage

SYNTHETIC_TRUTH = "synthetic ground truth"
"""Start of the note of a sample whose image after was made by a model or a renderer."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a benchmark. Files stay on disk; `Benchmark` reads them.

    Attributes:
        id: unique in its benchmark, a plain file name part, e.g. "38".
        organ: canonical name of MedEBench's organs ("Skin", "Eyes", ...), or a benchmark's own.
        task: kind of edit, e.g. "Remove benign skin moles"; tables group by it.
        prompt, rephrased, detailed: the instruction, a paraphrase, and the description of the change ("" when absent).
        key_concept: the words whose attention should be on the region; "" if not named.
        cluster: name shared by dependent samples: a hashed source address, a patient group, else the id.
        image: record of the previous image: licence, consent, modality; its prepared_sha256 is the file's hash.
        direction: add, remove, or any other change.
        finding: the finding in the build that the benchmark was made from; "" otherwise.
        previous: file of the image before.
        changed: file of the image after, real unless `synthetic_truth`; None without one.
        roi: file of the region's mask; None without one.
        size: (width, height) of the previous image in pixels.
        aligned: True if the image after is aligned with the one before pixel by pixel; None when unknown.
        notes: remarks on this sample, a line each.
        source: address of the pair; "" in a loaded `Benchmark`, as addresses can name patients.
    """

    id: str
    organ: str
    task: str
    prompt: str
    cluster: str
    image: SourceImage
    previous: Path
    size: tuple[int, int]
    rephrased: str = ""
    detailed: str = ""
    key_concept: str = ""
    direction: Direction = Direction.CHANGE
    finding: str = ""
    changed: Path | None = None
    roi: Path | None = None
    aligned: bool | None = None
    notes: tuple[str, ...] = ()
    source: str = ""

    @property
    def synthetic_truth(self) -> bool:
        """True if the image after exists and a note marks it as synthetic."""
        return self.changed is not None and self.notes_synthetic_truth

    @property
    def notes_synthetic_truth(self) -> bool:
        """True if a note marks the image after as synthetic, even if its file is not known yet."""
        return any(note.startswith(SYNTHETIC_TRUTH) for note in self.notes)


@dataclass(frozen=True, slots=True)
class BenchmarkProblem:
    """A fault of a benchmark: in its metadata or its files.

    Attributes:
        file: the file concerned, relative to the benchmark's folder.
        field: the field of the metadata, or "pixels", "size" and the like.
        detail: the problem, and the allowed values.
        sample: id of the sample concerned; "" for none or several.
        warning: True if the benchmark can be used nevertheless.
    """

    file: str
    field: str
    detail: str
    sample: str = ""
    warning: bool = False

    def __str__(self) -> str:
        sample = f"sample {one_line(self.sample)}: " if self.sample else ""
        return f"{one_line(self.file)}: {sample}{one_line(self.field)}: {one_line(self.detail)}"


def plain_image(sample_id: str, size: tuple[int, int], dataset: str) -> SourceImage:
    """Return the record of an image of unknown licence; `size` is (width, height) in pixels, (0, 0) if unknown."""
    width, height = size
    geometry = Geometry(width, height, "pad", 0, 0, width, height)
    return SourceImage(sample_id, dataset, "unknown", (), Licence.UNKNOWN, "", "", geometry)


FOLDERS = {"previous": "previous", "changed": "changed", "roi": "previous_mask"}
"""Field of a row -> folder of its file, as published."""

SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(?<!\.)\Z")
"""Ids become file names."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a benchmark's metadata file, with its problems.

    Attributes:
        name: the benchmark's name.
        root: the folder.
        metadata: name of the metadata file in it.
        samples: the usable samples, sorted by id.
        hashes: (previous, changed, roi) SHA-256 by sample id, "" without a file.
        problems: faults of the metadata and of the files' headers; after `check_benchmark` also of the pixels.
    """

    name: str
    root: Path
    metadata: str
    samples: tuple[Sample, ...]
    hashes: dict[str, tuple[str, str, str]]
    problems: tuple[BenchmarkProblem, ...]

    @property
    def errors(self) -> tuple[BenchmarkProblem, ...]:
        """The problems that make the benchmark unusable."""
        return tuple(problem for problem in self.problems if not problem.warning)

    @property
    def warnings(self) -> tuple[BenchmarkProblem, ...]:
        return tuple(problem for problem in self.problems if problem.warning)


@dataclass(frozen=True, slots=True)
class _FoundFile:
    path: Path
    size: tuple[int, int]
    sha256: str


def id_order(sample_id: str) -> tuple[object, ...]:
    """Return a sort key that compares the numbers in ids by value: "2" before "10"."""
    return tuple(
        (0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", sample_id) if part
    )


class EntryReader:
    """Find, measure and hash the files of a benchmark's samples, and collect problems.

    Args:
        root: the benchmark's folder; every file must be in it.
        metadata: name of the metadata file, for messages.
    """

    def __init__(self, root: Path, metadata: str) -> None:
        self.root, self.metadata = root, metadata
        self.problems: list[BenchmarkProblem] = []
        self._samples: dict[str, Sample] = {}
        self._hashes: dict[str, tuple[str, str, str]] = {}
        self._ids: dict[str, str] = {}

    def problem(
        self, field: str, detail: str, sample: str = "", *, file: str = "", warning: bool = False
    ) -> None:
        self.problems.append(BenchmarkProblem(file or self.metadata, field, detail, sample, warning))

    def add(
        self,
        where: str,
        sample: Sample,
        files: Mapping[str, Sequence[str]],
        sha256: Mapping[str, str] | None = None,
    ) -> None:
        """Add a sample if its files can be used; record the problems otherwise.

        Args:
            where: the row, for messages, e.g. "samples[3]".
            sample: the sample; its paths, size, image id and hash are set here.
            files: for "previous", "changed" and "roi", the paths in the metadata, in the order to try them; empty if
                absent.
            sha256: expected hashes of the files, by the same keys.
        """
        if not self._has_usable_id(where, sample.id):
            return
        found: dict[str, _FoundFile] = {}
        for what in FOLDERS:
            if files[what]:
                file = self._find(f"{where}.{what}", sample.id, files[what], (sha256 or {}).get(what))
                if file is None:
                    return
                found[what] = file
        previous, changed, roi = map(found.get, FOLDERS)
        if previous is None:
            self.problem(f"{where}.previous", "missing", sample.id)
            return
        self._compare_sizes(sample.id, previous, changed, "bicubic")
        self._compare_sizes(sample.id, previous, roi, "nearest neighbour")
        image = replace(sample.image, id=sample.id, prepared_sha256=previous.sha256)
        if not image.geometry.width:
            image = replace(
                plain_image(sample.id, previous.size, image.dataset),
                source_sha256=previous.sha256,
                prepared_sha256=previous.sha256,
            )
        self._hashes[sample.id] = (
            previous.sha256,
            changed.sha256 if changed else "",
            roi.sha256 if roi else "",
        )
        self._samples[sample.id] = replace(
            sample,
            previous=previous.path,
            size=previous.size,
            changed=changed.path if changed else None,
            roi=roi.path if roi else None,
            image=image,
        )

    def reading(self, name: str) -> Reading:
        """Return all usable samples, sorted by id, with their clusters, and all problems."""
        clusters = _clusters(self._samples.values(), self._hashes)
        samples = [
            replace(sample, cluster=clusters[sample.id])
            for sample in sorted(self._samples.values(), key=lambda sample: id_order(sample.id))
        ]
        if not samples and all(problem.warning for problem in self.problems):
            self.problem("samples", "there is none")
        return Reading(name, self.root, self.metadata, tuple(samples), self._hashes, tuple(self.problems))

    def _has_usable_id(self, where: str, sample_id: str) -> bool:
        if not SAFE_ID.match(sample_id):
            shown = one_line(sample_id)[:60]
            self.problem(
                f"{where}.id", f"{shown!r}; an id becomes a file name: letters, digits, '.', '_' and '-'"
            )
            return False
        twin = self._ids.setdefault(sample_id.casefold(), sample_id)
        if twin == sample_id and sample_id not in self._samples:
            return True
        how = "used twice" if twin == sample_id else f"differs from {twin!r} only in upper and lower case"
        self.problem(f"{where}.id", f"{sample_id!r} is {how}; ids must be unique", sample_id)
        return False

    def _find(
        self, field: str, sample_id: str, candidates: Sequence[str], sha256: str | None
    ) -> _FoundFile | None:
        """Return the first candidate that exists; None, with a problem noted, if it cannot be used."""
        written = one_line(candidates[0])
        if not all(map(is_inside, candidates)):
            self.problem(field, f"{written!r} is outside the benchmark's folder", sample_id)
            return None
        path = next((self.root / one for one in candidates if (self.root / one).is_file()), None)
        if path is None:
            self.problem(field, "no such file", sample_id, file=written)
            return None
        what, name = field.rpartition(".")[2], str(path.relative_to(self.root))
        try:
            data = opening.read_inside(self.root, path)
        except InputError as error:
            self.problem(what, str(error).partition(": ")[2], sample_id, file=name)
            return None
        size, digest = declared_size(data), hashlib.sha256(data).hexdigest()
        if size == (0, 0):
            readable = "not an image that we read; JPEG, PNG, TIFF, BMP, WebP and GIF are"
            self.problem(what, readable if data else "empty file", sample_id, file=name)
            return None
        if sha256 is not None and sha256 != digest:
            detail = "its checksum is not the one in the metadata: the file was changed"
            self.problem(what, detail, sample_id, file=name)
            return None
        return _FoundFile(path, size, digest)

    def _compare_sizes(
        self, sample_id: str, previous: _FoundFile, other: _FoundFile | None, resampling: str
    ) -> None:
        if other is None or other.size == previous.size:
            return
        (width, height), (other_width, other_height) = previous.size, other.size
        ratio = (other_width / other_height) / (width / height)
        far = abs(ratio - 1) > 0.02
        how = "another shape, so resizing distorts it" if far else f"resized by {resampling}, as published"
        detail = f"{other_width}x{other_height}, the previous image has {width}x{height}; {how}"
        self.problem("size", detail, sample_id, file=str(other.path.relative_to(self.root)), warning=True)


def is_inside(path: str) -> bool:
    """Return True if a relative path stays inside its base folder on every operating system."""
    pure = PurePosixPath(path.replace("\\", "/"))
    return (
        bool(path)
        and "\0" not in path
        and not pure.is_absolute()
        and ".." not in pure.parts
        and ":" not in pure.parts[0]
    )


def plain_address(address: str) -> str:
    """Normalise an image's web address, so that addresses of the same page or image are equal.

    Redirections of search engines are followed to their target; scheme, "www." and fragment are dropped.
    """
    for _ in range(3):
        try:
            parts = urlsplit(address.strip())
            target = parse_qs(parts.query).get("url") or parse_qs(parts.query).get("imgurl")
        except ValueError:
            return address.strip()
        if not (target and re.search(r"(^|\.)(google|bing)\.", parts.netloc)):
            host = parts.netloc.casefold().removeprefix("www.")
            return f"{host}{unquote(parts.path).rstrip('/')}" + (f"?{parts.query}" if parts.query else "")
        address = target[0]
    return address


def source_cluster(address: str) -> str:
    """Return the cluster name of a web address: a hash that does not reveal it; "" for an empty address."""
    if not address:
        return ""
    return "source-" + hashlib.sha256(plain_address(address).encode("utf-8", "replace")).hexdigest()[:12]


def _clusters(samples: Iterable[Sample], hashes: Mapping[str, tuple[str, str, str]]) -> dict[str, str]:
    """Give dependent samples one cluster: those with one address, one given cluster, or one image in either place."""
    by_id = {sample.id: sample for sample in samples}
    sharing: dict[str, list[str]] = defaultdict(list)
    for sample in by_id.values():
        keys = set(hashes[sample.id][:2]) - {""}
        if sample.cluster:
            keys.add(f"cluster {sample.cluster}")
        if sample.source:
            keys.add(f"address {plain_address(sample.source)}")
        for key in keys:
            sharing[key].append(sample.id)
    leader = {sample_id: sample_id for sample_id in by_id}

    def find(one: str) -> str:
        while leader[one] != one:
            leader[one] = leader[leader[one]]
            one = leader[one]
        return one

    for ids in sharing.values():
        for other in ids[1:]:
            first, second = sorted((find(ids[0]), find(other)), key=id_order)
            leader[second] = first
    heads = {sample_id: by_id[find(sample_id)] for sample_id in by_id}
    return {key: head.cluster or source_cluster(head.source) or head.id for key, head in heads.items()}
