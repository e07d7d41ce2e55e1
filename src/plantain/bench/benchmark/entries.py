"""From a row of any metadata file to a `Sample`: its files found, measured and hashed, its cluster settled."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qs, unquote, urlsplit

from plantain.bench.benchmark.samples import BenchmarkProblem, Sample
from plantain.files import opening
from plantain.pixels.decode import declared_size, one_line
from plantain.records import Direction, Geometry, Licence, SourceImage

MAX_FILE_BYTES = 256 * 1024 * 1024
"""Larger files are refused unread; the largest image that we decode is far smaller."""

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


@dataclass(frozen=True, slots=True)
class BenchmarkEntry:
    """One row of a metadata file, before its files are looked at.

    Attributes:
        where: the row, for messages, e.g. "samples[3]".
        previous, changed, roi: paths as written, in the order in which they are tried; empty where absent.
        source: address of the pair, "" where none is given.
        cluster: given by the file, or "".
        image: what the file knows of the previous image; None where it says nothing.
        sha256: hashes that the file promises, by "previous", "changed", "roi".
    """

    where: str
    id: str
    organ: str
    task: str
    prompt: str
    previous: tuple[str, ...]
    changed: tuple[str, ...] = ()
    roi: tuple[str, ...] = ()
    rephrased: str = ""
    detailed: str = ""
    key_concept: str = ""
    direction: Direction = Direction.CHANGE
    finding: str = ""
    cluster: str = ""
    source: str = ""
    aligned: bool | None = None
    notes: tuple[str, ...] = ()
    image: SourceImage | None = None
    sha256: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a metadata file and its folder hold.

    Attributes:
        name: of the benchmark.
        root: the folder.
        metadata: name of the metadata file in it.
        samples: those that can be used, sorted by id.
        hashes: (previous, changed, roi) SHA-256 by sample id, "" where there is no file.
        problems: everything that the metadata and the files' headers tell.
    """

    name: str
    root: Path
    metadata: str
    samples: tuple[Sample, ...]
    hashes: dict[str, tuple[str, str, str]]
    problems: tuple[BenchmarkProblem, ...]


