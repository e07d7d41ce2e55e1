"""From what a person asks for to arms, each with what produces its outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.arms import INSTRUCTION, RULES, Arm, ArmKind, PromptVariant, arm_label, text_of
from plantain.bench.generate.baselines import BASELINES, GROUND_TRUTH, NO_TRUTH, PROVIDER, Trick, Truth
from plantain.bench.generate.grid import Sweep, grid_of
from plantain.bench.generate.import_outputs import LABEL, ImportedOutputs, find_outputs, parse_outputs
from plantain.bench.generate.restored import RestoredSource, restored_arm
from plantain.bench.generate.shots import ShotStudy
from plantain.journal import JournalReader, TaskRow
from plantain.models.presets import Preset, presets
from plantain.pixels.arrays import Pixels
from plantain.records import InputError, OutcomeKind
from plantain.records.suggestions import suggest
from plantain.roles import (
    Adjustable,
    EditedImage,
    Editor,
    EditRequest,
    Reply,
    TakesDemonstrations,
    TakesRegion,
)

ONE_AT_A_TIME = frozenset({"diffusers", "process"})
"""Providers whose weights fill a machine: their arms run one after another, each closed before the next."""


@dataclass(frozen=True, slots=True)
class ArmRequest:
    """What `bench generate` is asked for.

    Attributes:
        editors: names of editors.
        presets: names of presets: an editor with its published grid and words.
        prompt: which text of a sample they are handed.
        seeds: outputs for each point of the sweep.
        sweep: parameter -> values, for all editors; () for the presets' own.
        shots: numbers of demonstrations; () for no few-shot study.
        outputs: made elsewhere.
        own: editors of a Python caller, by label.
        labels: what tables call an editor, by its name, where that is another.
        rule: which output is scored.
        retry: outputs of these editors that ended so are asked for once more.
        restore: "outside" puts an arm beside each editor's with the original put back outside the change.
    """

    editors: tuple[str, ...] = ()
    presets: tuple[str, ...] = ()
    prompt: PromptVariant = PromptVariant.ORIGINAL
    seeds: int = 1
    sweep: Sweep = field(default_factory=dict)
    shots: tuple[int, ...] = ()
    outputs: tuple[ImportedOutputs, ...] = ()
    own: Mapping[str, Editor] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    rule: str = "first"
    retry: frozenset[OutcomeKind] = frozenset()
    restore: str = "none"

    @property
    def names(self) -> tuple[str, ...]:
        """Editors and presets, by the names that their arms bear, each once."""
        return tuple(dict.fromkeys((*self.editors, *self.preset_names)))

    @property
    def preset_names(self) -> tuple[str, ...]:
        """The presets as editors are named, with the folder of their weights where one was given."""
        return tuple(found_preset(name).name + "".join(name.partition("@")[1:]) for name in self.presets)

    @property
    def named_models(self) -> tuple[str, ...]:
        """The models that answer for the named editors."""
        return tuple(dict.fromkeys(map(model_of, self.names)))

    @property
    def models(self) -> tuple[str, ...]:
        """All models that answer: those of the terms under which they are called."""
        return tuple(dict.fromkeys((*self.named_models, *(own.name for own in self.own.values()))))


class OutputSource(Protocol):
    """What produces an arm's outputs."""

    async def output(self, request: EditRequest, k: int) -> Reply[EditedImage]: ...


@dataclass(frozen=True, slots=True)
class EditorSource:
    """An editor as a source."""

    editor: Editor

    async def output(self, request: EditRequest, k: int) -> Reply[EditedImage]:
        return await self.editor.edit(request)


@dataclass(frozen=True, slots=True)
class ImportedSource:
    """Files as a source."""

    intake: ImportedOutputs

    async def output(self, request: EditRequest, k: int) -> Reply[EditedImage]:
        return await self.intake.output(request.image.id, k)


