"""The arms that a user requests, with their grids of seeds and parameters, each with the source of its outputs."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.editors import BASELINES, GROUND_TRUTH, NO_TRUTH, baseline_editor
from plantain.bench.generate.output_files import ImportedOutputs
from plantain.bench.generate.runfile import INSTRUCTION, Arm, ArmKind, GridPoint, PromptVariant, text_of
from plantain.bench.generate.shots import ShotStudy
from plantain.models.registry import Preset, presets
from plantain.records import InputError, OutcomeKind
from plantain.records.messages import suggest
from plantain.roles import (
    Adjustable,
    EditedImage,
    Editor,
    EditRequest,
    Reply,
    TakesDemonstrations,
    TakesRegion,
)

Sweep = Mapping[str, tuple[float, ...]]
"""Parameter -> its values, in the order in which they were given."""

ONE_AT_A_TIME = frozenset({"diffusers", "process"})
"""Providers whose weights fill a machine: their arms run one after another, each closed before the next."""


@dataclass(frozen=True, slots=True)
class ArmRequest:
    """The editors, prompts, seeds and sweeps that a call of `bench generate` requests.

    Attributes:
        editors: names of editors.
        presets: names of presets: an editor with its published grid and words.
        prompt: the text of a sample that editors receive.
        seeds: number of outputs for each point of the sweep.
        sweep: parameter -> values, for all editors; empty for the presets' values.
        shots: numbers of demonstrations; () for no few-shot study.
        tasks: names of the few-shot study's tasks; () for the paper's.
        outputs: output files made elsewhere.
        own: editors of a Python caller, by label.
        retry: outputs of these editors with these outcomes are requested again.
    """

    editors: tuple[str, ...] = ()
    presets: tuple[str, ...] = ()
    prompt: PromptVariant = PromptVariant.ORIGINAL
    seeds: int = 1
    sweep: Sweep = field(default_factory=dict)
    shots: tuple[int, ...] = ()
    tasks: tuple[str, ...] = ()
    outputs: tuple[ImportedOutputs, ...] = ()
    own: Mapping[str, Editor] = field(default_factory=dict)
    retry: frozenset[OutcomeKind] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all editors and presets, without duplicates."""
        return tuple(dict.fromkeys((*self.editors, *self.preset_names)))

    @property
    def preset_names(self) -> tuple[str, ...]:
        """The presets' full names "provider/NAME", with "@FOLDER" of the weights if given."""
        return tuple(found_preset(name).name + "".join(name.partition("@")[1:]) for name in self.presets)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of all models that are called, without duplicates; the terms must name the same."""
        named = map(model_of, self.names)
        return tuple(dict.fromkeys((*named, *(own.name for own in self.own.values()))))


@dataclass(frozen=True, slots=True)
class PlannedArm:
    """An arm with the source of its outputs.

    Attributes:
        arm: the arm.
        source: the editor that makes the outputs, or output files made elsewhere.
        by_example: identity of the editor's prompt with demonstrations; "" outside a few-shot study.
    """

    arm: Arm
    source: Editor | ImportedOutputs
    by_example: str = ""

    async def output(self, request: EditRequest, k: int) -> Reply[EditedImage]:
        if isinstance(self.source, ImportedOutputs):
            return await self.source.output(request, k)
        return await self.source.edit(request)

    @property
    def alone(self) -> bool:
        return self.arm.model.partition("/")[0] in ONE_AT_A_TIME

    def obstacle(self, sample: Sample) -> str:
        """Return why this arm cannot produce anything for a sample; "" if it can."""
        if self.arm.label == GROUND_TRUTH:
            return "" if sample.changed is not None else NO_TRUTH
        if self.arm.kind is ArmKind.EDITOR and not text_of(sample, self.arm.prompt):
            return f"the sample has no {self.arm.prompt.value} prompt"
        if self.arm.region and sample.roi is None:
            return "the sample has no region, which this editor needs"
        return ""


def planned_arms(
    benchmark: Benchmark, wanted: ArmRequest, resolve: Callable[[str], Editor], study: ShotStudy | None
) -> list[PlannedArm]:
    """Return the arms of a run: baselines, imported outputs and editors.

    Args:
        benchmark: the run's benchmark.
        wanted: the request.
        resolve: returns the editor of a model's name.
        study: the few-shot study, if demonstrations are wanted.

    Raises:
        InputError: an editor does not support the request, or two arms have the same label or folder.
    """
    arms = []
    for label in BASELINES:
        editor = baseline_editor(label, benchmark)
        arm = Arm(label, editor.name, ArmKind.BASELINE, fingerprint=editor.fingerprint)
        arms.append(PlannedArm(arm, editor))
    arms += [PlannedArm(one.arm, one) for one in wanted.outputs]
    arms += _editor_arms(wanted, resolve, study)
    folders: set[str] = set()
    for one in arms:
        if one.arm.folder.casefold() in folders:
            raise InputError(f"two arms are called {one.arm.label!r}; give outputs another name with =NAME")
        folders.add(one.arm.folder.casefold())
    return arms


def _editor_arms(
    wanted: ArmRequest, resolve: Callable[[str], Editor], study: ShotStudy | None
) -> list[PlannedArm]:
    """Return one arm for each editor, or one for each number of demonstrations."""
    planned: list[PlannedArm] = []
    named: list[tuple[str, Editor, Preset | None]] = [
        (name, resolve(model_of(name)), presets().get(name.partition("@")[0])) for name in wanted.names
    ]
    named += [(label, editor, None) for label, editor in wanted.own.items()]
    for name, editor, preset in named:
        sweep = wanted.sweep
        if not sweep and preset is not None and name in wanted.preset_names:
            sweep = preset.sweep
        _check_editor(name, editor, sweep, wanted)
        arm = Arm(
            arm_label(name, wanted.prompt),
            editor.name if name in wanted.own else model_of(name),
            prompt=wanted.prompt,
            words=preset.prompt if preset is not None and preset.model else INSTRUCTION,
            grid=grid_of(wanted.seeds, sweep),
            region=isinstance(editor, TakesRegion) and editor.takes_region,
            fingerprint=editor.fingerprint,
        )
        if study is None:
            planned.append(PlannedArm(arm, editor))
            continue
        arm = replace(arm, samples=study.samples, demonstrations=study.demonstrations)
        for shots in wanted.shots:
            few = replace(arm, label=arm_label(name, wanted.prompt, shots), shots=shots)
            by_example = str(getattr(editor, "by_example", "")) if shots else ""
            planned.append(PlannedArm(few, editor, by_example))
    return planned


def _check_editor(name: str, editor: Editor, sweep: Sweep, wanted: ArmRequest) -> None:
    """Refuse parameters that an editor does not have, and more demonstrations than it accepts."""
    known = editor.adjustable if isinstance(editor, Adjustable) else frozenset[str]()
    for parameter in sweep:
        if parameter not in known:
            what = f"it can vary {', '.join(sorted(known))}" if known else "it has nothing to vary"
            raise InputError(f"--sweep: {name} has no parameter {parameter!r}; {what}")
    most = editor.most_demonstrations if isinstance(editor, TakesDemonstrations) else 0
    if max(wanted.shots, default=0) > most:
        what = f"accepts {most} at most" if most else "accepts none; few-shot prompting is for hosted editors"
        raise InputError(f"--shots: {max(wanted.shots)} demonstrations; {name} {what}")


def found_preset(name: str) -> Preset:
    """Return the preset of a name, with or without "provider/medebench-"; an "@PATH" at its end is ignored.

    Raises:
        InputError: no such preset; the message names the nearest.
    """
    known, name = presets(), name.partition("@")[0]
    for full, preset in known.items():
        short = full.partition("/")[2]
        if name in (full, short, short.removeprefix("medebench-")):
            return preset
    names = [*known, *(full.partition("/")[2] for full in known)]
    hint = suggest(name, names, otherwise=f"presets: {', '.join(known)}", cutoff=0.4)
    raise InputError(f"--preset: no preset {name!r}; {hint}")


def model_of(name: str) -> str:
    """Return the model that is called for an editor's name: that of a hosted preset, else the name itself."""
    preset = presets().get(name)
    return preset.model if preset is not None and preset.model else name