def id_order(sample_id: str) -> tuple[object, ...]:
    """Sorts "2" before "10", and names by name."""
    return tuple(
        (0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", sample_id) if part
    )


class EntryReader:
    """Turns entries into samples and collects what is wrong with them.

    Args:
        root: the benchmark's folder; every file must lie in it.
        metadata: name of the metadata file, for messages.
        dataset: what `SourceImage.dataset` says of images that the file does not describe.
        keep_sources: keep the addresses of the pairs; else only their hashes remain.
    """

    def __init__(self, root: Path, metadata: str, dataset: str, keep_sources: bool) -> None:
        self.root, self.metadata, self.dataset, self.keep_sources = root, metadata, dataset, keep_sources
        self.problems: list[BenchmarkProblem] = []
        self._samples: dict[str, Sample] = {}
        self._folded: dict[str, str] = {}
        self._hashes: dict[str, tuple[str, str, str]] = {}
        self._addresses: dict[str, str] = {}

    def problem(
        self, field_: str, detail: str, sample: str = "", *, file: str = "", warning: bool = False
    ) -> None:
        """Notes one problem."""
        self.problems.append(BenchmarkProblem(file or self.metadata, field_, detail, sample, warning))

    def add(self, entry: BenchmarkEntry) -> None:
        """Looks at the files of one entry; the sample is kept when it can be used."""
        if not _SAFE_ID.match(entry.id) or entry.id.endswith("."):
            self.problem(
                f"{entry.where}.id",
                f"{one_line(entry.id)[:60]!r}; an id becomes a file name: letters, digits, '.', '_' and '-'",
            )
            return
        before = self._folded.setdefault(entry.id.casefold(), entry.id)
        if entry.id in self._samples or before != entry.id:
            twin = (
                "used twice"
                if before == entry.id
                else f"differs from {before!r} only in upper and lower case"
            )
            self.problem(f"{entry.where}.id", f"{entry.id!r} is {twin}; ids must be unique", entry.id)
            return
        previous = self._file(entry, "previous", entry.previous)
        if previous is None:
            return
        changed = self._file(entry, "changed", entry.changed) if entry.changed else None
        roi = self._file(entry, "roi", entry.roi) if entry.roi else None
        if (entry.changed and changed is None) or (entry.roi and roi is None):
            return
        path, size, digest = previous
        self._hashes[entry.id] = (digest, changed[2] if changed else "", roi[2] if roi else "")
        if entry.source:
            self._addresses[entry.id] = entry.source
        self._sizes(entry, size, changed, roi)
        self._samples[entry.id] = Sample(
            id=entry.id,
            organ=entry.organ,
            task=entry.task,
            prompt=entry.prompt,
            cluster=entry.cluster,
            image=self._image(entry, size, digest),
            previous=path,
            size=size,
            rephrased=entry.rephrased,
            detailed=entry.detailed,
            key_concept=entry.key_concept,
            direction=entry.direction,
            finding=entry.finding,
            changed=changed[0] if changed else None,
            roi=roi[0] if roi else None,
            aligned=entry.aligned,
            notes=entry.notes,
            source=entry.source if self.keep_sources else "",
        )

    def reading(self, name: str) -> Reading:
        """Everything read, with clusters settled over all samples."""
        clusters = _clusters(self._samples.values(), self._addresses, self._hashes)
        samples = [replace(sample, cluster=clusters[sample.id]) for sample in self._samples.values()]
        samples.sort(key=lambda sample: id_order(sample.id))
        if not samples and not any(not problem.warning for problem in self.problems):
            self.problem("samples", "there is none")
        return Reading(name, self.root, self.metadata, tuple(samples), self._hashes, tuple(self.problems))

    def _file(
        self, entry: BenchmarkEntry, what: str, candidates: Sequence[str]
    ) -> tuple[Path, tuple[int, int], str] | None:
        """Path, (width, height) by its header, and hash; None, with a problem noted, where it cannot be used."""
        written = one_line(candidates[0])
        for candidate in candidates:
            if not is_inside(candidate):
                self.problem(
                    f"{entry.where}.{what}", f"{written!r} lies outside the benchmark's folder", entry.id
                )
                return None
        path = next((self.root / one for one in candidates if (self.root / one).is_file()), None)
        if path is None:
            self.problem(f"{entry.where}.{what}", "no such file", entry.id, file=written)
            return None
        name = str(path.relative_to(self.root))
        if not opening.is_inside(path, self.root):
            self.problem(what, "a link that leads out of the benchmark's folder", entry.id, file=name)
            return None
        if path.stat().st_size > MAX_FILE_BYTES:
            self.problem(
                what,
                f"{path.stat().st_size // 10**6} MB; at most {MAX_FILE_BYTES // 2**20} MiB",
                entry.id,
                file=name,
            )
            return None
        data = path.read_bytes()
        size = declared_size(data)
        if size == (0, 0):
            why = (
                "empty file"
                if not data
                else "not an image that we read; JPEG, PNG, TIFF, BMP, WebP and GIF are"
            )
            self.problem(what, why, entry.id, file=name)
            return None
        digest = hashlib.sha256(data).hexdigest()
        if entry.sha256.get(what, digest) != digest:
            self.problem(
                what, "its checksum is not the one in the metadata: the file was changed", entry.id, file=name
            )
            return None
        return path, size, digest

    def _sizes(
        self,
        entry: BenchmarkEntry,
        size: tuple[int, int],
        changed: tuple[Path, tuple[int, int], str] | None,
        roi: tuple[Path, tuple[int, int], str] | None,
    ) -> None:
        for what, found in (("changed", changed), ("roi", roi)):
            if found is None or found[1] == size:
                continue
            (width, height), (other_width, other_height) = size, found[1]
            ratio = (other_width / other_height) / (width / height)
            how = "bicubic" if what == "changed" else "nearest neighbour"
            detail = f"{other_width}x{other_height}, the previous image has {width}x{height}"
            far = abs(ratio - 1) > 0.02
            detail += (
                "; another shape, so resizing distorts it" if far else f"; resized by {how}, as published"
            )
            self.problem("size", detail, entry.id, file=str(found[0].relative_to(self.root)), warning=True)

    def _image(self, entry: BenchmarkEntry, size: tuple[int, int], digest: str) -> SourceImage:
        width, height = size
        if entry.image is not None:
            return replace(entry.image, id=entry.id, prepared_sha256=digest)
        return SourceImage(
            id=entry.id,
            dataset=self.dataset,
            modality="unknown",
            labels=(),
            licence=Licence.UNKNOWN,
            source_sha256=digest,
            prepared_sha256=digest,
            geometry=Geometry(width, height, "pad", 0, 0, width, height),
        )


def is_inside(path: str) -> bool:
    """Whether a written path stays in the folder that it is relative to, whatever the system."""
    pure = PurePosixPath(path.replace("\\", "/"))
    return (
        bool(path)
        and "\0" not in path
        and not pure.is_absolute()
        and ".." not in pure.parts
        and ":" not in pure.parts[0]
    )


def plain_address(address: str) -> str:
    """An address in the form that two pairs share when they come from one page or picture.

    Search engines' redirections are followed to what they name; scheme, "www." and fragment do not count.
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


def _clusters(
    samples: Iterable[Sample], addresses: dict[str, str], hashes: dict[str, tuple[str, str, str]]
) -> dict[str, str]:
    """Dependent samples share a cluster: one address, one given cluster, or one picture in either place."""
    samples = list(samples)
    holders: dict[str, list[str]] = defaultdict(list)
    for sample in samples:
        previous, changed, _ = hashes[sample.id]
        keys = {previous, changed} - {""}
        if sample.cluster:
            keys.add(f"cluster {sample.cluster}")
        if sample.id in addresses:
            keys.add(f"address {plain_address(addresses[sample.id])}")
        for key in keys:
            holders[key].append(sample.id)
    leader = {sample.id: sample.id for sample in samples}

    def find(one: str) -> str:
        while leader[one] != one:
            leader[one] = leader[leader[one]]
            one = leader[one]
        return one

    for ids in holders.values():
        for other in ids[1:]:
            first, second = sorted((find(ids[0]), find(other)), key=id_order)
            leader[second] = first
    given = {sample.id: sample.cluster for sample in samples}
    return {
        sample.id: given[head] or source_cluster(addresses.get(head, "")) or head
        for sample in samples
        for head in (find(sample.id),)
    }


def source_cluster(address: str) -> str:
    """The name of a cluster by its address, which cannot be read back from it; "" without one."""
    if not address:
        return ""
    return "source-" + hashlib.sha256(plain_address(address).encode("utf-8", "replace")).hexdigest()[:12]
