"""Preference training from a release, from supervised steps to an editor and the curve that says when it ended."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from plantain.files.opening import read_inside
from plantain.records import InputError
from plantain.train.base import TrainingBase
from plantain.train.editor_folder import Card
from plantain.train.encoded import Encoded
from plantain.train.examples.pairs import PreferencePair, TrainingPair
from plantain.train.examples.release_pairs import ReleasePreferences
from plantain.train.finished import DONE, read_finished, write_json
from plantain.train.flow.methods import FLOW_METHODS
from plantain.train.flow.preferences import FlowPreferenceLearner
from plantain.train.loop.training import Schedule, Trained
from plantain.train.preference import PreferenceModel, prefer, standing
from plantain.train.preference_denoising import DenoisingPreferenceLearner
from plantain.train.preference_plan import Preference, PreferenceObserver, PreferencePlan
from plantain.train.split import split_watched

SUPERVISED, MODEL, CURVE = "supervised", "model", "curve.json"
"""In the folder of a preference training: the editor after supervised steps, the final one, and the held-out curve."""

NEEDED = "a preference needs a task with both a success and a failure"

BEGUN = "begun.json"
"""Which training the folder was begun with: what lies half-done in it is another's under any other settings."""


class PreferenceLearner(Protocol):
    """An editor that learns from winners, and then to prefer them to losers."""

    form: str
    """Of its loss, as its paper calls it."""

    def supervise(
        self,
        winners: Iterable[TrainingPair],
        schedule: Schedule,
        work: Path,
        *,
        on_step: Callable[[int, dict[str, float]], None],
        stop: Callable[[], bool],
    ) -> Trained:
        """Learns winners from fresh weights, or goes on where the checkpoint in `work` stands."""
        ...

    def begin(self, start: Path) -> PreferenceModel:
        """Fresh from a folder, the base's own or that of the editor after supervised steps; this is the reference."""
        ...

    def encode(self, pairs: Iterable[PreferencePair]) -> Encoded:
        """Preferences as the model sees them when it edits."""
        ...

    def save(self, folder: Path, card: Card) -> None:
        """Writes the folder that is an editor by itself."""
        ...


def preference_learner(base: TrainingBase, plan: PreferencePlan) -> PreferenceLearner:
    """What learns preferences in the base's way."""
    if base.method in FLOW_METHODS:
        return FlowPreferenceLearner(base, plan)
    return DenoisingPreferenceLearner(base, plan)


@dataclass(frozen=True, slots=True)
class PreferenceResult:
    """How a preference training ended.

    Attributes:
        model: folder of the editor; None where it was interrupted.
        pairs, held_out: how many were learned from, and watched.
        curve: (step, where the model stood on the held-out pairs).
        stopped: why it ended before its last step; "" when it did not.
        step: steps of preference training that the model has seen.
        form: of the loss.
    """

    model: Path | None
    pairs: int
    held_out: int
    curve: tuple[tuple[int, Preference], ...]
    stopped: str
    step: int
    form: str = "Diffusion-DPO"


def train_preferences(
    source: ReleasePreferences,
    base: TrainingBase,
    plan: PreferencePlan,
    out: Path,
    *,
    observer: PreferenceObserver,
    stop: Callable[[], bool] = lambda: False,
) -> PreferenceResult:
    """Trains, or goes on where `out` stands; a finished training is only read.

    Raises:
        InputError: too few preferences, originals that are missing, or a folder of another training.
    """
    plan.check()
    learn, watched = split_watched(source.listed(), plan.held_out, plan.seed, "preferences", NEEDED)
    wanted = _identity(source, base, plan, learn, watched)
    finished = _finished(out, wanted, len(learn), len(watched))
    if finished is not None:
        return finished
    if read_finished(out / BEGUN, wanted) is None:
        write_json(out / BEGUN, {"identity": wanted})
    start = _supervised(source, base, plan, learn, out, observer, stop)
    if start is None:
        return PreferenceResult(None, len(learn), len(watched), (), "interrupted", 0)
    learner = preference_learner(base, plan)
    model = learner.begin(start)
    pairs, held_out = learner.encode(source.read(learn)), learner.encode(source.read(watched))
    work = out / "preference.training"
    curve = dict(_read_curve(work))

    def stands(step: int, where: Preference) -> None:
        curve[step] = where
        write_json(work / CURVE, [[at, asdict(seen)] for at, seen in sorted(curve.items())])
        observer.stands(step, where)

    observer.begin("preference", plan.steps)
    if not curve:
        stands(0, Preference(0.0, 1.0, 1.0))  # the model is its own reference
    trained = prefer(
        model,
        pairs,
        held_out,
        Schedule(plan.steps, plan.rate, plan.batch, seed=plan.seed, checkpoint_every=plan.every),
        work,
        base=f"{base.digest}+{plan.supervised_steps}" if plan.supervised_steps else base.digest,
        lora_rank=plan.lora_rank,
        beta=plan.beta,
        bound=plan.bound,
        on_step=lambda step, noted: observer.step(step, noted["loss"]),
        on_standing=stands,
        stop=stop,
    )
    points = tuple(sorted(curve.items()))
    result = PreferenceResult(
        out / MODEL, len(learn), len(watched), points, trained.stopped, trained.step, learner.form
    )
    if trained.stopped == "interrupted":
        return replace(result, model=None)
    final = curve.get(trained.step) or standing(model, held_out, seed=plan.seed)
    learner.save(out / MODEL, _card(base, plan, source, result, final))
    record = _record(source, base, plan, learn, watched, result, final)
    write_json(out / DONE, {"identity": wanted, **record})
    shutil.rmtree(work, ignore_errors=True)
    return result


