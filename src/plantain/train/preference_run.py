"""Preference training from a release, from supervised steps to an editor and the curve that says when it ended."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from plantain.files.opening import read_inside
from plantain.records import InputError
from plantain.train.base import TrainingBase
from plantain.train.editor_folder import Card, save_editor
from plantain.train.examples.pairs import TrainingPair
from plantain.train.examples.release_pairs import ReleasePreferences
from plantain.train.finished import DONE, read_finished, write_json
from plantain.train.latents import Encoder
from plantain.train.loop.training import Schedule
from plantain.train.preference import encode_preferences, prefer, standing
from plantain.train.preference_plan import Preference, PreferenceObserver, PreferencePlan
from plantain.train.split import split_watched
from plantain.train.supervised import encode_pairs, fine_tune

SUPERVISED, MODEL, CURVE = "supervised", "model", "curve.json"
"""In the folder of a preference training: the editor after supervised steps, the final one, and the held-out curve."""

NEEDED = "a preference needs a task with both a success and a failure"

BEGUN = "begun.json"
"""Which training the folder was begun with: what lies half-done in it is another's under any other settings."""


@dataclass(frozen=True, slots=True)
class PreferenceResult:
    """How a preference training ended.

    Attributes:
        model: folder of the editor; None where it was interrupted.
        pairs, held_out: how many were learned from, and watched.
        curve: (step, where the model stood on the held-out pairs).
        stopped: why it ended before its last step; "" when it did not.
        step: steps of preference training that the model has seen.
    """

    model: Path | None
    pairs: int
    held_out: int
    curve: tuple[tuple[int, Preference], ...]
    stopped: str
    step: int


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
    pipe = start.load()
    encoder = Encoder(pipe, plan.side)
    pairs = encode_preferences(encoder, source.read(learn))
    held_out = encode_preferences(encoder, source.read(watched))
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
        pipe,
        pairs,
        held_out,
        Schedule(plan.steps, plan.rate, plan.batch, seed=plan.seed, checkpoint_every=plan.every),
        work,
        base=start.digest,
        lora_rank=plan.lora_rank,
        beta=plan.beta,
        bound=plan.bound,
        on_step=lambda step, noted: observer.step(step, noted["loss"]),
        on_standing=stands,
        stop=stop,
    )
    points = tuple(sorted(curve.items()))
    result = PreferenceResult(out / MODEL, len(learn), len(watched), points, trained.stopped, trained.step)
    if trained.stopped == "interrupted":
        return replace(result, model=None)
    final = standing(pipe, held_out, seed=plan.seed)
    save_editor(pipe, start.folder, out / MODEL, _card(base, plan, source, result, final), lora=True)
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
) -> TrainingBase | None:
    """The model after supervised steps on the winners; None when interrupted."""
    if not plan.supervised_steps:
        return base
    folder, work = out / SUPERVISED, out / f"{SUPERVISED}.training"
    after = replace(base, folder=folder, digest=f"{base.digest}+{plan.supervised_steps}")
    if folder.is_dir():
        return after
    observer.begin("supervised", plan.supervised_steps)
    pipe = base.load()
    winners = (
        TrainingPair(pair.id, pair.task, pair.cluster, pair.instruction, pair.before, pair.winner)
        for pair in source.read(learn)
    )
    trained = fine_tune(
        pipe,
        encode_pairs(Encoder(pipe, plan.side), winners),
        Schedule(plan.supervised_steps, plan.supervised_rate, plan.batch, seed=plan.seed),
        work,
        base=base.digest,
        lora_rank=plan.lora_rank,
        on_step=lambda step, noted: observer.step(step, noted["loss"]),
        stop=stop,
    )
    if trained.stopped:
        return None
    text = f"{plan.supervised_steps} supervised steps on {len(learn)} successful edits of `{source.name}`."
    save_editor(
        pipe,
        base.folder,
        folder,
        Card(f"{base.name}, supervised", base.name, base.licence, text, plan.side),
        lora=True,
    )
    shutil.rmtree(work, ignore_errors=True)
    return after


def _card(
    base: TrainingBase,
    plan: PreferencePlan,
    source: ReleasePreferences,
    result: PreferenceResult,
    final: Preference,
) -> Card:
    text = (
        f"{plan.supervised_steps} supervised steps, then {result.step} steps of Diffusion-DPO (beta {plan.beta:g}, "
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
        out / MODEL, pairs, held_out, _points(found["curve"]), str(found["stopped"]), int(found["step"])
    )


def _read_curve(work: Path) -> tuple[tuple[int, Preference], ...]:
    try:
        return _points(json.loads(read_inside(work, work / CURVE)))
    except (InputError, ValueError):
        return ()


def _points(curve: Sequence[tuple[int, dict[str, float]]]) -> tuple[tuple[int, Preference], ...]:
    return tuple((int(step), Preference(**where)) for step, where in curve)
