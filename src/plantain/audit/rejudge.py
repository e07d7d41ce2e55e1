"""Judge a run's stored edits again, with other judges or other prompts. Nothing is generated.

Each jury gets a number in the run by its name and fingerprint. Its calls and verdicts use the draws of that number,
from 10,000; those of the run's own judges start at 0. So another prompt, another version of a judge and a repetition
have verdicts of their own, and a recorded answer is reused.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from plantain.audit.jury import MOST_MEMBERS, Jury, ask, jury_of, models_of
from plantain.files.opening import MAX_TEXT_BYTES, read_regular
from plantain.findings import Taxonomy, load_taxonomy
from plantain.journal import BadBlob, Journal, JournalReader, JsonValue, StoredVerdict
from plantain.journal.verdicts import JUDGED_AGAIN
from plantain.models.hosted.prompts import prompts_folder
from plantain.records import (
    Attempt,
    EditTask,
    InputError,
    Observations,
    Rubric,
    SourceImage,
    Step,
    TaskKind,
    derive_seed,
)
from plantain.roles import Judge, JudgeRequest
from plantain.rubrics import POLICIES, decide, recorded, rubric_named
from plantain.runs.open_run import ImageCache, OpenRun
from plantain.runs.progress import SILENT, ProgressObserver, RunSummary
from plantain.runs.setup import RunSetup
from plantain.runs.terms import Terms

JURIES = "audit.juries"
"""Key of the run's meta: the juries that judged its attempts again, in the order of their numbers."""

NO_ORIGINAL = "its original is not in this run"
"""Reason without a verdict of an edit that was imported without its original."""


@dataclass(frozen=True, slots=True)
class RejudgeRequest:
    """The options for judging a run's stored edits again.

    Attributes:
        judges: names (a panel's members separated by commas) or judge objects.
        prompts: sets of prompts, each "ours", "published" or a folder; every judge is asked with each of them.
        sample: number of attempts, chosen at random by the run's seed; None for all.
        decisive: True if the one judge's verdicts decide from now on.
        retry: True to repeat calls without an answer.
        accept_model_change: continue, and record it, if a judge answers in another version than before.
        rubric: name or file of another rubric than the run's; "" for the run's.
        repeat: number of independent verdicts of each judge on each attempt.
        ids: file with the tasks to judge, one id or unique prefix per line; None for all.
    """

    judges: Sequence[str | Judge]
    prompts: Sequence[str] = ()
    sample: int | None = None
    decisive: bool = False
    retry: bool = False
    accept_model_change: bool = False
    rubric: str = ""
    repeat: int = 1
    ids: Path | None = None


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """A stored attempt that has an image, with its task."""

    task: EditTask
    attempt: Attempt

    @property
    def key(self) -> tuple[str, int, int]:
        """Task id, generation and round."""
        return self.attempt.task_id, self.attempt.generation, self.attempt.round


@dataclass(frozen=True, slots=True)
class JuryInRun:
    """One repetition of a jury.

    Attributes:
        number: from 0, different for each repetition, which reserves its draws.
        repeat: which repetition of the jury it is, from 1.
    """

    jury: Jury
    number: int
    repeat: int = 1

    @property
    def name(self) -> str:
        """The jury's name, with the number of the repetition from the second on."""
        return repeated(self.jury.name, self.repeat)

    @property
    def draws(self) -> range:
        """The draw numbers reserved for the jury's calls; its verdicts are stored with the first."""
        first = JUDGED_AGAIN * (self.number + 1)
        return range(first, first + JUDGED_AGAIN)


def repeated(name: str, repeat: int) -> str:
    """Return the name of a jury's repetition: the jury's name, with the number from the second on."""
    return name if repeat == 1 else f"{name}, repeat {repeat}"


@dataclass(frozen=True, slots=True)
class Rejudged:
    """The result of a rejudging.

    Attributes:
        juries: juries in the requested order.
        summary: calls, cost, and the reason for a stop.
        unjudged: number of missing verdicts by (name of the jury, reason).
        vetoed: number of edits on which a decisive judge does not decide, as the text check or the original check
            rejects them.
    """

    juries: tuple[JuryInRun, ...]
    summary: RunSummary
    unjudged: Mapping[tuple[str, str], int]
    vetoed: int = 0


