"""`plantain rejudge`: a run's stored attempts under other judges, beside the verdicts that are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plantain.audit.jury import Jury, jury_of, models_of
from plantain.audit.rejudging.stored import SeatedJury, StoredAttempt, StoredJudging, seat, stored_attempts
from plantain.findings import Taxonomy, load_taxonomy
from plantain.journal import JournalReader, JsonValue
from plantain.records import InputError, Rubric, TaskKind
from plantain.roles import Judge
from plantain.rubrics import POLICIES, recorded
from plantain.runs.door import Door
from plantain.runs.observer import SILENT, ProgressObserver
from plantain.runs.settings.terms import Terms
from plantain.runs.summary import RunSummary


@dataclass(frozen=True, slots=True)
class RejudgeRequest:
    """What is to be judged again.

    Attributes:
        judges: each a name (a panel's members with commas between), or a judge that somebody made.
        sample: so many attempts, drawn by the run's seed; None for all.
        decisive: the one judge's verdicts decide from now on.
        retry: ask again where a judge gave no answer before.
        prompts: for each judge the folder of its own prompts, or None; empty for ours.
        labels: for each judge what its verdicts are stored under, where that is not its name.
        accept_model_change: go on, and record it, where a judge answers in another edition or version than before.
    """

    judges: Sequence[str | Judge]
    sample: int | None = None
    decisive: bool = False
    retry: bool = False
    prompts: Sequence[Path | None] = ()
    labels: Sequence[str] = ()
    accept_model_change: bool = False


@dataclass(frozen=True, slots=True)
class Rejudged:
    """What came of it.

    Attributes:
        seated: the juries, in the order asked for.
        summary: of this process.
        unjudged: why attempts have no verdict, by (jury, reason) with how often.
    """

    seated: tuple[SeatedJury, ...]
    summary: RunSummary
    unjudged: Mapping[tuple[str, str], int]


def check_rejudgeable(reader: JournalReader) -> None:
    """Refuses a run that has no stored edits. Raises InputError."""
    if reader.counts(TaskKind.BENCH) and any(reader.counts(TaskKind.BENCH).values()):
        raise InputError(
            f"{reader.run}: a benchmark's run; plantain bench score {reader.run} --judge MODEL judges its outputs"
        )
    if next(stored_attempts(reader), None) is None:
        raise InputError(f"{reader.run}: holds no edited image that could be judged")


async def run_rejudge(
    run: Path,
    wish: RejudgeRequest,
    terms: Terms,
    *,
    taxonomy: Taxonomy | None = None,
    observer: ProgressObserver = SILENT,
    on_commit: Callable[[int], None] | None = None,
) -> Rejudged:
    """Has a run's stored attempts judged; nothing is generated, and no answer is asked for twice.

    Args:
        run: folder of a build, or of what was imported.
        wish: what is to be judged, by whom.
        terms: limits, providers and consent.
        taxonomy: where findings come from; default: ours.
        observer: told how it goes on.
        on_commit: told the number of durable events so far.

    Raises:
        InputError: not such a run, no such judge, or an image may not be sent to a hosted one.
    """
    with JournalReader.open(run) as reader:
        check_rejudgeable(reader)
        frozen = reader.header.frozen
        rubric, seed = recorded(frozen), reader.header.seed
        total = sum(1 for _ in stored_attempts(reader, wish.sample, seed))
    door = Door(terms)
    door.check()
    juries = _juries(door, wish, rubric)
    policy, threshold = policy_of(frozen, rubric)
    async with door.open(
        run, observer=observer, on_commit=on_commit, accept_model_change=wish.accept_model_change
    ) as opened:
        seated = await seat(opened.journal, juries)
        judging = StoredJudging(opened, taxonomy or load_taxonomy(), policy, threshold, wish.retry)
        observer.begun("attempts judged", total * len(seated))

        def work() -> Iterator[tuple[StoredAttempt, SeatedJury]]:
            for one in stored_attempts(opened.journal.reader, wish.sample, seed):
                for jury in seated:
                    yield one, jury

        async def carry(item: tuple[StoredAttempt, SeatedJury]) -> None:
            done = await judging.judge(*item)
            opened.summary.judged += done
            observer.advanced(1)

        await opened.walk(work(), carry)
        if wish.decisive and not opened.stopping:
            await opened.journal.make_decisive(seated[0].jury.name, seated[0].draw)
    return Rejudged(tuple(seated), opened.summary, judging.unjudged)


def models_named(judges: Sequence[str]) -> tuple[str, ...]:
    """Every model behind these names, once."""
    return tuple(dict.fromkeys(model for name in judges for model in models_of(name)))


def policy_of(frozen: Mapping[str, JsonValue], rubric: Rubric) -> tuple[str, float]:
    """The policy and threshold of a run; of one that says nothing of them its rubric's."""
    loop = frozen.get("loop")
    settings = loop if isinstance(loop, dict) else {}
    policy, threshold = settings.get("policy"), settings.get("threshold")
    return (
        policy if isinstance(policy, str) and policy in POLICIES else rubric.policy,
        float(threshold) if isinstance(threshold, (int, float)) else rubric.threshold,
    )


def _juries(door: Door, wish: RejudgeRequest, rubric: Rubric) -> list[Jury]:
    if not wish.judges:
        raise InputError("--judge: name at least one judge")
    if wish.decisive and len(wish.judges) != 1:
        raise InputError("--decisive: name one judge whose verdicts are to decide (a panel counts as one)")
    prompts = [*wish.prompts, *[None] * (len(wish.judges) - len(wish.prompts))]
    labels = [*wish.labels, *[""] * (len(wish.judges) - len(wish.labels))]
    juries = [
        jury_of(door, judge, rubric, folder, label)
        for judge, folder, label in zip(wish.judges, prompts, labels, strict=True)
    ]
    names = [jury.name for jury in juries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"--judge: {twice} is named twice")
    return juries
