"""An arm: one way of producing outputs for a benchmark's samples, with its grid of seeds and parameters."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from plantain.bench.benchmark.samples import Sample
from plantain.records import InputError, derive_seed

INSTRUCTION = "{instruction}"

Sweep = Mapping[str, tuple[float, ...]]
"""Parameter -> its values, in the order in which they were given."""

MOST_OUTPUTS = 10_000
"""Most outputs of one arm on one sample."""


class ArmKind(StrEnum):
    """The producer of an arm's outputs: a model, one of our baselines, files, or another arm, restored."""

    EDITOR = "editor"
    BASELINE = "baseline"
    OUTPUTS = "outputs"
    RESTORED = "restored"


class PromptVariant(StrEnum):
    """Which of a sample's texts an editor receives."""

    ORIGINAL = "original"
    REPHRASED = "rephrased"
    DETAILED = "detailed"


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One output of an arm.

    Attributes:
        seed: index of the seed; the seed itself is derived from the run's, the sample and this (`output_seed`).
        parameters: name -> value, e.g. {"guidance": 7.5}; others have the editor's defaults.
    """

    seed: int = 0
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of producing outputs.

    Attributes:
        label: unique in its run and readable, e.g. "diffusers/x+rephrased"; `folder` is the same as a folder's name.
        model: "provider/model"; "baseline/NAME" or "outputs/NAME" where no model is called.
        kind: the producer.
        prompt: which text of the sample is used.
        words: the words around it; "{instruction}" is replaced by the text.
        grid: output k is grid[k]: seeds outermost, then the parameters in the order they were given. It only grows.
            Tables score output 0, as the published evaluator does.
        shots: demonstrations shown; None outside a few-shot study.
        samples: ids of the samples that it covers; None for all.
        demonstrations: task -> ids of the study's demonstration samples, in the order they are shown; an arm shows
            the first `shots` of them.
        region: the editor receives the region.
        fingerprint: of the model; changes whenever its answers could.
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
    """Return the sample's text of one variant; "" without one."""
    return {
        PromptVariant.ORIGINAL: sample.prompt,
        PromptVariant.REPHRASED: sample.rephrased,
        PromptVariant.DETAILED: sample.detailed,
    }[variant]


def arm_label(editor: str, prompt: PromptVariant, shots: int | None = None) -> str:
    """Return the label of an editor's arm: "gemini/m", "gemini/m+rephrased", "gemini/m+2shot"."""
    parts = [editor]
    if prompt is not PromptVariant.ORIGINAL:
        parts.append(prompt.value)
    if shots is not None:
        parts.append(f"{shots}shot")
    return "+".join(parts)


def bench_task_id(sample: Sample, label: str) -> str:
    """Return the id of the task "this sample by this arm": 20 hex digits, the same in every run."""
    text = "\x1f".join(("bench", sample.image.prepared_sha256, sample.id, label))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def output_seed(run_seed: int, sample_id: str, seed_index: int) -> int:
    """Return the seed of an output: the same for every arm and every parameter, so that their effects are compared."""
    return derive_seed(run_seed, "bench", sample_id, seed_index)


def grown(recorded: Arm, wanted: Arm) -> Arm:
    """Return the wanted arm with the recorded outputs first: existing outputs keep their numbers, new ones follow.

    Raises:
        InputError: the recorded arm is another one; the line names the difference.
    """
    for name in ("model", "kind", "prompt", "words", "shots", "demonstrations", "region"):
        now, then = getattr(wanted, name), getattr(recorded, name)
        if now != then:
            shown = [repr(value) if value not in ("", None) else "not given" for value in (now, then)]
            raise InputError(
                f"arm {wanted.label}: {name} is now {shown[0]}, but this run has it with {shown[1]}; "
                "use a new --run folder"
            )
    samples = wanted.samples
    if samples is not None and recorded.samples is not None:
        samples = tuple(dict.fromkeys((*recorded.samples, *samples)))
    new = tuple(point for point in wanted.grid if point not in recorded.grid)
    return replace(wanted, grid=recorded.grid + new, samples=samples)


def parse_sweep(given: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Read "guidance=7.5,7.6", one text for each parameter.

    Raises:
        InputError: one line that repeats the text and names the expected form.
    """
    sweep: dict[str, tuple[float, ...]] = {}
    for text in given:
        name, equals, listed = text.partition("=")
        if not equals or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise InputError(f"--sweep: {text!r} is not like guidance=7.5,7.6")
        if name in sweep:
            raise InputError(f"--sweep: {name} is given twice; list its values behind one {name}=")
        sweep[name] = tuple(_number(value, text) for value in listed.split(","))
        if len(set(sweep[name])) < len(sweep[name]):
            raise InputError(f"--sweep: {text!r} has a value twice")
    return sweep


def _number(value: str, text: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"--sweep: {value.strip()!r} in {text!r} is not a number")
    return number


def grid_of(seeds: int, sweep: Sweep) -> tuple[GridPoint, ...]:
    """Return every output: seeds outermost, so that more seeds only append; the last parameter changes fastest.

    Raises:
        InputError: more than `MOST_OUTPUTS`.
    """
    wanted = seeds * math.prod(len(values) for values in sweep.values())
    if wanted > MOST_OUTPUTS:
        raise InputError(f"--sweep, --seeds: {wanted} outputs for each sample; at most {MOST_OUTPUTS}")
    return tuple(
        GridPoint(seed, dict(zip(sweep, values, strict=True)))
        for seed in range(seeds)
        for values in itertools.product(*sweep.values())
    )
