"""The fine-tuning study of MedEBench, section 5: how much an editor gains from 4, 8 or 16 samples of a task.

One model is trained for each task, size and seed, fresh from the base. A model that is finished is not trained again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from plantain.records.counts import counted
from plantain.train.base import TrainingBase
from plantain.train.editor_folder import Card
from plantain.train.encoded import Encoded
from plantain.train.examples.encoded_cache import ExampleCache
from plantain.train.examples.pairs import PairSource
from plantain.train.finished import DONE, read_finished, write_json
from plantain.train.learners import Learner, learner_for
from plantain.train.loop.training import Schedule
from plantain.train.study_cost import steps_of, study_cost
from plantain.train.study_plan import StudyCell, StudyObserver, StudyPlan, cells_of, splits_of

LATER = {"weighting": "none", "rates": "constant", "warmup": 0, "ema": 0.0, "bf16": False}


def train_study(
    source: PairSource,
    base: TrainingBase,
    plan: StudyPlan,
    models: Path,
    *,
    observer: StudyObserver,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Trains every model of the study that is not finished yet.

    Args:
        source: of pairs.
        base: what is trained.
        plan: what to train.
        models: folder for the models, each a folder that is an editor by itself.
        watch: told how it goes on.
        stop: asked before each step; what is done by then is kept.

    Returns:
        Whether all models are finished.

    Raises:
        InputError: too few samples, or the folder holds models of another study.
    """
    cells = list(cells_of(plan, splits_of(plan, source.listed())))
    every = study_cost(plan, cells, base.folder).checkpoint_every
    cache = ExampleCache(models.parent / "encoded", [source.digest, base.digest, base.method, plan.side])
    for cell in cells:
        folder = models / cell.place
        if is_finished(folder, identity(source, base, plan, cell)):
            continue
        if stop() or not _train(source, base, plan, cell, folder, observer, stop, every, cache):
            return False
    cache.remove()
    return True


def identity(source: PairSource, base: TrainingBase, plan: StudyPlan, cell: StudyCell) -> str:
    """Hash of all that a model depends on."""
    settings = asdict(plan)
    for name in (
        "sizes",
        "seeds",
        "tasks",
        "named",
        "per_task",
        "checkpoint_every",
        "checkpoint_gb",
        "gradient_checkpointing",
    ):
        settings.pop(name)
    for name, usual in LATER.items():  # as studies before these could be chosen
        if settings[name] == usual:
            settings.pop(name)
    identity = [
        source.name,
        source.digest,
        base.digest,
        settings,
        plan.rate,
        cell.task,
        cell.seed,
        cell.training,
    ]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def is_finished(folder: Path, wanted: str) -> bool:
    """Whether a model is there. Raises InputError when the folder holds another one."""
    return read_finished(folder / DONE, wanted) is not None


def _train(
    source: PairSource,
    base: TrainingBase,
    plan: StudyPlan,
    cell: StudyCell,
    folder: Path,
    observer: StudyObserver,
    stop: Callable[[], bool],
    every: int,
    cache: ExampleCache,
) -> bool:
    schedule = Schedule(
        steps_of(plan, cell),
        plan.rate,
        plan.batch,
        seed=plan.seed * 10_007 + cell.seed,
        checkpoint_every=every,
        rates=plan.rates,
        warmup=plan.warmup,
        ema=plan.ema,
    )
    observer.begin(cell, schedule.steps)
    learner = learner_for(base, plan)
    pairs = learner.encode(source, cell.training, cache)
    before = learner.fixed_loss(pairs)
    work = folder.with_name(folder.name + ".training")
    trained = learner.fine_tune(
        pairs,
        schedule,
        work,
        identity(source, base, plan, cell),
        on_step=lambda step, noted: observer.step(cell, step, noted["loss"]),
        stop=stop,
    )
    if trained.stopped:
        return False
    after = learner.fixed_loss(pairs)
    _keep(learner, source, base, plan, cell, folder, pairs, (before, after), trained.log)
    observer.finished(cell, before, after)
    _remove(work)
    return True


def _keep(
    learner: Learner,
    source: PairSource,
    base: TrainingBase,
    plan: StudyPlan,
    cell: StudyCell,
    folder: Path,
    pairs: Encoded,
    losses: tuple[float, float],
    log: Sequence[dict[str, float]],
) -> None:
    way = "the whole UNet" if plan.lora_rank is None else f"LoRA adapters of rank {plan.lora_rank}"
    text = (
        f"Fine-tuned on {counted(cell.size, 'sample')} of the task “{cell.task}” of `{source.name}` "
        f"({source.digest[:12]}…), "
        f"{counted(len(log), 'step')} of {plan.batch}, {way}, learning rate {plan.rate:g}, seed "
        f"{plan.seed}/{cell.seed}, "
        f"images at {plan.side} pixels, no augmentation"
        + (", computed in bfloat16" if plan.bf16 else "")
        + (
            f", learning rate {plan.rates} after {counted(plan.warmup, 'step')} of warm-up"
            if plan.rates != "constant"
            else ""
        )
        + (f", averaged weights (EMA {plan.ema:g})" if plan.ema else "")
        + "."
    )
    title = f"{base.name}, {cell.task}, n = {cell.size}"
    learner.save(folder, Card(title, base.name, base.licence, text, plan.side))
    record = {
        "identity": identity(source, base, plan, cell),
        "task": cell.task,
        "size": cell.size,
        "seed": cell.seed,
        "trained_on": list(pairs.ids),
        "source": {"name": source.name, "digest": source.digest},
        "base": {"name": base.name, "digest": base.digest, "licence": base.licence},
        "plan": {**asdict(plan), "learning_rate": plan.rate},
        "fixed_loss": {"before": losses[0], "after": losses[1]},
        "log": [entry["loss"] for entry in log],
    }
    write_json(folder / DONE, record)


def _remove(work: Path) -> None:
    """The checkpoint of a finished training."""

    shutil.rmtree(work, ignore_errors=True)
