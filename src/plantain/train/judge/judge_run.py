"""A judge learned from verdicts: split by group, written as conversations, trained, and saved as a judge by itself."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from plantain.files.writing import replace_file
from plantain.models.diffusers.weights import TRAINED
from plantain.models.hosted.writer_and_judge import HostedJudge
from plantain.models.vlm.conversation import LocalConversation
from plantain.models.vlm.local import ADAPTER, LocalModel, find_local, open_local
from plantain.records import InputError, Licence
from plantain.roles.options import ProviderOptions
from plantain.train.finished import DONE, read_finished, write_json
from plantain.train.judge.conversations import HELD_OUT, TRAIN, Conversations, write_conversations
from plantain.train.judge.decisions import HeldOutDecisions, held_out_decisions
from plantain.train.judge.judge_plan import JudgeObserver, JudgePlan
from plantain.train.judge.verdicts import StoredJudgement, VerdictSource, judgements_listed
from plantain.train.split import split_watched
from plantain.train.written import CARD, link_file, written_whole

CONVERSATIONS, MODEL = "conversations", "judge"
"""In the folder of a training: what was learned from, and the judge."""


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """How it ended.

    Attributes:
        model: folder of the judge; None where it was interrupted or only conversations were wanted.
        conversations: folder of these.
        learned, held_out: how many verdicts.
        before, after: mean negative log-likelihood of the held-out answers' tokens, in nats.
        decisions: of the judge on held-out edits, asked as it will be.
    """

    model: Path | None
    conversations: Path
    learned: int
    held_out: int
    before: float | None = None
    after: float | None = None
    decisions: HeldOutDecisions | None = None


def export_verdicts(
    source: VerdictSource, judge: HostedJudge, plan: JudgePlan, out: Path
) -> tuple[list[StoredJudgement], list[StoredJudgement]]:
    """Splits the verdicts, whole groups on one side, and writes them as conversations.

    Returns:
        Those to learn from, and those held out; a release's test split is in neither.

    Raises:
        InputError: too few of them, or too few groups.
    """
    plan.check()
    found = {one.id: one for one in source.judgements()}
    learn, watched = split_watched(
        judgements_listed(list(found.values())), plan.held_out, plan.seed, "verdicts",
        "a verdict counts where both pictures are at hand and every criterion has a result",
    )  # fmt: skip
    learned, held_out = [found[name] for name in learn], [found[name] for name in watched]
    counts = Counter(one.verdict.qualified for one in learned)
    if min(counts[True], counts[False]) < plan.least:
        raise InputError(
            f"{source.name}: {counts[True]} verdicts that passed and {counts[False]} that did not are there to learn "
            f"from, beside {len(held_out)} held out; {plan.least} of each are the least (--least): a judge that saw "
            "only one kind learns to say it always"
        )
    for some, name in ((learned, TRAIN), (held_out, HELD_OUT)):
        write_conversations(source, judge, some, plan.side, out / CONVERSATIONS / name)
    return learned, held_out


def train_judge(
    source: VerdictSource,
    base: LocalModel,
    options: ProviderOptions,
    plan: JudgePlan,
    out: Path,
    *,
    observer: JudgeObserver | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> JudgeResult:
    """Trains, or goes on where `out` stands; a finished training is only read.

    Args:
        source: of verdicts.
        base: the model.
        options: with which it was found, and with which it will judge.
        plan: how.
        out: folder of conversations, checkpoint and judge.
        observer: told how it goes on.
        stop: asked before each step; what is done by then is kept.

    Raises:
        InputError: too little to learn from, weights that cannot be trained, or a folder of another training.
    """
    watch = observer or JudgeObserver()
    watch.begin("conversations", 0)
    if (base.folder / ADAPTER).is_dir():
        raise InputError(f"{base.name}: was trained here already; start from what it was trained from")
    words = HostedJudge(LocalConversation(base), options)
    learned, held_out = export_verdicts(source, words, plan, out)
    folder = out / CONVERSATIONS
    training, watched = (Conversations.open(folder / name) for name in (TRAIN, HELD_OUT))
    settings = [base.digest, training.digest, watched.digest, asdict(plan)]
    wanted = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    done = read_finished(out / DONE, wanted)
    result = JudgeResult(out / MODEL, folder, len(learned), len(held_out))
    if done is not None:
        measured = _measured(result, done["held_out_loss"]["before"], done["held_out_loss"]["after"])
        decisions = done.get("held_out_decisions")
        return replace(measured, decisions=HeldOutDecisions.read(decisions) if decisions else None)
    from plantain.train.judge.tuning import make_adapters, mean_loss, tune
    from plantain.train.loop.training import Schedule

    vlm = open_local(base)
    model, weights = make_adapters(vlm, plan.lora_rank, plan.seed)
    watch.begin("held-out loss before", 0)
    before = mean_loss(vlm, model, watched)  # fresh adapters change nothing
    watch.begin("judge", plan.steps)
    trained = tune(
        vlm,
        model,
        weights,
        training,
        Schedule(plan.steps, plan.rate, plan.batch, seed=plan.seed, checkpoint_every=plan.every),
        out / "judge.training",
        base=base.digest,
        rank=plan.lora_rank,
        on_step=lambda step, noted: watch.step(step, noted["loss"]),
        stop=stop,
    )
    if trained.stopped:
        return JudgeResult(None, folder, len(learned), len(held_out), before)
    watch.begin("held-out loss after", 0)
    result = _measured(result, before, mean_loss(vlm, model, watched))
    with written_whole(out / MODEL, "the judge") as unfinished:
        _write(base, plan, source, learned, result, unfinished)
        model.save_pretrained(unfinished / ADAPTER)
    del model, vlm, weights
    watch.begin("held-out decisions", 0)
    decisions = asyncio.run(_decisions(source, held_out, options, plan, out / MODEL, stop))
    if decisions is None:
        return JudgeResult(None, folder, len(learned), len(held_out), before)
    result = replace(result, decisions=decisions)
    replace_file(out / MODEL / CARD, _card(base, plan, source, learned, result).encode())
    record = {
        "source": {"name": source.name},
        "base": {"name": base.name, "digest": base.digest, "licence": base.licence},
        "plan": asdict(plan),
        "trained_on": sorted({one.task for one in learned}),
        "held_out": sorted({one.task for one in held_out}),
        "held_out_loss": {"before": before, "after": result.after},
        "held_out_decisions": asdict(decisions),
        "log": [entry["loss"] for entry in trained.log],
    }
    write_json(out / DONE, {"identity": wanted, **record})
    shutil.rmtree(out / "judge.training", ignore_errors=True)
    return result


async def _decisions(
    source: VerdictSource,
    held_out: Sequence[StoredJudgement],
    options: ProviderOptions,
    plan: JudgePlan,
    folder: Path,
    stop: Callable[[], bool],
) -> HeldOutDecisions | None:
    """Those of the judge as it lies in its folder, shown pictures as it will be."""
    conversation = LocalConversation(find_local(f"vlm/{folder}", options))
    judge = HostedJudge(conversation, replace(options, shown_side=options.shown_side or plan.side))
    return await held_out_decisions(source, held_out, judge, stop)


def _measured(result: JudgeResult, before: float, after: float) -> JudgeResult:
    return replace(result, before=float(before), after=float(after))


def _write(
    base: LocalModel,
    plan: JudgePlan,
    source: VerdictSource,
    learned: Sequence[StoredJudgement],
    result: JudgeResult,
    folder: Path,
) -> None:
    """Links the base's files and writes the card."""
    for path in sorted(base.folder.rglob("*")):
        place = path.relative_to(base.folder)
        if path.is_file() and str(place) not in (CARD, TRAINED):
            link_file(path, folder / place)
    (folder / CARD).write_text(_card(base, plan, source, learned, result), encoding="utf-8")
    if plan.side is not None:
        (folder / TRAINED).write_text(json.dumps({"side": plan.side}), encoding="utf-8")


