"""A bench run read back: its benchmark, its arms, and every output with its place in the grid.

The run's meta holds three entries: `bench` (which benchmark), `bench.arms` (how outputs are made) and `bench.samples`
(what tables need of the samples), so that scores can be tabulated from the run alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from plantain.bench.generate.arms import Arm, arm_from_json, arm_to_json
from plantain.journal import Journal, JournalReader, TaskRow
from plantain.journal.questions.benchmark import arm_tasks
from plantain.records import Attempt, InputError, TaskState

BENCH, ARMS, SAMPLES = "bench", "bench.arms", "bench.samples"
"""Keys of the run's meta."""

NOT_MADE = "not made yet"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BenchHeader:
    """Which benchmark a run belongs to.

    Attributes:
        root: its folder, absolute.
        name: of the benchmark; digest: of all its content.
        beside: its folder relative to the run's, so that both can be moved together.
    """

    root: str
    name: str
    digest: str
    beside: str

    @classmethod
    def of(cls, root: Path, name: str, digest: str, run: Path) -> BenchHeader:
        """The header of a run of the benchmark in a folder."""
        folder = root.resolve()
        return cls(str(folder), name, digest, os.path.relpath(folder, run.resolve()))


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """What scores and tables need of a sample without its benchmark.

    Attributes:
        id, organ, task, cluster, prompt, rephrased, detailed, finding: as in `plantain.bench.benchmark.samples.Sample`.
        direction, modality, licence: as text.
        size: (width, height) in pixels.
        has_truth, has_roi: whether there is an image after, and a region.
        roi_share: share of the image that the region covers; None without a region.
        content: hash of all that the sample is, files included; a run refuses a sample whose hash changed.
        synthetic_truth: the image after is not real.
    """

    id: str
    organ: str
    task: str
    cluster: str
    prompt: str
    rephrased: str
    detailed: str
    finding: str
    direction: str
    modality: str
    licence: str
    size: tuple[int, int]
    has_truth: bool
    has_roi: bool
    roi_share: float | None
    content: str
    synthetic_truth: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """One output of an arm on a sample, made or not.

    Attributes:
        sample_id, arm, k: which; `attempt.round` is k + 1.
        task_id, generation: of the journal's task, for scores and traces; the id is "" where there is no task yet.
        attempt: what the journal has; None where it was never made. Its `edited` is the PNG's blob, None without one.
        parameters: those of the grid point.
        reason: why there is no image, in a line; "" where there is one.
    """

    sample_id: str
    arm: str
    k: int
    task_id: str
    generation: int
    attempt: Attempt | None
    parameters: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def edited(self) -> str | None:
        """Hash of the output's PNG, of the sample's own size; None where there is no image."""
        return self.attempt.edited if self.attempt is not None else None


