"""One sample of a benchmark: a pair of images, the instruction, and the region of the change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plantain.pixels.decode import one_line
from plantain.records import Direction, Geometry, Licence, SourceImage

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
        cluster: shared with dependent samples: a hashed source address, a patient group, else the id.
        image: the record of the previous image: licence, consent, modality; prepared_sha256 is of the file.
        direction: add, remove, or any other change.
        finding: of the build that the benchmark was made from; "" otherwise.
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
        """Return True if the image after exists and a note marks it as synthetic."""
        return self.changed is not None and self.notes_synthetic_truth

    @property
    def notes_synthetic_truth(self) -> bool:
        """Return True if a note marks the image after as synthetic, also before its file is known."""
        return any(note.startswith(SYNTHETIC_TRUTH) for note in self.notes)


@dataclass(frozen=True, slots=True)
class BenchmarkProblem:
    """A problem of a benchmark.

    Attributes:
        file: the file concerned, relative to the benchmark's folder.
        field: the field of the metadata, or "pixels", "size" and the like.
        detail: the problem, and the allowed values.
        sample: id of the sample concerned, "" where it is none or several.
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
    """Return the record of an image of which only the size is known; its licence is unknown."""
    width, height = size
    geometry = Geometry(width, height, "pad", 0, 0, width, height)
    return SourceImage(sample_id, dataset, "unknown", (), Licence.UNKNOWN, "", "", geometry)