def _card(
    base: LocalModel,
    plan: JudgePlan,
    source: VerdictSource,
    learned: Sequence[StoredJudgement],
    result: JudgeResult,
) -> str:
    judges = ", ".join(sorted({one.verdict.judge for one in learned}))
    licences = Counter(one.image.licence for one in learned)
    head = f"---\nlicense: {base.licence}\n---\n\n" if base.licence != "unknown" else ""
    text = (
        f"{head}# Judge trained on {source.name}\n\nLoRA adapters of rank {plan.lora_rank} on `{base.name}`, "
        f"{plan.steps} steps of {plan.batch}, learning rate {plan.rate:g}, seed {plan.seed}, on {result.learned} "
        f"verdicts of {judges}. On {result.held_out} held-out verdicts of other groups the answer's tokens have a mean "
        f"negative log-likelihood of {result.after:.4f} nats, {result.before:.4f} before."
        + (f" Asked about held-out edits: {result.decisions}." if result.decisions else "")
        + "\n\nLearned from pictures "
        f"under: {', '.join(f'{licence.value} ({n})' for licence, n in sorted(licences.items()))}.\n\n"
        "A judge that learned from another's verdicts repeats its mistakes. Before it decides anything, `plantain "
        "audit --judge vlm/FOLDER --beside vlm/BASE` makes its card beside its base's.\n"
    )
    if Licence.CREDENTIALED in licences:
        text += (
            "\nSome of these pictures are under a data-use agreement: weights can give away what they learned from, so "
            "these may go only where the pictures may.\n"
        )
    return text
