"""The records of a bench run: its benchmark, its arms, and every output with its place in the grid.

The run's meta has three entries: `bench` (which benchmark), `bench.arms` (how outputs are made) and `bench.samples`
(facts of the samples), so that scores can be tabulated from the run alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Self, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import encode_png, is_benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.findings import load_taxonomy
from plantain.journal import Journal, JournalReader, JsonValue, StoredScore, TaskRow
from plantain.journal.questions.benchmark import arm_tasks
from plantain.privacy.permission import made_from
from plantain.records import Attempt, Finding, InputError, Licence, Score, TaskState, derive_seed
from plantain.records.messages import command_line
from plantain.roles import EncodedImage

BENCH, ARMS, SAMPLES = "bench", "bench.arms", "bench.samples"
"""Keys of the run's meta."""

NOT_MADE = "not made yet"
PNG = "image/png"
INSTRUCTION = "{instruction}"

T = TypeVar("T")


class ArmKind(StrEnum):
    """The producer of an arm's outputs: a model, one of our baselines, or files."""

    EDITOR = "editor"
    BASELINE = "baseline"
    OUTPUTS = "outputs"


class PromptVariant(StrEnum):
    """The text of a sample that an editor receives as its instruction."""

    ORIGINAL = "original"
    REPHRASED = "rephrased"
    DETAILED = "detailed"


@dataclass(frozen=True, slots=True)
class GridPoint:
    """The seed and parameters of one output of an arm.

    Attributes:
        seed: index of the seed; `output_seed` derives the seed from it, the run's seed and the sample.
        parameters: name -> value, e.g. {"guidance": 7.5}; others have the editor's defaults.
    """

    seed: int = 0
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of producing outputs in a run: an editor or baseline with its prompt and settings.

    Attributes:
        label: unique in its run and readable, e.g. "diffusers/x+rephrased"; `folder` is the same as a folder's name.
        model: "provider/model"; "baseline/NAME" or "outputs/NAME" where no model is called.
        kind: the producer.
        prompt: which text of the sample is used.
        words: template of the prompt; "{instruction}" is replaced by the text.
        grid: settings of each output k: seeds outermost, then the parameters in the given order. It only grows.
            Tables score output 0, as the published evaluator does.
        shots: demonstrations shown; None outside a few-shot study.
        samples: ids of the samples that it covers; None for all.
        demonstrations: task -> ids of the study's demonstration samples, in the order they are shown; an arm shows
            the first `shots` of them.
        region: True if the editor receives the region.
        fingerprint: fingerprint of the model; changes whenever its answers could.
    """

    label: str
    model: str
    kind: ArmKind = ArmKind.EDITOR
    prompt: PromptVariant = PromptVariant.ORIGINAL
    words: str = INSTRUCTION
    grid: tuple[GridPoint, ...] = (GridPoint(),)
    shots: int | None = None
    samples: tuple[str, ...] | None = None
    demonstrations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    region: bool = False
    fingerprint: str = ""

    @property
    def folder(self) -> str:
        return self.label.replace("/", "__")

    def covers(self, sample_id: str) -> bool:
        return self.samples is None or sample_id in self.samples

    def instruction(self, sample: Sample) -> str:
        """Return the text sent for a sample; "" if the sample has no text of this variant."""
        text = text_of(sample, self.prompt)
        return self.words.replace(INSTRUCTION, text) if text else ""


def text_of(sample: Sample, variant: PromptVariant) -> str:
    """Return the sample's prompt, paraphrase or detailed description, by variant; "" if it has none."""
    return {
        PromptVariant.ORIGINAL: sample.prompt,
        PromptVariant.REPHRASED: sample.rephrased,
        PromptVariant.DETAILED: sample.detailed,
    }[variant]


def bench_task_id(sample: Sample, label: str) -> str:
    """Return the id of an arm's task on a sample: 20 hex digits, the same in every run."""
    text = "\x1f".join(("bench", sample.image.prepared_sha256, sample.id, label))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def output_seed(run_seed: int, sample_id: str, seed_index: int) -> int:
    """Return the seed of an output: the same for all arms and parameters, so that only these differ."""
    return derive_seed(run_seed, "bench", sample_id, seed_index)


