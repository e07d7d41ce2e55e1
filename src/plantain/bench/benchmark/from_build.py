"""Turning a build into a radiology benchmark: every success is two samples, one of which ends at a real image.

What a build added can be asked to be removed again, and the real original is then the ground truth; so is the real
image with disease where a build removed it. The editor's own mask is the region, exact to the pixel. The forward
direction comes along with the judged success as its ground truth, marked as synthetic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from plantain.bench.benchmark.native_format import BenchmarkWriter
from plantain.bench.benchmark.samples import SYNTHETIC_TRUTH, Sample
from plantain.catalogue.groups import Groups
from plantain.findings import Taxonomy, describe_place, load_taxonomy
from plantain.journal import BlobStore, JournalReader, TaskRow
from plantain.journal.reader import BLOBS_ABSENT
from plantain.offline.language import Intent, compose, read_instruction
from plantain.offline.writer import signs_of
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import decode, decode_mask
from plantain.pixels.prepare import resize
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
SYNTHETIC = f"{SYNTHETIC_TRUTH}: the image after is an edit that a judge let pass"
NO_REGION = "no region: the editor did not say where it changed pixels"

PARAPHRASE = 5
"""Which of the offline writer's wordings is the paraphrase; the prompt uses the first."""

OPPOSITE = {Direction.ADD: Direction.REMOVE, Direction.REMOVE: Direction.ADD}


@dataclass(frozen=True, slots=True)
class Conversion:
    """What came of a build.

    Attributes:
        path: of `benchmark.json`.
        successes: tasks of the build that ended as success.
        real, synthetic: samples by what their ground truth is.
        regions: samples with a region.
        licences: samples by licence.
        left_out: why successes were not used -> how many.
    """

    path: Path
    successes: int
    real: int
    synthetic: int
    regions: int
    licences: dict[str, int]
    left_out: dict[str, int]