def _record(
    source: ReleasePreferences,
    base: TrainingBase,
    plan: PreferencePlan,
    learn: Sequence[str],
    watched: Sequence[str],
    result: PreferenceResult,
    final: Preference,
) -> dict[str, object]:
    """How a finished training went, for its own JSON file."""
    return {
        "base": {"name": base.name, "digest": base.digest, "licence": base.licence},
        "source": {"name": source.name, "digest": source.digest},
        "plan": asdict(plan),
        "learned_from": list(learn),
        "watched": list(watched),
        "form": result.form,
        "curve": [[step, asdict(where)] for step, where in result.curve],
        "final": asdict(final),
        "stopped": result.stopped,
        "step": result.step,
    }


def _supervised(
    source: ReleasePreferences,
    base: TrainingBase,
    plan: PreferencePlan,
    learn: tuple[str, ...],
    out: Path,
    observer: PreferenceObserver,
    stop: Callable[[], bool],
) -> Path | None:
    """The editor after supervised steps on the winners; the base where there are none; None when interrupted."""
    if not plan.supervised_steps:
        return base.folder
    folder, work = out / SUPERVISED, out / f"{SUPERVISED}.training"
    if folder.is_dir():
        return folder
    observer.begin("supervised", plan.supervised_steps)
    learner = preference_learner(base, plan)
    winners = (
        TrainingPair(pair.id, pair.task, pair.cluster, pair.instruction, pair.before, pair.winner)
        for pair in source.read(learn)
    )
    trained = learner.supervise(
        winners,
        Schedule(plan.supervised_steps, plan.supervised_rate, plan.batch, seed=plan.seed),
        work,
        on_step=lambda step, noted: observer.step(step, noted["loss"]),
        stop=stop,
    )
    if trained.stopped:
        return None
    text = f"{plan.supervised_steps} supervised steps on {len(learn)} successful edits of `{source.name}`."
    learner.save(folder, Card(f"{base.name}, supervised", base.name, base.licence, text, plan.side))
    shutil.rmtree(work, ignore_errors=True)
    return folder


def _card(
    base: TrainingBase,
    plan: PreferencePlan,
    source: ReleasePreferences,
    result: PreferenceResult,
    final: Preference,
) -> Card:
    text = (
        f"{plan.supervised_steps} supervised steps, then {result.step} steps of {result.form} (beta {plan.beta:g}, "
        f"LoRA rank {plan.lora_rank}, learning rate {plan.rate:g}, seed {plan.seed}) on {result.pairs} preferences of "
        f"`{source.name}` ({source.digest[:12]}…). On {result.held_out} held-out preferences: implicit accuracy "
        f"{final.accuracy:.3f}, the winner's error {final.winner_ratio:.3f} of the reference's."
        + (f" Ended early: {result.stopped}." if result.stopped else "")
    )
    return Card(f"{base.name}, preferences", base.name, base.licence, text, plan.side)


def _identity(
    source: ReleasePreferences,
    base: TrainingBase,
    plan: PreferencePlan,
    learn: Sequence[str],
    watched: Sequence[str],
) -> str:
    settings = [source.name, source.digest, base.digest, asdict(plan), list(learn), list(watched)]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _finished(out: Path, wanted: str, pairs: int, held_out: int) -> PreferenceResult | None:
    found = read_finished(out / DONE, wanted)
    if found is None:
        return None
    return PreferenceResult(
        out / MODEL,
        pairs,
        held_out,
        _points(found["curve"]),
        str(found["stopped"]),
        int(found["step"]),
        str(found.get("form", "Diffusion-DPO")),
    )


def _read_curve(work: Path) -> tuple[tuple[int, Preference], ...]:
    try:
        return _points(json.loads(read_inside(work, work / CURVE)))
    except (InputError, ValueError):
        return ()


def _points(curve: Sequence[tuple[int, dict[str, float]]]) -> tuple[tuple[int, Preference], ...]:
    return tuple((int(step), Preference(**where)) for step, where in curve)