@dataclass(frozen=True, slots=True)
class BenchHeader:
    """The benchmark of a run.

    Attributes:
        root: absolute path of the benchmark's folder.
        name: the benchmark's name; digest: SHA-256 of its content.
        beside: the same folder relative to the run's folder, so that both can be moved together.
    """

    root: str
    name: str
    digest: str
    beside: str

    @classmethod
    def of(cls, benchmark: Benchmark, run: Path) -> BenchHeader:
        """Make the header of the run in folder `run`."""
        folder = benchmark.root.resolve()
        return cls(str(folder), benchmark.name, benchmark.digest, os.path.relpath(folder, run.resolve()))


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """Facts of a sample for scores and tables without its benchmark.

    Attributes:
        id, organ, task, cluster, prompt, detailed: as in `plantain.bench.benchmark.samples.Sample`.
        licence: the licence as text.
        has_truth: True if there is an image after.
        content: `Benchmark.content_of` the sample; a run refuses a sample whose content changed.
        synthetic_truth: True if the image after is synthetic.
    """

    id: str
    organ: str
    task: str
    cluster: str
    prompt: str = ""
    detailed: str = ""
    licence: str = Licence.UNKNOWN.value
    has_truth: bool = False
    content: str = ""
    synthetic_truth: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """One output of an arm on a sample, which may not have been made yet.

    Attributes:
        sample_id, arm, k: sample, arm and number of the output; `attempt.round` is k + 1.
        task_id, generation: those of the journal's task; the id is "" without a task.
        attempt: the attempt, None if never made; its `edited` is the hash of the PNG, None without an image.
        reason: why the image is missing, in a line; "" if it exists.
    """

    sample_id: str
    arm: str
    k: int
    task_id: str
    generation: int
    attempt: Attempt | None
    reason: str = ""

    @property
    def edited(self) -> str | None:
        """The hash of the output's PNG; None without an image."""
        return self.attempt.edited if self.attempt is not None else None

    def score(self, metric: str, score: Score, detail: Mapping[str, JsonValue]) -> StoredScore:
        """Make the journal's row for a score of this output; nothing is written."""
        return StoredScore(self.task_id, self.generation, self.k + 1, metric, score, detail)


class BenchRun:
    """A bench run opened for reading, also while it is being generated or scored.

    Attributes:
        run: the run's folder.
        reader: the run's journal.
        header: the benchmark that the run belongs to.
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
        """Open a run. Raise InputError if it is not the run of a benchmark."""
        if is_benchmark(run):
            make = command_line("bench", "generate", run, "--run", f"runs/{run.resolve().name}")
            raise InputError(f"{run} is a benchmark, not a run; {make} --editor MODEL makes one")
        reader = JournalReader.open(run)
        try:
            return cls(reader)
        except InputError:
            reader.close()
            raise

    @property
    def benchmark_root(self) -> Path:
        """The benchmark's folder: the recorded path relative to the run if it exists, else the absolute one."""
        moved = (self.run.resolve() / self.header.beside).resolve()
        return moved if moved.exists() else Path(self.header.root)

    def find_benchmark(self, stated: Path | None) -> Path:
        """Return `stated`, unchecked, or if None `benchmark_root`. Raise InputError if the latter does not exist."""
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

    def __exit__(self, *ended: object) -> None:
        self.close()

    def covered(self, arm: str) -> list[SampleFacts]:
        """Return the samples that an arm covers, in order of id."""
        chosen = self.arms[arm]
        return [facts for facts in self.samples.values() if chosen.covers(facts.id)]

    def outputs(self, arm: str) -> Iterator[Output]:
        """Yield every output that the arm has or should have, by sample id and k. Raise KeyError for an unknown arm."""
        tasks = (self.reader.task(task.id) for task in arm_tasks(self.reader, arm))
        rows = {row.task.image_id: row for row in tasks}
        for facts in self.covered(arm):
            row = rows.get(facts.id)
            made = () if row is None else self.reader.attempts(row.id, row.generation)
            attempts = {attempt.round: attempt for attempt in made}
            for k in range(len(self.arms[arm].grid)):
                attempt = attempts.get(k + 1)
                task_id, generation = ("", 0) if row is None else (row.id, row.generation)
                reason = _why_no_image(row, attempt)
                yield Output(facts.id, arm, k, task_id, generation, attempt, reason)

    def scored(self, arm: str) -> Iterator[Output]:
        """Yield the first output (k = 0) of each sample that the arm covers; tables score only these."""
        return (output for output in self.outputs(arm) if output.k == 0)

    def by_sample(self) -> Iterator[tuple[str, list[Output]]]:
        """Yield (sample id, the attempted outputs of all arms) in order of id."""
        place = {sample_id: i for i, sample_id in enumerate(self.samples)}
        streams = (self.outputs(label) for label in self.arms)
        together = heapq.merge(*streams, key=lambda output: place[output.sample_id])
        for sample_id, outputs in groupby(together, key=lambda output: output.sample_id):
            yield sample_id, [output for output in outputs if output.attempt is not None]

    def scores(self, output: Output) -> dict[str, StoredScore]:
        """Return the scores that an output has, by metric."""
        rows = self.reader.scores(output.task_id, output.generation)
        return {row.metric: row for row in rows if row.round == output.k + 1}

    def read(self, output: Output) -> bytes:
        """Return the PNG of an output. Raise ValueError if it has none, BadBlob if it is damaged."""
        if output.edited is None:
            raise ValueError(f"{output.arm}, sample {output.sample_id}, output {output.k}: {output.reason}")
        return self.reader.read_blob(output.edited)


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
    """Return the record of the benchmark that a run belongs to. Raise InputError for a run of another kind."""
    text = reader.meta(BENCH)
    if text is None:
        raise InputError(f"{reader.run}: not a run of a benchmark; make one with `plantain bench generate`")
    return _entry(reader, BENCH, text, BenchHeader)


