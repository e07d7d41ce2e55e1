"""Preference training from a release to an editor, with the curve of its monitored pairs."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from plantain.files.opening import read_inside
from plantain.train.base import TrainingBase
from plantain.train.denoising import Encoder
from plantain.train.editor_folder import Card, save_editor
from plantain.train.encoded import Encoded
from plantain.train.finished import DONE, read_finished, write_json
from plantain.train.pairs import ListedExample, PreferencePair, TrainingPair
from plantain.train.plans import PreferencePlan, TrainingProgress
from plantain.train.preference import (
    Preference,
    compare_with_reference,
    encode_preference,
    prefer,
)
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


@dataclass(frozen=True, slots=True)
class PreferenceResult:
    """How a preference training ended.

    Attributes:
        model: folder of the editor; None if interrupted.
        pairs, monitored: how many preferences were trained on, and measured.
        curve: (step, measurement of the monitored pairs).
        stopped: why it ended before its last step; "" if it did not.
        step: steps of preference training that the model has seen.
    """

    model: Path | None
    pairs: int
    monitored: int
    curve: tuple[tuple[int, Preference], ...]
    stopped: str
    step: int


def train_preferences(
    source: PreferenceSource,
    base: TrainingBase,
    plan: PreferencePlan,
    out: Path,
    *,
    progress: TrainingProgress,
    stop: Callable[[], bool] = lambda: False,
) -> PreferenceResult:
    """Train, or resume in `out`; a finished training is only read.

    Raises:
        InputError: too few preferences, missing originals, or a folder of another training.
    """
    learn, watch = split_preferences(source.listed(), plan.held_out, plan.seed)
    parts = [source.name, source.digest, base.digest, plan.model_dump(), learn, watch]
    identity = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    if (found := read_finished(out / DONE, identity)) is not None:
        curve = _points(found["curve"])
        return PreferenceResult(
            out / MODEL, len(learn), len(watch), curve, str(found["stopped"]), int(found["step"])
        )
    if read_finished(out / STARTED, identity) is None:
        write_json(out / STARTED, {"identity": identity})
    if not _supervise(source, base, plan, learn, out, Session(out / "supervised.training", progress, stop)):
        return PreferenceResult(None, len(learn), len(watch), (), INTERRUPTED, 0)
    return _prefer(
        source, base, plan, (learn, watch), out, identity, Session(out / "dpo.training", progress, stop)
    )


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
    identity: str,
    session: Session,
) -> PreferenceResult:
    start = out / SUPERVISED if plan.supervised_steps else base.folder
    pipe = base.load(start)
    encoder = Encoder(pipe, plan.side)
    key = ["preferences", source.digest, base.digest, plan.side]
    learn, watch = (
        Encoded(out / "encoded", key, ids, source.read, lambda pair: encode_preference(encoder, pair))
        for ids in split
    )
    curve = dict(_read_curve(session.folder)) or {0: Preference(0.0, 1.0, 1.0)}  # it is its own reference

    def measured(step: int, found: Preference) -> None:
        curve[step] = found
        write_json(session.folder / CURVE, [[at, asdict(one)] for at, one in sorted(curve.items())])
        session.progress.note(
            f"step {step}: monitored accuracy {found.accuracy:.3f}, winner's error {found.winner_ratio:.4f} of the "
            "reference's"
        )

    session.progress.begin("preference", plan.steps)
    trained = prefer(
        pipe, learn, watch, plan, session, base=f"{base.digest}+{plan.supervised_steps}", measured=measured
    )
    points = tuple(sorted(curve.items()))
    if trained.stopped == INTERRUPTED:
        return PreferenceResult(None, len(learn), len(watch), points, INTERRUPTED, trained.step)
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
    record = {
        "identity": identity,
        "base": {"name": base.name, "digest": base.digest, "licence": base.licence},
        "source": {"name": source.name, "digest": source.digest},
        "plan": plan.model_dump(mode="json"),
        "learned_from": list(learn.ids),
        "monitored": list(watch.ids),
        "curve": [[step, asdict(one)] for step, one in points],
        "final": asdict(final),
        "stopped": trained.stopped,
        "step": trained.step,
    }
    write_json(out / DONE, record)
    for work in (session.folder, out / "encoded"):
        shutil.rmtree(work, ignore_errors=True)
    return PreferenceResult(out / MODEL, len(learn), len(watch), points, trained.stopped, trained.step)


def _read_curve(work: Path) -> tuple[tuple[int, Preference], ...]:
    return _points(json.loads(read_inside(work, work / CURVE))) if (work / CURVE).is_file() else ()


def _points(curve: Sequence[tuple[int, dict[str, float]]]) -> tuple[tuple[int, Preference], ...]:
    return tuple((int(step), Preference(**where)) for step, where in curve)