class BenchRun:
    """A bench run, read-only; works while it is being generated or scored.

    Attributes:
        run: its folder.
        reader: its journal.
        header: which benchmark it belongs to.
        arms: by label, baselines first, then in the order they were added.
        samples: by id, in order of id.
    """

    def __init__(self, reader: JournalReader) -> None:
        self.run = reader.run
        self.reader = reader
        self.header = read_header(reader)
        self.arms = read_arms(reader)
        self.samples = read_samples(reader)

    @classmethod
    def open(cls, run: Path) -> BenchRun:
        """Opens a run.

        Raises:
            InputError: not a run, or a run of something else than a benchmark.
        """
        reader = JournalReader.open(run)
        try:
            return cls(reader)
        except InputError:
            reader.close()
            raise

    @property
    def benchmark_root(self) -> Path:
        """Return the benchmark's folder: relative to the run if it exists there, else where the run recorded it."""
        moved = (self.run.resolve() / self.header.beside).resolve()
        return moved if moved.exists() else Path(self.header.root)

    def find_benchmark(self, stated: Path | None) -> Path:
        """Where the benchmark is: where a person says, else `benchmark_root`. Raises InputError where it is gone."""
        root = stated or self.benchmark_root
        if stated is None and not root.exists():
            raise InputError(
                f"{root}: the benchmark is no longer there; say where it is now with --bench PATH"
            )
        return root

    def close(self) -> None:
        self.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def covered(self, arm: str) -> list[SampleFacts]:
        """The samples that an arm covers, in order of id."""
        chosen = self.arms[arm]
        return [facts for facts in self.samples.values() if chosen.covers(facts.id)]

    def outputs(self, arm: str) -> Iterator[Output]:
        """Every output that the arm has or should have, by sample id and k; those never made say so.

        Raises:
            KeyError: no arm of that label.
        """
        chosen = self.arms[arm]
        rows = self._tasks(arm)
        for facts in self.covered(arm):
            row = rows.get(facts.id)
            attempts = {} if row is None else self._attempts(row)
            for k, point in enumerate(chosen.grid):
                attempt = attempts.get(k + 1)
                yield Output(
                    facts.id,
                    arm,
                    k,
                    row.id if row is not None else "",
                    row.generation if row is not None else 0,
                    attempt,
                    point.parameters,
                    _why_no_image(row, attempt),
                )

    def scored(self, arm: str) -> Iterator[Output]:
        """The outputs that the arm's rule names."""
        ks = set(self.arms[arm].scored)
        return (output for output in self.outputs(arm) if output.k in ks)

    def read(self, output: Output) -> bytes:
        """The PNG of an output. Raises ValueError where it has none, BadBlob where it is damaged."""
        if output.edited is None:
            raise ValueError(f"{output.arm}, sample {output.sample_id}, output {output.k}: {output.reason}")
        return self.reader.read_blob(output.edited)

    def _tasks(self, arm: str) -> dict[str, TaskRow]:
        """The arm's tasks by sample."""
        rows = [self.reader.task(task.id) for task in arm_tasks(self.reader, arm)]
        return {row.task.image_id: row for row in rows}

    def _attempts(self, row: TaskRow) -> dict[int, Attempt]:
        return {attempt.round: attempt for attempt in self.reader.attempts(row.id, row.generation)}


def _why_no_image(row: TaskRow | None, attempt: Attempt | None) -> str:
    if attempt is not None:
        if attempt.edited is not None:
            return ""
        outcome = attempt.edit_outcome
        return f"{outcome.kind.value}: {outcome.reason}".rstrip(": ") if outcome is not None else NOT_MADE
    if row is not None and row.state is TaskState.NOT_APPLICABLE:
        return f"not_applicable: {row.reason}"
    return NOT_MADE


def read_header(reader: JournalReader) -> BenchHeader:
    """Which benchmark a run belongs to. Raises InputError where it belongs to none."""
    text = reader.meta(BENCH)
    if text is None:
        raise InputError(f"{reader.run}: not a run of a benchmark; make one with `plantain bench generate`")
    return _entry(reader, BENCH, text, BenchHeader)


def read_arms(reader: JournalReader) -> dict[str, Arm]:
    """The run's arms by label; none before the first was planned."""
    rows = _entry(reader, ARMS, reader.meta(ARMS) or "{}", dict[str, Any])
    return {label: arm_from_json(label, arm, str(reader.run)) for label, arm in rows.items()}


def read_samples(reader: JournalReader) -> dict[str, SampleFacts]:
    """What the run knows of its samples, by id."""
    rows = _entry(reader, SAMPLES, reader.meta(SAMPLES) or "[]", list[SampleFacts])
    return {sample.id: sample for sample in rows}


def _entry(reader: JournalReader, key: str, text: str, kind: type[T]) -> T:
    """An entry of the run's meta as it was written; a run may come from somebody else."""
    try:
        return TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join([key, *map(str, first["loc"])])
        raise InputError(f"{reader.run}: journal.sqlite, {where}: {first['msg']}") from error


async def write_bench(
    journal: Journal, header: BenchHeader, arms: Mapping[str, Arm], samples: Mapping[str, SampleFacts]
) -> None:
    """Stores the run's three entries, each only where it changed; the header last, as the mark that all are there."""
    entries = {
        ARMS: orjson.dumps({label: arm_to_json(arm) for label, arm in arms.items()}),
        SAMPLES: orjson.dumps([asdict(samples[key]) for key in sorted(samples)]),
        BENCH: orjson.dumps(asdict(header)),
    }
    for key, value in entries.items():
        text = value.decode()
        if journal.reader.meta(key) != text:
            await journal.set_meta(key, text)