def check_rejudgeable(reader: JournalReader) -> None:
    """Check that a run has stored edits and is not a benchmark's. Raise InputError otherwise."""
    if any(reader.counts(TaskKind.BENCH).values()):
        raise InputError(f"{reader.run}: a benchmark's run; judge its outputs by bench score --judge")
    if next(stored_attempts(reader), None) is None:
        raise InputError(f"{reader.run}: no stored edit to judge")


def chosen_attempts(reader: JournalReader, request: RejudgeRequest) -> Iterator[StoredAttempt]:
    """Yield the attempts that a request chooses. Raise InputError for an invalid line in its file of ids."""
    tasks = None if request.ids is None else _tasks_in(reader, request.ids)
    return stored_attempts(reader, request.sample, reader.header.seed, tasks)


def _tasks_in(reader: JournalReader, path: Path) -> frozenset[str]:
    found: set[str] = set()
    text = read_regular(path, str(path), MAX_TEXT_BYTES).decode("utf-8-sig", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        if prefix := line.strip():
            try:
                found.add(reader.task(prefix).task.id)
            except InputError as error:
                raise InputError(f"--ids {path}: line {number}: {error}") from error
    if next(stored_attempts(reader, tasks=frozenset(found)), None) is None:
        raise InputError(f"--ids {path}: names no task with a stored edit")
    return frozenset(found)


def stored_attempts(
    reader: JournalReader, sample: int | None = None, seed: int = 0, tasks: Collection[str] | None = None
) -> Iterator[StoredAttempt]:
    """Yield the current attempts of edit tasks that have an image, by task and round.

    Args:
        reader: journal of the run.
        sample: maximum number, chosen by a hash so that a larger sample contains a smaller one; None for all.
        seed: seed of the choice.
        tasks: ids of the tasks to which they belong; None for all.
    """
    edited = (one for one in _edited(reader) if tasks is None or one.task.id in tasks)
    if sample is None:
        yield from edited
        return

    def lot(one: StoredAttempt) -> bytes:
        return hashlib.sha256("\x1f".join(map(str, (seed, *one.key))).encode()).digest()

    yield from sorted(heapq.nsmallest(sample, edited, key=lot), key=lambda one: one.key)


def _edited(reader: JournalReader) -> Iterator[StoredAttempt]:
    task: EditTask | None = None
    for attempt in reader.all_attempts():
        if attempt.edited is None:
            continue
        if task is None or task.id != attempt.task_id:
            task = reader.task(attempt.task_id).task
        if task.kind is TaskKind.EDIT:
            yield StoredAttempt(task, attempt)


def recorded_judge(run: Path) -> str:
    """Return the names of the judges that a run recorded, separated by commas. Raise InputError if it has none."""
    with JournalReader.open(run) as reader:
        models = reader.header.frozen.get("models")
    named = models.get("judge") if isinstance(models, dict) else None
    if not isinstance(named, list) or not named:
        raise InputError(f"{run}: names no judge; choose one with --judge")
    return ",".join(map(str, named))


def juries_for(
    terms: Terms, request: RejudgeRequest, rubric: Rubric, missing: list[str] | None = None
) -> tuple[RunSetup, list[Jury]]:
    """Load a jury for each requested judge and set of prompts; return it with the setup for the calls.

    Args:
        terms: limits, providers and consent; the request's sets replace the prompts in them.
        request: the request with judges and sets of prompts.
        rubric: the rubric by which they judge.
        missing: as for `jury_of`.

    Raises:
        InputError: no judge, a judge named twice, two equal sets of prompts, prompts for a judge that reads none, an
            unknown judge or set, or a decisive request that names several judges or another rubric than the run's.
    """
    if not request.judges:
        raise InputError("--judge: name at least one judge")
    if request.decisive and len(request.judges) * max(1, len(request.prompts)) * request.repeat != 1:
        raise InputError("--decisive: name one judge whose verdicts are to decide (a panel counts as one)")
    if request.decisive and request.rubric:
        raise InputError("--decisive: the verdicts of another rubric than the run's cannot decide")
    folders = [prompts_folder(name) for name in request.prompts] or [None]
    if request.prompts:
        bare = {name: one.model_copy(update={"prompts": None}) for name, one in terms.providers.items()}
        terms = replace(terms, providers=bare)
    setup, juries = RunSetup(terms), list[Jury]()
    setup.check()
    for judge in request.judges:
        called = judge if isinstance(judge, str) else judge.name
        members = models_of(judge) if isinstance(judge, str) else ()
        if request.prompts and not any(hasattr(terms.options(name), "prompts") for name in members):
            raise InputError(
                f"--prompts: {called} reads no prompts; name a hosted judge: --judge provider/MODEL"
            )
        own = [jury_of(setup, judge, rubric, one, _label(called, one, request), missing) for one in folders]
        if len({jury.fingerprint for jury in own}) < len(own):
            raise InputError(f"--prompts: two of the sets ask {called} in the same words")
        juries += own
    named = Counter(jury.name for jury in juries)
    if twice := next((name for name, times in named.items() if times > 1), None):
        raise InputError(f"--judge: {twice} is named twice")
    return setup, juries


def _label(judge: str, prompts: Path | None, request: RejudgeRequest) -> str:
    """Return the name of verdicts under named prompts or another rubric; "" for the judge's own name."""
    rubric = Path(request.rubric).stem if request.rubric else ""
    words = [
        f"{what} {named}"
        for what, named in (("prompts", prompts and prompts.name), ("rubric", rubric))
        if named
    ]
    return ", ".join((judge, *words)) if words else ""


async def run_rejudge(
    run: Path,
    request: RejudgeRequest,
    terms: Terms,
    *,
    observer: ProgressObserver = SILENT,
) -> Rejudged:
    """Judge a run's stored edits again, reusing recorded answers; return juries and summary.

    Args:
        run: folder of a build or of an import.
        request: the edits to judge, and the judges.
        terms: limits, providers and consent.
        observer: receives the progress.

    Raises:
        InputError: as `juries_for`; the run is of another kind or in use, or an image may not be sent to a judge.
    """
    with JournalReader.open(run) as reader:
        check_rejudgeable(reader)
        frozen = reader.header.frozen
        total = sum(1 for _ in chosen_attempts(reader, request))
    rubric = rubric_for(frozen, request)
    setup, juries = juries_for(terms, request, rubric)
    async with setup.open(run, observer=observer, accept_model_change=request.accept_model_change) as opened:
        numbered = await _numbered(opened.journal, juries, request.repeat)
        policy = policy_of({} if request.rubric else frozen, rubric)
        judging = _Judging(opened, load_taxonomy(), *policy, request.retry)
        observer.stage_started("attempts judged", total * len(numbered))

        def work() -> Iterator[tuple[StoredAttempt, JuryInRun]]:
            for one in chosen_attempts(opened.journal.reader, request):
                for jury in numbered:
                    yield one, jury

        async def carry(item: tuple[StoredAttempt, JuryInRun]) -> None:
            done = await judging.judge(*item)  # other tasks change the sum during the await
            opened.summary.judged += done
            observer.advanced(1)

        await opened.walk(work(), carry)
        vetoed = 0
        if request.decisive and not opened.stopping:
            vetoed = await opened.journal.make_decisive(numbered[0].jury.name, numbered[0].draws[0])
    return Rejudged(tuple(numbered), opened.summary, judging.unjudged, vetoed)


def rubric_for(frozen: Mapping[str, JsonValue], request: RejudgeRequest) -> Rubric:
    """Return the rubric that a request names, else that of the run, by its `frozen` settings.

    Raises:
        InputError: the request names an unknown rubric.
    """
    return rubric_named(request.rubric) if request.rubric else recorded(frozen)


def policy_of(frozen: Mapping[str, JsonValue], rubric: Rubric) -> tuple[str, float]:
    """Return (policy, threshold) from a run's frozen settings, else the rubric's; those of a release may be invalid."""
    loop = frozen.get("loop")
    settings = loop if isinstance(loop, dict) else {}
    policy, threshold = settings.get("policy"), settings.get("threshold")
    chosen = policy if isinstance(policy, str) and policy in POLICIES else rubric.policy
    return chosen, float(threshold) if isinstance(threshold, (int, float)) else rubric.threshold


async def _numbered(journal: Journal, juries: Sequence[Jury], repeat: int) -> list[JuryInRun]:
    """Give each repetition of each jury its number in the run, the same as in earlier processes."""
    known = stored_juries(journal.reader)
    if not known:  # verdicts that came with an imported release are no answers of this run's judges
        (taken,) = journal.reader.connection.execute("SELECT coalesce(max(draw), 0) FROM verdict").fetchone()
        known = [["judge of the release", str(n), ""] for n in range(taken // JUDGED_AGAIN)]
    before, found = len(known), []
    for jury in juries:
        for again in range(1, repeat + 1):
            entry = [jury.name, jury.fingerprint, jury.rubric.name, *([str(again)] if again > 1 else [])]
            if entry not in known:
                known.append(entry)
            found.append(JuryInRun(jury, known.index(entry), again))
    if len(known) > before:
        await journal.set_meta(JURIES, orjson.dumps(known).decode())
    return found


def stored_juries(reader: JournalReader) -> list[list[str]]:
    """Return the juries of a run in order of their numbers: [name, fingerprint, rubric, repetition if above 1]."""
    return orjson.loads(reader.meta(JURIES) or "[]")  # type: ignore[no-any-return]


@dataclass(slots=True)
class _Judging:
    """Judges stored attempts within their own run; `unjudged` counts missing verdicts by (jury, reason)."""

    opened: OpenRun
    taxonomy: Taxonomy
    policy: str
    threshold: float
    retry: bool
    unjudged: Counter[tuple[str, str]] = field(default_factory=Counter)
    images: ImageCache = field(init=False)

    def __post_init__(self) -> None:
        self.images = ImageCache(self.opened.journal.reader)

    async def judge(self, one: StoredAttempt, asked: JuryInRun) -> bool:
        """Judge one attempt. Return True if there is a verdict, new or recorded.

        Raises:
            RunHalted: another model than before answered under the judge's name, and changes are not accepted.
        """
        reader, jury = self.opened.journal.reader, asked.jury
        task_id, generation, round = one.key
        calls = self.opened.calls(task_id, generation)
        own = (jury.name, asked.draws[0], round)
        if any((v.verdict.judge, v.draw, v.round) == own for v in reader.verdicts(task_id, generation)):
            # A process that a changed model stopped has stored the verdicts that were in flight.
            await calls.check_recorded(Step.JUDGE, round, asked.draws)
            return True
        image = reader.image(one.task.image_id)
        try:
            for blob in (image.prepared_sha256, one.attempt.edited or ""):
                await asyncio.to_thread(self.images.read, blob)
        except BadBlob as error:
            missing = not reader.has_blob(image.prepared_sha256)
            self.unjudged[asked.name, NO_ORIGINAL if missing else str(error)] += 1
            return False

        def verdicts(seen: Observations) -> tuple[StoredVerdict, ...]:
            verdict = decide(seen, jury.rubric, judge=jury.name, policy=self.policy, threshold=self.threshold)
            return (StoredVerdict(task_id, generation, round, verdict, asked.draws[0], decisive=False),)

        request = self._request(one, image, asked)
        seen, outcome = await ask(
            jury, calls, request, round=round, draw=self._draw(one, asked), verdicts=verdicts
        )
        if seen is None:
            why = f"{outcome.kind.value.replace('_', ' ')}: {outcome.reason}".rstrip(": ")
            self.unjudged[asked.name, why] += 1
        return seen is not None

    def _draw(self, one: StoredAttempt, asked: JuryInRun) -> int:
        """Return the draw of the first member's call: of the latest request, or with `retry` a new one."""
        task_id, generation, round = one.key
        own = [
            row
            for row in self.opened.journal.reader.calls(task_id, generation)
            if row.key.round == round and row.final and row.key.draw in asked.draws
        ]
        first = asked.draws[0]
        if not own:
            return first
        latest = max(row.key.draw for row in own)
        base = latest - (latest - first) % MOST_MEMBERS
        ended_badly = any(row.key.draw >= base and row.outcome and not row.outcome.ok for row in own)
        return base + MOST_MEMBERS if self.retry and ended_badly else base

    def _request(self, one: StoredAttempt, image: SourceImage, asked: JuryInRun) -> JudgeRequest:
        assert one.attempt.edited is not None
        named = one.task.modality, one.task.finding
        return JudgeRequest(
            image=image,
            original=self.images.image(image.prepared_sha256),
            edited=self.images.image(one.attempt.edited),
            instruction=one.attempt.instruction,
            finding=next((f for f in self.taxonomy.findings if (f.modality, f.name) == named), None),
            direction=one.task.direction,
            rubric=asked.jury.rubric,
            # All juries share a seed, so that they differ by judge and prompts alone; repetitions differ.
            seed=derive_seed(
                self.opened.journal.header.seed, *one.key, repeated("judged again", asked.repeat)
            ),
            task=one.key[0],
        )
