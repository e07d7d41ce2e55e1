"""An arm: one way of producing outputs for a benchmark's samples, with its grid of seeds and parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
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


def arm_from_json(label: str, row: JsonValue, where: str) -> Arm:
    """The arm of `arm_to_json`.

    Args:
        label: of the arm.
        row: as it was read; it may come from somebody else.
        where: the file that it stands in, for messages.

    Raises:
        InputError: a field is missing, or is not what `arm_to_json` writes; the line names file, arm and field.
    """
    field_of = _Fields(f"{where}: arm {label!r}", row)
    demonstrations = field_of.object("demonstrations")
    return Arm(
        label,
        model=field_of.text("model"),
        kind=ArmKind(field_of.one_of("kind", tuple(ArmKind))),
        prompt=PromptVariant(field_of.one_of("prompt", tuple(PromptVariant))),
        words=field_of.text("words"),
        grid=tuple(
            _point(_Fields(f"{field_of.where}: grid[{number}]", point))
            for number, point in enumerate(field_of.list("grid"))
        ),
        shots=None if field_of.value("shots") is None else field_of.whole("shots"),
        samples=None if field_of.value("samples") is None else field_of.texts("samples"),
        demonstrations={
            task: _Fields(f"{field_of.where}: demonstrations", demonstrations).texts(task)
            for task in demonstrations
        },
        region=field_of.yes_or_no("region"),
        fingerprint=field_of.text("fingerprint"),
        rule=field_of.one_of("rule", RULES),
    )


def _point(field_of: _Fields) -> GridPoint:
    parameters = field_of.object("params")
    named = _Fields(f"{field_of.where}: params", parameters)
    return GridPoint(field_of.whole("seed"), {name: named.number(name) for name in parameters})


class _Fields:
    """The fields of an object that somebody else wrote; every question raises InputError where the answer is no."""

    def __init__(self, where: str, row: JsonValue) -> None:
        if not isinstance(row, dict):
            raise InputError(f"{where}: an object is needed")
        self.where = where
        self._row = row

    def value(self, name: str) -> JsonValue:
        if name not in self._row:
            raise InputError(f"{self.where}: {name} is missing")
        return self._row[name]

    def text(self, name: str) -> str:
        value = self.value(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def one_of(self, name: str, allowed: Sequence[str]) -> str:
        value = self.value(name)
        if value not in allowed:
            raise self._wrong(name, f"one of {', '.join(allowed)}")
        return str(value)

    def whole(self, name: str) -> int:
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, "a whole number")
        return value

    def number(self, name: str) -> float:
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "a number")
        return value

    def yes_or_no(self, name: str) -> bool:
        value = self.value(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def list(self, name: str) -> Sequence[JsonValue]:
        value = self.value(name)
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def object(self, name: str) -> dict[str, JsonValue]:
        value = self.value(name)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        found = self.list(name)
        if not all(isinstance(text, str) for text in found):
            raise self._wrong(name, "a list of texts")
        return tuple(map(str, found))

    def _wrong(self, name: str, needed: str) -> InputError:
        return InputError(f"{self.where}: {name}: {needed} is needed")
