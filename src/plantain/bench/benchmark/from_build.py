"""Make a benchmark from a build, where each success becomes two samples.

In the reverse sample of a success, the real original is the ground truth. In the forward sample it is the accepted
edit, marked as synthetic. The region is the editor's own mask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from plantain.bench.benchmark.native_format import BenchmarkWriter
from plantain.bench.benchmark.samples import SYNTHETIC_TRUTH, Sample
from plantain.catalogue.groups import Groups
from plantain.findings import Taxonomy, describe_place, load_taxonomy
from plantain.journal import BadBlob, JournalReader, TaskRow
from plantain.journal.reader import BLOBS_ABSENT
from plantain.journal.verify import places_of
from plantain.offline.language import Intent, compose, read_instruction
from plantain.offline.writer import signs_of
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import decode, decode_mask
from plantain.pixels.encode import resize
from plantain.records import (
    Attempt,
    Direction,
    Finding,
    InputError,
    Licence,
    SourceImage,
    TaskKind,
    TaskState,
)

REAL = "real ground truth: the image after is an original"
SYNTHETIC = f"{SYNTHETIC_TRUTH}: the image after is an edit that a judge accepted"
NO_REGION = "no region: the editor gave no mask"

PARAPHRASE = 5
"""Index of the offline writer's wording for the paraphrase; the prompt has the first."""

OPPOSITE = {Direction.ADD: Direction.REMOVE, Direction.REMOVE: Direction.ADD}

_Images = tuple[Pixels, Pixels, Mask | None]
"""(before, after, region)."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A benchmark made from a build.

    Attributes:
        path: path of `benchmark.json`.
        successes: number of successful tasks of the build.
        real, synthetic: number of samples with each kind of ground truth.
        regions: number of samples with a region.
        licences: number of samples by licence.
        left_out: number of unused successes by reason.
        damaged: damaged images of the run, whose tasks were skipped.
    """

    path: Path
    successes: int
    real: int
    synthetic: int
    regions: int
    licences: dict[str, int]
    left_out: dict[str, int]
    damaged: tuple[str, ...] = ()

    @property
    def restricted(self) -> str:
        """One line with the number of images that may not be shared, by licence; "" if all may be shared."""
        closed = {
            name: n for name, n in self.licences.items() if name not in (Licence.OPEN, Licence.ATTRIBUTION)
        }
        if not closed:
            return ""
        kinds = ((n, "of unknown licence" if name == Licence.UNKNOWN else name) for name, n in closed.items())
        return (
            f"{', '.join(f'{n} {name}' for n, name in kinds)}: do not share the folder; hosted models need the "
            "owner's recorded consent"
        )


