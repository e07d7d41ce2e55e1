"""An arm: one way of producing outputs for a benchmark's samples, with its grid of seeds and parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from plantain.bench.benchmark.samples import Sample
from plantain.journal import JsonValue
from plantain.records import InputError, derive_seed

RULES = ("first", "mean")
"""Which of several outputs is scored: the first of the grid, or the mean of the scores of all. Never the best."""


INSTRUCTION = "{instruction}"


class ArmKind(StrEnum):
    """Who produces an arm's outputs: a model, one of our baselines, somebody elsewhere, or another arm, restored."""

    EDITOR = "editor"
    BASELINE = "baseline"
    OUTPUTS = "outputs"
    RESTORED = "restored"


class PromptVariant(StrEnum):
    """Which of a sample's texts an editor is handed."""

    ORIGINAL = "original"
    REPHRASED = "rephrased"
    DETAILED = "detailed"


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One output of an arm: the number of its seed, counted from 0, and the parameters set for it.

    Attributes:
        seed: index of the seed; the seed itself is drawn from the run's, the sample and this (`output_seed`).
        parameters: name -> value, e.g. {"guidance": 7.5}; what is not named is as the editor has it.
    """

    seed: int = 0
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of producing outputs.

    Attributes:
        label: unique in its run and readable, e.g. "diffusers/x+rephrased"; `folder` is it as a folder's name.
        model: "provider/model" that is asked; "baseline/NAME" or "outputs/NAME" where no model is.
        kind: who produces.
        prompt: which text of the sample is handed over.
        words: what is sent of it; "{instruction}" stands for the text.
        grid: output k is grid[k]: seeds outermost, then the parameters in the order they were given. It only grows.
        shots: demonstrations shown; None outside a few-shot study.
        samples: ids of the samples that it covers; None for all.
        demonstrations: task -> ids of the study's demonstration samples, in the order they are shown; an arm shows
            the first `shots` of them.
        region: the editor is told where to edit.
        fingerprint: of the model; changes whenever its answers could.
        rule: which output is scored, see `RULES`.
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
    rule: str = "first"

    @property
    def folder(self) -> str:
        return self.label.replace("/", "__")

    @property
    def scored(self) -> tuple[int, ...]:
        """The outputs that the rule names."""
        return tuple(range(len(self.grid))) if self.rule == "mean" else (0,)

    def covers(self, sample_id: str) -> bool:
        return self.samples is None or sample_id in self.samples

    def instruction(self, sample: Sample) -> str:
        """What a model is told to do with a sample; "" where the sample has no text of this variant."""
        text = text_of(sample, self.prompt)
        return self.words.replace(INSTRUCTION, text) if text else ""


def text_of(sample: Sample, variant: PromptVariant) -> str:
    """The sample's text of one variant; "" where it has none."""
    return {
        PromptVariant.ORIGINAL: sample.prompt,
        PromptVariant.REPHRASED: sample.rephrased,
        PromptVariant.DETAILED: sample.detailed,
    }[variant]


def arm_label(editor: str, prompt: PromptVariant, shots: int | None = None) -> str:
    """The label of an editor's arm: "gemini/m", "gemini/m+rephrased", "gemini/m+2shot"."""
    parts = [editor]
    if prompt is not PromptVariant.ORIGINAL:
        parts.append(prompt.value)
    if shots is not None:
        parts.append(f"{shots}shot")
    return "+".join(parts)


def bench_task_id(sample: Sample, label: str) -> str:
    """Identity of the task "this sample by this arm": 20 hex digits; never of run or order."""
    text = "\x1f".join(("bench", sample.image.prepared_sha256, sample.id, label))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def output_seed(run_seed: int, sample_id: str, seed_index: int) -> int:
    """The seed of an output: the same for every arm and every parameter, so that differences are theirs."""
    return derive_seed(run_seed, "bench", sample_id, seed_index)


def grown(recorded: Arm, wanted: Arm) -> Arm:
    """The recorded arm with what is wanted beyond it: outputs that exist keep their numbers, new ones follow.

    Raises:
        InputError: the arm is recorded as something else; the line says what differs.
    """
    for name in ("model", "kind", "prompt", "words", "shots", "demonstrations", "region", "rule"):
        now, then = getattr(wanted, name), getattr(recorded, name)
        if now != then:
            raise InputError(
                f"arm {wanted.label}: {name} is now {_in_words(now)}, but this run has it with {_in_words(then)}; "
                "use a new --run folder"
            )
    samples = wanted.samples
    if samples is not None and recorded.samples is not None:
        samples = tuple(dict.fromkeys((*recorded.samples, *samples)))
    new = tuple(point for point in wanted.grid if point not in recorded.grid)
    return replace(wanted, grid=recorded.grid + new, samples=samples)


def _in_words(value: object) -> str:
    return repr(value) if value not in ("", None) else "not given"


def arm_to_json(arm: Arm) -> dict[str, JsonValue]:
    """An arm as it stands in a run's journal."""
    return {
        "model": arm.model,
        "kind": arm.kind.value,
        "prompt": arm.prompt.value,
        "words": arm.words,
        "grid": [{"seed": point.seed, "params": dict(point.parameters)} for point in arm.grid],
        "shots": arm.shots,
        "samples": None if arm.samples is None else list(arm.samples),
        "demonstrations": {task: list(ids) for task, ids in arm.demonstrations.items()},
        "region": arm.region,
        "fingerprint": arm.fingerprint,
        "rule": arm.rule,
    }


def arm_from_json(label: str, row: Mapping[str, JsonValue]) -> Arm:
    """The arm of `arm_to_json`."""
    grid, demonstrations, samples = row["grid"], row["demonstrations"], row["samples"]
    assert isinstance(grid, list)
    assert isinstance(demonstrations, dict)
    shots = row["shots"]
    return Arm(
        label,
        model=str(row["model"]),
        kind=ArmKind(str(row["kind"])),
        prompt=PromptVariant(str(row["prompt"])),
        words=str(row["words"]),
        grid=tuple(_point(point) for point in grid),
        shots=shots if isinstance(shots, int) else None,
        samples=tuple(_texts(samples)) if samples is not None else None,
        demonstrations={task: tuple(_texts(ids)) for task, ids in demonstrations.items()},
        region=bool(row["region"]),
        fingerprint=str(row["fingerprint"]),
        rule=str(row["rule"]),
    )


def _point(row: JsonValue) -> GridPoint:
    assert isinstance(row, dict)
    seed, parameters = row["seed"], row["params"]
    assert isinstance(seed, int)
    assert isinstance(parameters, dict)
    numbers = {name: value for name, value in parameters.items() if isinstance(value, int | float)}
    return GridPoint(seed, numbers)


def _texts(rows: JsonValue) -> Iterable[str]:
    assert isinstance(rows, list)
    return map(str, rows)