def read_arms(reader: JournalReader) -> dict[str, Arm]:
    """Return the run's arms by label."""
    return {arm.label: arm for arm in _entry(reader, ARMS, reader.meta(ARMS) or "[]", list[Arm])}


def read_samples(reader: JournalReader) -> dict[str, SampleFacts]:
    """Return the run's samples by id."""
    rows = _entry(reader, SAMPLES, reader.meta(SAMPLES) or "[]", list[SampleFacts])
    return {sample.id: sample for sample in rows}


def _entry(reader: JournalReader, key: str, text: str, kind: type[T]) -> T:
    """Return an entry of the run's meta, validated: a run may come from someone else."""
    try:
        return TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join([key, *map(str, first["loc"])])
        raise InputError(f"{reader.run}: journal.sqlite, {where}: {first['msg']}") from error


async def write_bench(
    journal: Journal, header: BenchHeader, arms: Iterable[Arm], samples: Mapping[str, SampleFacts]
) -> None:
    """Store header, arms and facts of samples, each only if it changed; the header last, as it marks a bench run."""
    entries = {
        ARMS: [asdict(arm) for arm in arms],
        SAMPLES: [asdict(samples[key]) for key in sorted(samples)],
        BENCH: asdict(header),
    }
    for key, value in entries.items():
        text = orjson.dumps(value).decode()
        if journal.reader.meta(key) != text:
            await journal.set_meta(key, text)


async def previous_of(benchmark: Benchmark, journal: Journal, sample: Sample) -> tuple[EncodedImage, str]:
    """Return (the sample's previous image as models receive it, the SHA-256 of that file).

    The first call records the image in the run, so that its licence is known before it is sent.
    """
    try:
        sha256 = journal.reader.image(sample.id).prepared_sha256
        data = await asyncio.to_thread(journal.reader.read_blob, sha256)
    except InputError:
        data = await asyncio.to_thread(lambda: encode_png(benchmark.previous(sample)))
        blob = await asyncio.to_thread(journal.put_blob, data, PNG)
        await journal.add_images([(replace(sample.image, id=sample.id, prepared_sha256=blob.sha256), blob)])
        sha256 = blob.sha256
    return EncodedImage(data, PNG), sha256


async def changed_of(benchmark: Benchmark, sample: Sample, previous: EncodedImage) -> EncodedImage:
    """Return the real image after as PNG, recorded as made from `previous`. Raise InputError if there is none."""
    data = await asyncio.to_thread(lambda: encode_png(benchmark.changed(sample)))
    return EncodedImage(made_from(data, previous.data), PNG)


def finding_of(sample: Sample) -> Finding | None:
    """Look up a sample's finding in the taxonomy; return None if the sample names none or it is unknown."""
    try:
        return load_taxonomy().get(sample.image.modality, sample.finding) if sample.finding else None
    except InputError:
        return None
