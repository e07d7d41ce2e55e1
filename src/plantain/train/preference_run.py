"""Preference training from a release to an editor, with the curve of its monitored pairs."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from plantain.files.opening import read_inside
from plantain.train.base import TrainingBase
from plantain.train.denoising import Encoder
from plantain.train.editor_folder import Card, save_editor
from plantain.train.encoded import Encoded
from plantain.train.finished import DONE, read_finished, write_json
from plantain.train.pairs import ListedExample, PreferencePair, TrainingPair
from plantain.train.plans import PreferencePlan, TrainingProgress
from plantain.train.preference import Preference, compare_with_reference, encode_preference, prefer
from plantain.train.split import split_preferences
from plantain.train.supervised import encode_pair, fine_tune
from plantain.train.training import INTERRUPTED, Schedule, Session

SUPERVISED, MODEL, CURVE = "supervised", "model", "curve.json"
"""In the folder of a preference training: the editor after supervised steps, the final one, and the curve."""

STARTED = "started.json"
"""Identity of the training that the folder was started with; unfinished parts of another one are not resumed."""


class PreferenceSource(Protocol):
    """A source of preferences, as `ReleasePreferences`."""

    name: str
    digest: str

    def listed(self) -> list[ListedExample]: ...
    def read(self, ids: Sequence[str]) -> Iterator[PreferencePair]: ...


def train_preferences(
    source: PreferenceSource,
    base: TrainingBase,
    plan: PreferencePlan,
    out: Path,
    *,
    progress: TrainingProgress,
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any] | None:
    """Train, or resume in `out`; a finished training is only read.

    Returns:
        The record of the training, as in `out/training.json`; None if it was interrupted.

    Raises:
        InputError: too few preferences, missing originals, or a folder of another training.
    """
    learn, watch = split_preferences(source.listed(), plan.held_out, plan.seed)
    parts = [source.name, source.digest, base.digest, plan.model_dump(), learn, watch]
    identity = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    if (found := read_finished(out / DONE, identity)) is not None:
        return found
    if read_finished(out / STARTED, identity) is None:
        write_json(out / STARTED, {"identity": identity})
    if not _supervise(source, base, plan, learn, out, Session(out / "supervised.training", progress, stop)):
        return None
    record = _prefer(source, base, plan, (learn, watch), out, Session(out / "dpo.training", progress, stop))
    if record is None:
        return None
    write_json(out / DONE, {"identity": identity, **record})
    for work in (out / "dpo.training", out / "encoded"):
        shutil.rmtree(work, ignore_errors=True)
    return read_finished(out / DONE, identity)


def _supervise(
    source: PreferenceSource,
    base: TrainingBase,
    plan: PreferencePlan,
    learn: Sequence[str],
    out: Path,
    session: Session,
) -> bool:
    """Make the editor after supervised steps on the winners, unless there are none; return False if interrupted."""
    if not plan.supervised_steps or (out / SUPERVISED).is_dir():
        return True
    session.progress.begin("supervised steps", plan.supervised_steps)
    pipe = base.load()
    encoder = Encoder(pipe, plan.side)

    def winner(pair: PreferencePair) -> dict[str, object]:
        learned = TrainingPair(pair.id, pair.task, pair.cluster, pair.instruction, pair.before, pair.winner)
        return encode_pair(encoder, learned)

    key = ["winners", source.digest, base.digest, plan.side]
    pairs = Encoded(out / "encoded", key, learn, source.read, winner)
    schedule = Schedule(plan.supervised_steps, plan.supervised_rate, plan.batch, plan.seed)
    trained = fine_tune(pipe, pairs, schedule, session, base=base.digest, lora_rank=plan.lora_rank)
    if trained.stopped:
        return False
    text = f"{plan.supervised_steps} supervised steps on {len(learn)} successful edits of `{source.name}`."
    card = Card(f"{base.name}, supervised", base.name, base.licence, text, plan.side)
    save_editor(pipe, base.folder, out / SUPERVISED, card, lora=True)
    shutil.rmtree(session.folder, ignore_errors=True)
    return True


def _prefer(
    source: PreferenceSource,
    base: TrainingBase,
    plan: PreferencePlan,
    split: tuple[Sequence[str], Sequence[str]],
    out: Path,
    session: Session,
) -> dict[str, object] | None:
    """Make the final editor and return the training's record; None if interrupted."""
    start = out / SUPERVISED if plan.supervised_steps else base.folder
    pipe = base.load(start)
    encoder = Encoder(pipe, plan.side)
    key = ["preferences", source.digest, base.digest, plan.side]
    learn, watch = (
        Encoded(out / "encoded", key, ids, source.read, lambda pair: encode_preference(encoder, pair))
        for ids in split
    )
    path = session.folder / CURVE
    curve = {0: Preference(0.0, 1.0, 1.0)}  # at the start the model is its own reference
    if path.is_file():
        curve = {
            point.pop("step"): Preference(**point) for point in json.loads(read_inside(path.parent, path))
        }

    def points() -> list[dict[str, float]]:
        return [{"step": step, **asdict(found)} for step, found in sorted(curve.items())]

    def measured(step: int, found: Preference) -> None:
        curve[step] = found
        write_json(path, points())
        session.progress.note(
            f"step {step}: monitored accuracy {found.accuracy:.3f}, winner's error {found.winner_ratio:.4f} of the "
            "reference's"
        )

    session.progress.begin("preference", plan.steps)
    trained = prefer(
        pipe, learn, watch, plan, session, base=f"{base.digest}+{plan.supervised_steps}", measured=measured
    )
    if trained.stopped == INTERRUPTED:
        return None
    final = curve.get(trained.step) or compare_with_reference(pipe, watch, seed=plan.seed)
    text = (
        f"{plan.supervised_steps} supervised steps, then {trained.step} steps of Diffusion-DPO (beta {plan.beta:g}, "
        f"LoRA rank {plan.lora_rank}, learning rate {plan.rate:g}, seed {plan.seed}) on {len(learn)} preferences of "
        f"`{source.name}` ({source.digest[:12]}…). On {len(watch)} monitored preferences: implicit accuracy "
        f"{final.accuracy:.3f}, the winner's error {final.winner_ratio:.3f} of the reference's."
        + (f" Ended early: {trained.stopped}." if trained.stopped else "")
    )
    card = Card(f"{base.name}, preferences", base.name, base.licence, text, plan.side)
    save_editor(pipe, start, out / MODEL, card, lora=True)
    return {
        "base": {"name": base.name, "digest": base.digest, "licence": base.licence},
        "source": {"name": source.name, "digest": source.digest},
        "plan": plan.model_dump(mode="json"),
        "learned_from": list(learn.ids),
        "monitored": list(watch.ids),
        "curve": points(),
        "final": asdict(final),
        "stopped": trained.stopped,
        "step": trained.step,
    }