@dataclass(frozen=True, slots=True)
class PlannedArm:
    """An arm and what produces it; `by_example` names the prompt that shows demonstrations."""

    arm: Arm
    source: OutputSource
    by_example: str = ""

    @property
    def alone(self) -> bool:
        return self.arm.model.partition("/")[0] in ONE_AT_A_TIME

    @property
    def closable(self) -> object:
        """What may be closed once the arm is done."""
        return self.source.editor if isinstance(self.source, EditorSource) else None

    def ready(self, row: TaskRow) -> bool:
        """Whether a task can be done now: a restored arm waits for the editor's."""
        return not isinstance(self.source, RestoredSource) or self.source.ready(row)

    def obstacle(self, sample: Sample) -> str:
        """Why this arm can give nothing for a sample, known beforehand; "" where it can."""
        if self.arm.label == GROUND_TRUTH:
            return "" if sample.changed is not None else NO_TRUTH
        if self.arm.kind is ArmKind.EDITOR and not text_of(sample, self.arm.prompt):
            return f"the sample has no {self.arm.prompt.value} prompt"
        if self.arm.region and sample.roi is None:
            return "the sample has no region, and this editor has to be told where to edit"
        return ""


def baseline_arms(benchmark: Benchmark) -> list[PlannedArm]:
    """The arms that are always there."""

    def truth(sample_id: str) -> Pixels | None:
        sample = benchmark.sample(sample_id)
        return None if sample.changed is None else benchmark.changed(sample)

    planned = []
    for label in BASELINES:
        editor: Editor = Truth(truth) if label == GROUND_TRUTH else Trick(label)
        arm = Arm(label, f"{PROVIDER}/{label}", ArmKind.BASELINE, fingerprint=editor.fingerprint)
        planned.append(PlannedArm(arm, EditorSource(editor)))
    return planned


def intake_arms(wanted: ArmRequest) -> list[PlannedArm]:
    """One arm for each model whose outputs are taken in."""
    return [PlannedArm(replace(one.arm, rule=wanted.rule), ImportedSource(one)) for one in wanted.outputs]


def editor_arms(
    wanted: ArmRequest, resolve: Callable[[str], Editor], study: ShotStudy | None
) -> list[PlannedArm]:
    """The arms of all editors: one each, or one for each number of demonstrations.

    Args:
        wanted: what is asked for.
        resolve: the editor of a model's name.
        study: the few-shot study, where demonstrations are wanted.

    Raises:
        InputError: an editor cannot do what is asked of it; the line names it and the option.
    """
    planned: list[PlannedArm] = []
    named: list[tuple[str, Editor, Preset | None]] = [
        (name, resolve(model_of(name)), presets().get(name.partition("@")[0])) for name in wanted.names
    ]
    named += [(label, editor, None) for label, editor in wanted.own.items()]
    for name, editor, preset in named:
        called, sweep = wanted.labels.get(name, name), wanted.sweep
        if not sweep and preset is not None and name in wanted.preset_names:
            sweep = preset.sweep
        _check(name, editor, sweep, wanted)
        region = isinstance(editor, TakesRegion) and editor.takes_region
        arm = Arm(
            arm_label(called, wanted.prompt),
            editor.name if name in wanted.own else model_of(name),
            prompt=wanted.prompt,
            words=preset.prompt if preset is not None and preset.model else INSTRUCTION,
            grid=grid_of(wanted.seeds, sweep),
            region=region,
            fingerprint=editor.fingerprint,
            rule=wanted.rule,
        )
        by_example = str(getattr(editor, "by_example", ""))
        source = EditorSource(editor)
        if study is None:
            planned.append(PlannedArm(arm, source))
            continue
        for shots in wanted.shots:
            label = arm_label(called, wanted.prompt, shots)
            few = replace(
                arm, label=label, shots=shots, samples=study.samples, demonstrations=study.demonstrations
            )
            planned.append(PlannedArm(few, source, by_example if shots else ""))
    return planned