def benchmark_from_build(
    run: Path,
    out: Path,
    *,
    real_only: bool = False,
    taxonomy: Taxonomy | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Conversion:
    """Write a benchmark in our own format from a build's successes; the build is only read.

    Args:
        run: the build's folder.
        out: a new folder.
        real_only: skip samples with synthetic ground truth.
        taxonomy: the findings that the build uses; default: plantain's.
        progress: called with the numbers of finished and of all tasks.

    Raises:
        InputError: not a run, `out` is not empty, or the build has no usable success.
    """
    taxonomy = taxonomy or load_taxonomy()
    left_out: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    licences: Counter[str] = Counter()
    with JournalReader.open(run) as reader:
        wanted = reader.counts(TaskKind.EDIT).get(TaskState.SUCCESS, 0)
        facts: dict[str, object] = {"made_from": {"run": reader.header.run_id, "build": reader.header.name}}
        writer = BenchmarkWriter(out, f"{reader.header.name}, as a benchmark", facts)
        converter = _Converter(reader, taxonomy)
        edits = (row for row in reader.tasks(TaskState.SUCCESS) if row.task.kind is TaskKind.EDIT)
        for done, row in enumerate(edits, 1):
            success = converter.success(row)
            if isinstance(success, str):
                left_out[success] += 1
            else:
                for sample, images in success.samples(real_only):
                    writer.add(sample, *images)
                    notes.update(sample.notes)
                    licences[sample.image.licence.value] += 1
            if progress:
                progress(done, wanted)
        if damaged := tuple(places_of(reader, reader.blobs.damaged)):
            writer.facts["damaged"] = damaged
    if not writer.count:
        why = "; ".join(f"{reason}: {n}" for reason, n in left_out.items()) or "no task ended as success"
        raise InputError(f"{run}: nothing in it can become a sample ({why})")
    regions = writer.count - notes[NO_REGION]
    counts = notes[REAL], notes[SYNTHETIC], regions, dict(sorted(licences.items())), dict(left_out)
    return Conversion(writer.close(), wanted, *counts, damaged)


class _Converter:
    """Read the successes of a build."""

    def __init__(self, reader: JournalReader, taxonomy: Taxonomy) -> None:
        self._reader, self._taxonomy = reader, taxonomy
        images = tuple(reader.images())
        self._groups = Groups(images)
        self._restricted = {self._groups.name(image) for image in images if _is_restricted(image)}
        self._numbers: dict[str, str] = {}

    def success(self, row: TaskRow) -> _Success | str:
        """Return the success of a task, or the reason for skipping it."""
        reader, task = self._reader, row.task
        try:
            finding = self._taxonomy.get(task.modality, task.finding)
        except InputError:
            return f"unknown finding {task.finding!r}"
        attempts = reader.attempts(row.id, row.generation)
        attempt = next((one for one in attempts if one.round == row.round and one.edited is not None), None)
        if attempt is None or attempt.edited is None:
            return "no edited image"
        image = reader.image(task.image_id)
        hashes = {"original": image.prepared_sha256, "edited image": attempt.edited}
        if reader.meta(BLOBS_ABSENT) is not None:  # of an imported run
            for name, sha256 in hashes.items():
                if not reader.has_blob(sha256):
                    return f"no {name}: it was not in the imported release"
        read = {}
        for sha256 in filter(None, (*hashes.values(), attempt.mask)):
            try:
                read[sha256] = reader.read_blob(sha256)
            except BadBlob:
                reader.blobs.damaged |= {sha256}
                return "an image is damaged in the run"
        original, edited = (decode(read[sha256]) for sha256 in hashes.values())
        region = None if attempt.mask is None else _region(decode_mask(read[attempt.mask]), original)
        cluster = self._cluster(image)
        if _is_restricted(image):
            image = replace(image, group=cluster, source_sha256="")
        title = self._taxonomy.titles[image.modality]
        return _Success(row, attempt, finding, title, image, cluster, (original, edited, region))

    def _cluster(self, image: SourceImage) -> str:
        """Return an image's cluster: a number for credentialed sources and open images that resemble one of theirs."""
        cluster = self._groups.name(image)
        if cluster in self._restricted:
            return self._numbers.setdefault(cluster, f"group {len(self._numbers) + 1}")
        return cluster


def _is_restricted(image: SourceImage) -> bool:
    return image.licence is Licence.CREDENTIALED


@dataclass(frozen=True, slots=True, eq=False)
class _Success:
    """One success of a build, and its samples."""

    row: TaskRow
    attempt: Attempt
    finding: Finding
    title: str
    image: SourceImage
    cluster: str
    images: _Images

    def samples(self, real_only: bool) -> Iterator[tuple[Sample, _Images]]:
        """Yield the reverse sample, if the original is real, then the forward sample."""
        forward = self.row.task.direction
        original, edited, region = self.images
        if not self.image.synthetic:
            yield self._sample(OPPOSITE[forward], REAL), (edited, original, region)
        if not real_only:
            yield self._sample(forward, SYNTHETIC), (original, edited, region)

    def _sample(self, direction: Direction, truth: str) -> Sample:
        forward, finding = truth == SYNTHETIC, self.finding
        original, _, region = self.images
        sample_id = f"{self.row.id[:12]}-{direction.value}"
        asked = read_instruction(self.attempt.instruction, (finding,))
        intent = replace(asked, finding=finding.name, direction=direction)
        if not forward:  # the requested appearance applies to the forward sample only
            intent = Intent(finding.name, direction, intent.side, intent.zone)
        notes = [truth, NO_REGION]
        if region is not None:
            notes[1] = f"region: the editor's own mask ({self.attempt.support or 'local'} change)"
        if not forward:
            did = f"{self.row.task.direction.value} {finding.name}, task {self.row.id}"
            notes.append(f"the image before is synthetic: {did}")
        elif self.image.synthetic:
            notes.append("the image before is synthetic: the build's original was itself an edit")
        return Sample(
            id=sample_id,
            organ=self.title,
            task=f"{direction.value.capitalize()} {finding.title}",
            prompt=self.attempt.instruction if forward else compose(intent, finding),
            rephrased=compose(intent, finding, phrasing=PARAPHRASE),
            detailed=self._described(intent),
            key_concept=finding.title,
            direction=direction,
            finding=finding.name,
            cluster=self.cluster,
            image=self._record(sample_id, forward),
            previous=Path(),
            size=(original.shape[1], original.shape[0]),
            aligned=True,
            notes=tuple(notes),
        )

    def _described(self, intent: Intent) -> str:
        """Return modality, action, entity, region and appearance, as in MedEBench's descriptions."""
        done = "added" if intent.direction is Direction.ADD else "removed"
        place = describe_place(intent.zone, intent.side)
        where = f" {place}" if place else ""
        seen = signs_of(intent, self.finding, self.image)
        parts = (
            f"{self.title}: {self.finding.title}{where} was {done}.",
            f"It shows {seen}." if seen else "",
            "Everything else stays as it was.",
        )
        return " ".join(part for part in parts if part)

    def _record(self, sample_id: str, forward: bool) -> SourceImage:
        """Return the record of the image before, with the original's licence, group and acquisition."""
        image = replace(self.image, id=sample_id)
        if not forward:
            adding = self.row.task.direction is Direction.ADD
            note = "; ".join(part for part in (image.note, "an edit of a real image") if part)
            labels = (self.finding.name,) if adding else ()
            image = replace(image, labels=labels, synthetic=True, note=note)
        return image


def _region(mask: Mask, image: Pixels) -> Mask | None:
    """Return the editor's mask at the image's size, with every pixel that it touches."""
    height, width = image.shape[:2]
    if mask.shape != (height, width):
        mask = np.asarray(resize(mask.astype(np.uint8) * 255, width, height) > 0)
    return mask if mask.any() and not mask.all() else None