def arm_label(editor: str, prompt: PromptVariant, shots: int | None = None) -> str:
    """Return the label of an editor's arm: "gemini/m", "gemini/m+rephrased", "gemini/m+2shot"."""
    parts = [editor]
    if prompt is not PromptVariant.ORIGINAL:
        parts.append(prompt.value)
    if shots is not None:
        parts.append(f"{shots}shot")
    return "+".join(parts)


def grown(recorded: Arm, wanted: Arm) -> Arm:
    """Extend a recorded arm by the new outputs of a request; existing outputs keep their numbers.

    Raises:
        InputError: the recorded arm has other settings; the message names the difference.
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
    """Parse texts such as "guidance=7.5,7.6" into the values of each parameter, each once.

    Raises:
        InputError: one line that repeats the text and names the expected form.
    """
    sweep: dict[str, tuple[float, ...]] = {}
    for text in given:
        name, equals, listed = text.partition("=")
        if not equals or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise InputError(f"--sweep: {text!r} is not like guidance=7.5,7.6")
        values = [_number(value, text) for value in listed.split(",")]
        sweep[name] = tuple(dict.fromkeys([*sweep.get(name, ()), *values]))
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
    """Return the grid points of all outputs, ordered by seed, so that further seeds come last."""
    return tuple(
        GridPoint(seed, dict(zip(sweep, values, strict=True)))
        for seed in range(seeds)
        for values in itertools.product(*sweep.values())
    )