def restored_arms(
    benchmark: Benchmark, reader: JournalReader, wanted: ArmRequest, editors: Sequence[PlannedArm]
) -> list[PlannedArm]:
    """The arm beside each editor's, where restored ones are wanted."""
    if wanted.restore == "none":
        return []
    return [PlannedArm(restored_arm(one.arm), RestoredSource(benchmark, reader, one.arm)) for one in editors]


def found_preset(name: str) -> Preset:
    """The preset of that name, or of that name behind "provider/medebench-"; "@PATH" behind it is of its weights.

    Raises:
        InputError: there is none; names the nearest.
    """
    known, name = presets(), name.partition("@")[0]
    for full, preset in known.items():
        if name in (full, full.partition("/")[2], full.partition("/")[2].removeprefix("medebench-")):
            return preset
    short = {full.partition("/")[2]: full for full in known}
    hint = suggest(name, [*known, *short], otherwise=f"presets: {', '.join(known)}", cutoff=0.4)
    raise InputError(f"--preset: no preset {name!r}; {hint}")


def model_of(name: str) -> str:
    """The model that answers for an editor's name: a hosted preset stands for another."""
    preset = presets().get(name)
    return preset.model if preset is not None and preset.model else name


def _check(name: str, editor: Editor, sweep: Sweep, wanted: ArmRequest) -> None:
    """Refuses beforehand what an editor would refuse, or not notice, a thousand times."""
    known = editor.adjustable if isinstance(editor, Adjustable) else frozenset[str]()
    for parameter in sweep:
        if parameter not in known:
            what = f"it can vary {', '.join(sorted(known))}" if known else "it has nothing to vary"
            raise InputError(f"--sweep: {name} has no parameter {parameter!r}; {what}")
    most = editor.most_demonstrations if isinstance(editor, TakesDemonstrations) else 0
    if max(wanted.shots, default=0) > most:
        what = (
            f"looks at {most} at most" if most else "looks at none; few-shot prompting is for hosted editors"
        )
        raise InputError(f"--shots: {max(wanted.shots)} demonstrations; {name} {what}")


def check_rule(rule: str) -> None:
    """Raises InputError for a rule that there is not."""
    if rule not in RULES:
        raise InputError(
            f"--score-output: {rule!r}; choose one of {', '.join(RULES)}: which output counts is settled beforehand, "
            "never by its score"
        )


def check_labels(planned: Sequence[PlannedArm]) -> None:
    """Refuses two arms whose labels, or whose folders when exported, are the same. Raises InputError."""
    seen: dict[str, str] = {}
    for one in planned:
        other = seen.setdefault(one.arm.folder.casefold(), one.arm.label)
        if other != one.arm.label or sum(p.arm.label == one.arm.label for p in planned) > 1:
            raise InputError(f"two arms are called {one.arm.label!r}; give outputs another name with =NAME")


def parse_editors(given: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Reads "provider/model" or "provider/model=NAME": the editors, and what some of them are to be called.

    Raises:
        InputError: a name that cannot be a folder's, or one editor under two names.
    """
    labels: dict[str, str] = {}
    named: list[str] = []
    for text in given:
        model, equals, label = text.rpartition("=")
        if not equals or "/" in label:  # a folder whose name holds "=" is no name
            model, label = text, text
        elif not LABEL.match(label):
            raise InputError(f"--editor: the name {label!r}; letters, digits, space and . _ + - are allowed")
        if labels.setdefault(model, label) != label:
            raise InputError(f"--editor: {model} is called both {labels[model]!r} and {label!r}")
        named.append(model)
    return tuple(dict.fromkeys(named)), {model: label for model, label in labels.items() if model != label}


def outputs_at(given: Sequence[str], sample_ids: Sequence[str]) -> tuple[ImportedOutputs, ...]:
    """What the options `--outputs` name. Raises InputError as `find_outputs` does."""
    found: list[ImportedOutputs] = []
    for text in given:
        path, name = parse_outputs(text)
        found += find_outputs(path, name, sample_ids)
    return tuple(found)