def benchmark_from_build(
    run: Path,
    out: Path,
    *,
    name: str = "",
    real_only: bool = False,
    side: int = 0,
    taxonomy: Taxonomy | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Conversion:
    """Writes a benchmark in our own format from a build's successes; the build is only read.

    Args:
        run: the build's folder.
        out: a new folder.
        name: of the benchmark; default: the build's with ", as a benchmark".
        real_only: leave out the samples whose ground truth is synthetic.
        side: longest side in pixels; 0 keeps the build's 1024.
        taxonomy: with the findings of the build; default: those that come with plantain.
        progress: called with tasks done and in all.

    Raises:
        InputError: not a run; `out` holds something; nothing in the run can become a sample.
    """
    taxonomy = taxonomy or load_taxonomy()
    tally = _Tally()
    with JournalReader.open(run) as reader:
        wanted = reader.counts(TaskKind.EDIT).get(TaskState.SUCCESS, 0)
        facts: dict[str, object] = {"made_from": {"run": reader.header.run_id, "build": reader.header.name}}
        writer = BenchmarkWriter(out, name or f"{reader.header.name}, as a benchmark", facts)
        blobs = BlobStore(run / "blobs")
        names = _Names(tuple(reader.images()))
        edits = (row for row in reader.tasks(TaskState.SUCCESS) if row.task.kind is TaskKind.EDIT)
        for done, row in enumerate(edits, 1):
            attempt, finding = _success(reader, row), _finding(taxonomy, row)
            image = reader.image(row.task.image_id)
            if attempt is None or finding is None:
                tally.left_out["no edited image" if finding else f"unknown finding {row.task.finding!r}"] += 1
            elif absent := _absent(reader, image, attempt):
                tally.left_out[absent] += 1
            else:
                image, cluster = names.named_for(image)
                success = _Success(row, attempt, finding, image, cluster, taxonomy, blobs, side)
                for sample, pixels in success.samples(real_only):
                    writer.add(sample, *pixels)
                    tally.add(sample)
            if progress:
                progress(done, wanted)
    if not writer.count:
        why = (
            "; ".join(f"{reason}: {n}" for reason, n in tally.left_out.items()) or "no task ended as success"
        )
        raise InputError(f"{run}: nothing in it can become a sample ({why})")
    return tally.conversion(writer.close(), wanted)


class _Names:
    """Images as a benchmark tells of them: of credentialed sources without ids, their patients counted through."""

    def __init__(self, images: Sequence[SourceImage]) -> None:
        self._groups = Groups(images)
        self._restricted = {self._groups.name(image) for image in images if _restricted(image)}
        self._known: dict[str, str] = {}

    def named_for(self, image: SourceImage) -> tuple[SourceImage, str]:
        """The image and its cluster; a number for both names, and no file hash that an owner's list would name.

        An open image that is near one of a credentialed source shares its cluster, and so its number.
        """
        cluster = self._groups.name(image)
        if cluster in self._restricted:
            cluster = self._known.setdefault(cluster, f"group {len(self._known) + 1}")
        return replace(image, group=cluster, source_sha256="") if _restricted(image) else image, cluster


def _restricted(image: SourceImage) -> bool:
    return image.licence is Licence.CREDENTIALED


class _Tally:
    """What the samples are, counted as they come."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()
        self._licences: Counter[str] = Counter()

    def add(self, sample: Sample) -> None:
        """Counts one sample."""
        self._notes.update(sample.notes)
        self._licences[sample.image.licence.value] += 1

    def conversion(self, path: Path, successes: int) -> Conversion:
        """Everything counted."""
        real, synthetic = self._notes[REAL], self._notes[SYNTHETIC]
        regions = real + synthetic - self._notes[NO_REGION]
        licences = dict(sorted(self._licences.items()))
        return Conversion(path, successes, real, synthetic, regions, licences, dict(self.left_out))


def _success(reader: JournalReader, row: TaskRow) -> Attempt | None:
    for attempt in reader.attempts(row.id, row.generation):
        if attempt.round == row.round and attempt.edited is not None:
            return attempt
    return None


def _absent(reader: JournalReader, image: SourceImage, attempt: Attempt) -> str:
    """Which picture an imported run does not have; "" where both are there, and of any other run."""
    if reader.meta(BLOBS_ABSENT) is None:
        return ""
    held = {"original": image.prepared_sha256, "edited image": attempt.edited or ""}
    missing = next((name for name, sha256 in held.items() if not reader.has_blob(sha256)), "")
    return f"no {missing}: it was not in the release that this run was imported from" if missing else ""


def _finding(taxonomy: Taxonomy, row: TaskRow) -> Finding | None:
    try:
        return taxonomy.get(row.task.modality, row.task.finding)
    except InputError:
        return None


_Pictures = tuple[Pixels, Pixels, Mask | None]


class _Success:
    """One success of a build, and the samples that it becomes."""

    def __init__(
        self,
        row: TaskRow,
        attempt: Attempt,
        finding: Finding,
        image: SourceImage,
        cluster: str,
        taxonomy: Taxonomy,
        blobs: BlobStore,
        side: int,
    ) -> None:
        self._row, self._attempt, self._finding, self._image = row, attempt, finding, image
        self._cluster = cluster
        self._title = taxonomy.titles[image.modality]
        self._asked = read_instruction(attempt.instruction, (finding,))
        assert attempt.edited is not None
        self._original = _sized(decode(blobs.read(image.prepared_sha256)), side)
        self._edited = _sized(decode(blobs.read(attempt.edited)), side)
        self._region = _region(blobs, attempt.mask, self._original.shape[1], self._original.shape[0])

    def samples(self, real_only: bool) -> Iterator[tuple[Sample, _Pictures]]:
        """The way back, which ends at the original; then the way there, which ends at the edit.

        There is no way back to an original that is itself an edit: nothing real lies at its end.
        """
        forward = self._row.task.direction
        if not self._image.synthetic:
            yield self._sample(OPPOSITE[forward], REAL), (self._edited, self._original, self._region)
        if not real_only:
            yield self._sample(forward, SYNTHETIC), (self._original, self._edited, self._region)

    def _sample(self, direction: Direction, truth: str) -> Sample:
        row, finding = self._row, self._finding
        sample_id = f"{row.id[:12]}-{direction.value}"
        intent = replace(self._asked, finding=finding.name, direction=direction)
        if truth == REAL:
            # What was said of the finding's looks was a wish; only its place still holds on the way back.
            intent = Intent(finding.name, direction, intent.side, intent.zone)
        forward = truth == SYNTHETIC
        notes = [truth, self._region_note()]
        if forward and self._image.synthetic:
            notes.append("the image before is synthetic: the build's original was itself an edit")
        if not forward:
            did = f"{row.task.direction.value} {finding.name}, task {row.id}"
            notes.append(f"the image before is synthetic: {did}")
        return Sample(
            id=sample_id,
            organ=self._title,
            task=f"{direction.value.capitalize()} {finding.title}",
            prompt=self._attempt.instruction if forward else compose(intent, finding),
            rephrased=compose(intent, finding, phrasing=PARAPHRASE),
            detailed=self._described(intent),
            key_concept=finding.title,
            direction=direction,
            finding=finding.name,
            cluster=self._cluster,
            image=self._pictured(sample_id, forward),
            previous=Path(),
            size=(self._original.shape[1], self._original.shape[0]),
            aligned=True,
            notes=tuple(note for note in notes if note),
        )

    def _described(self, intent: Intent) -> str:
        """Modality, action, entity, region and what is then seen, in the manner of MedEBench's descriptions."""
        done = "added" if intent.direction is Direction.ADD else "removed"
        place = describe_place(intent.zone, intent.side)
        where = f" {place}" if place else ""
        seen = signs_of(intent, self._finding, self._image)
        parts = (
            f"{self._title}: {self._finding.title}{where} was {done}.",
            f"It shows {seen}." if seen else "",
            "Everything else stays as it was.",
        )
        return " ".join(part for part in parts if part)

    def _pictured(self, sample_id: str, forward: bool) -> SourceImage:
        """What is known of the image before: the original's licence, group and acquisition whichever it is."""
        image = replace(self._image, id=sample_id)
        if not forward:
            adding = self._row.task.direction is Direction.ADD
            labels = (self._finding.name,) if adding else ()
            note = "; ".join(part for part in (image.note, "an edit of a real image") if part)
            image = replace(image, labels=labels, synthetic=True, note=note)
        scale = self._original.shape[1] / 1024
        return image if image.spacing_mm is None else replace(image, spacing_mm=image.spacing_mm / scale)

    def _region_note(self) -> str:
        if self._region is None:
            return NO_REGION
        support = self._attempt.support or "local"
        return f"region: the editor's own mask ({support} change)"


def _region(blobs: BlobStore, mask: str | None, width: int, height: int) -> Mask | None:
    """The editor's mask at the sample's size: a pixel counts as soon as any part of it was meant to change."""
    if mask is None:
        return None
    region = decode_mask(blobs.read(mask))
    if region.shape != (height, width):
        region = np.asarray(resize(region.astype(np.uint8) * 255, width, height) > 0)
    return region if region.any() and not region.all() else None


def _sized(pixels: Pixels, side: int) -> Pixels:
    height, width = pixels.shape[:2]
    if not side or max(height, width) <= side:
        return pixels
    scale = side / max(height, width)
    return resize(pixels, round(width * scale), round(height * scale))


def restricted(conversion: Conversion) -> str:
    """A line on images that may not be passed on; "" where all may."""
    closed = {
        name: n for name, n in conversion.licences.items() if name not in (Licence.OPEN, Licence.ATTRIBUTION)
    }
    if not closed:
        return ""
    held = ", ".join(
        f"{n} {'of unknown licence' if name == Licence.UNKNOWN else name}" for name, n in closed.items()
    )
    return f"{held}: do not pass the folder on, and hosted models need the owner's recorded consent"
