"""The noun of a benchmark: one pair of real images, what was to be done, and where."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from plantain.pixels.decode import one_line
from plantain.records import Direction, SourceImage

SYNTHETIC_TRUTH = "synthetic ground truth"
"""How the note of a sample begins whose image after was made by a model or a renderer."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a benchmark. Files stay on disk; `Benchmark` reads them.

    Attributes:
        id: unique in its benchmark, a plain file name part, e.g. "38".
        organ: canonical name of MedEBench's organs ("Skin", "Bone", ...), or a benchmark's own.
        task: what kind of edit it is, e.g. "Remove benign skin moles"; tables group by it.
        prompt, rephrased, detailed: the instruction, a paraphrase, and the description of the change ("" when absent).
        key_concept: the words whose attention should lie on the region; "" when nobody has named them.
        cluster: what it shares with dependent samples: a hashed source address, a patient group, else its id.
        image: what is known of the previous image: licence, consent, modality; prepared_sha256 is of the file.
        direction: add, remove, or any other change.
        finding: the finding concerned, where the benchmark was made from a build; "" otherwise.
        previous: file of the image before.
        changed: file of the image after, real unless `synthetic_truth`; None where there is none.
        roi: file of the region's mask; None where there is none.
        size: (width, height) of the previous image in pixels.
        aligned: whether the image after lies pixel by pixel over the one before; None when unknown.
        notes: what a reader must know of this sample, a line each.
        source: address that the pair came from; "" unless its owner asked to keep it, as addresses can name patients.
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
    notes: tuple[str, ...] = field(default=())
    source: str = ""

    @property
    def synthetic_truth(self) -> bool:
        """Whether there is an image after that is not real: a note says so."""
        return self.changed is not None and any(note.startswith(SYNTHETIC_TRUTH) for note in self.notes)


@dataclass(frozen=True, slots=True)
class BenchmarkProblem:
    """Something wrong, or worth knowing, about a benchmark.

    Attributes:
        file: the file concerned, relative to the benchmark's folder.
        field: the field of the metadata, or "pixels", "size" and the like.
        detail: what is wrong, and what is allowed.
        sample: id of the sample concerned, "" where it is none or several.
        warning: True where the benchmark can be used nevertheless.
    """

    file: str
    field: str
    detail: str
    sample: str = ""
    warning: bool = False

    def __str__(self) -> str:
        sample = f"sample {one_line(self.sample)}: " if self.sample else ""
        return f"{one_line(self.file)}: {sample}{one_line(self.field)}: {one_line(self.detail)}"
