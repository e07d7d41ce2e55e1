"""Scores of a benchmark's outputs by judges: the judges, their draws, their calls, and the scores of the answers.

Each draw is one memoised call of the output's task (step judge, round of the output). A run numbers its judges in the
order in which they first judge, so that draws of different judges never meet: draw = judge * 10,000 + again * 100 + k,
where `again` counts how often failed draws were repeated.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.runfile import BenchRun, Output, changed_of, finding_of, previous_of
from plantain.calls import Answer, CallSpec, TaskCalls
from plantain.journal import CallResult, CallRow, Journal, JsonValue, StoredScore
from plantain.journal.rows import from_json, to_json
from plantain.privacy.permission import made_from
from plantain.records import (
    CriterionResult,
    InputError,
    Observations,
    Rubric,
    RubricCriterion,
    Score,
    Step,
    derive_seed,
    unscored,
)
from plantain.roles import EncodedImage, Judge, JudgeRequest, Reply, fingerprint_of
from plantain.rubrics import MEDEBENCH
from plantain.runs.open_run import OpenRun

VARIANTS = ("P", "D")
"""The text that a judge receives: the prompt, or the description of the change."""
JUDGES = "bench.judges"
"""Key of the run's meta: the judges in the order of their numbers."""
MOST_DRAWS, MOST_AGAIN = 100, 100
VERSION = "1"
"""Version of the scoring of draws."""


@dataclass(frozen=True, slots=True)
class JudgeName:
    """A judge's model with its settings; its scores are stored under a name made from them.

    Attributes:
        model: "provider/model".
        variant: "P" (judged by the prompt) or "D" (by the description of the change).
        draws: how often each output is judged; None: once if the judge is deterministic, else three times.
        prompts: folder with another wording of the question, whose scores have another name; None for the default.
        rubric: the criteria; unless it is MedEBench's, its name is part of the scores' names.
    """

    model: str
    variant: str = "D"
    draws: int | None = None
    prompts: Path | None = None
    rubric: Rubric = MEDEBENCH

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise InputError(
                f"--variant: {self.variant!r}; choose P (prompt) or D (description of the change)"
            )
        if self.draws is not None and not 1 <= self.draws <= MOST_DRAWS:
            raise InputError(f"--draws: {self.draws}; from 1 to {MOST_DRAWS}")
        if self.prompts is not None and self.model.startswith("offline/"):
            raise InputError(f"--prompts: {self.model} reads no prompts")
        if self.prompts is not None and not asks_for_scores(self.prompts, self.rubric):
            files = " or ".join(wording_files(self.rubric))
            raise InputError(f"--prompts: {self.prompts}: contains no {files}")

    @property
    def label(self) -> str:
        """The judge's label, the end of its scores' names: "gemini/m/P", "offline/instruments/D"."""
        return f"{self.model}/{self.variant}"

    @property
    def variety(self) -> str:
        """The middle of its scores' names: the rubric, unless it is MedEBench's, and the folder of prompts."""
        parts = [] if self.rubric == MEDEBENCH else [self.rubric.name]
        if self.prompts is not None:
            folder = re.sub(r"[^a-z0-9]+", "-", self.prompts.resolve().name.lower()).strip("-")
            parts.append(folder or "prompts")
        return "-".join(parts)

    @property
    def times(self) -> int:
        return self.draws or (1 if self.model.startswith("offline/") else 3)


@dataclass(frozen=True, slots=True)
class SeatedJudge:
    """A judge with its number in a run.

    Attributes:
        name: its model, settings and rubric.
        judge: the judge.
        number: its number, from 0; a new version (fingerprint) of the judge gets a new number.
    """

    name: JudgeName
    judge: Judge
    number: int

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.judge, self.name.rubric)

    @property
    def version(self) -> str:
        """The version of its stored scores."""
        return f"{VERSION} {self.fingerprint}"

    def metric(self, criterion: RubricCriterion) -> str:
        """Return the name of a criterion's score in the journal, e.g. "ea@gemini/m/P", "ea:authors@gemini/m/P"."""
        short, variety = (criterion.short or criterion.name).lower(), self.name.variety
        return f"{short}{':' * bool(variety)}{variety}@{self.name.label}"

    def draws_to_make(self, recorded: Iterable[CallRow], round: int, *, retry: bool) -> list[int]:
        """Return the draw number of each call for an output; `retry` renumbers calls that failed.

        Args:
            recorded: the calls of the output's task and generation.
            round: the output's round, k + 1.
            retry: repeat failed draws.
        """
        own = {
            row.key.draw: row.outcome
            for row in recorded
            if row.key.step is Step.JUDGE and row.key.round == round and row.final and row.outcome is not None
        }
        draws = []
        for k in range(self.name.times):
            numbers = [(self.number * MOST_AGAIN + again) * MOST_DRAWS + k for again in range(MOST_AGAIN)]
            again = max((i for i, number in enumerate(numbers) if number in own), default=0)
            last = own.get(numbers[again])
            failed = retry and last is not None and not last.ok
            draws.append(numbers[min(again + failed, MOST_AGAIN - 1)])
        return draws

    def complete(self, rows: Mapping[str, StoredScore], blob: str | None, *, retry: bool) -> bool:
        """Return True if it has scored an image in all draws; with `retry`, False if a draw failed.

        Args:
            rows: the output's stored scores by metric.
            blob: hash of the image.
            retry: True if failed draws must be repeated.
        """
        for criterion in self.name.rubric.criteria:
            row = rows.get(self.metric(criterion))
            if row is None or (row.detail.get("version"), row.detail.get("blob")) != (self.version, blob):
                return False
            draws, scored = row.detail.get("asked"), row.detail.get("scored")
            if isinstance(draws, int) and (draws < self.name.times or (retry and draws != scored)):
                return False
        return True

    def unscored(self, output: Output, reason: str) -> list[StoredScore]:
        """Return rows, one per criterion, for an output that is not sent to the judge for this reason."""
        detail: dict[str, JsonValue] = {"version": self.version, "blob": output.edited}
        return [
            output.score(self.metric(criterion), unscored(reason), detail)
            for criterion in self.name.rubric.criteria
        ]

    def scores(self, output: Output, draws: Sequence[tuple[int, Observations]]) -> list[StoredScore]:
        """Average its draws into an output's scores in [0, 1], one per criterion; unscored if every draw is.

        The detail lists each draw with the number of its call in the journal.

        Args:
            output: the judged output.
            draws: (number of the call, answer) of each draw.
        """
        rows = []
        for criterion in self.name.rubric.criteria:
            results = [(draw, report.criteria[criterion.name]) for draw, report in draws]
            values = [value for _, result in results if (value := _value(result)) is not None]
            reasons = dict.fromkeys(result.evidence for _, result in results if _value(result) is None)
            least, most = criterion.scale or (0, 1)
            score = unscored("; ".join(reasons))
            if values:
                score = Score((sum(values) / len(values) - least) / (most - least))
            listed: list[JsonValue] = [
                {"draw": draw, "reason": result.evidence}
                if _value(result) is None
                else {"draw": draw, "score": _value(result)}
                for draw, result in results
            ]
            detail: dict[str, JsonValue] = {
                "version": self.version,
                "blob": output.edited,
                "asked": len(draws),
                "scored": len(values),
                "draws": listed,
                "reason": draws[0][1].reason[:600],
            }
            rows.append(output.score(self.metric(criterion), score, detail))
        return rows


def _value(result: CriterionResult) -> float | None:
    """Return the number of a criterion; of one without a scale 1 if it passed, else 0; None if unscored."""
    if result.value is not None or result.passed is None:
        return result.value
    return float(result.passed)


async def seat(journal: Journal, judges: Sequence[tuple[JudgeName, Judge]]) -> list[SeatedJudge]:
    """Give each judge its number in the run, the recorded one if it has judged before; store new numbers."""
    known: list[dict[str, str]] = orjson.loads(journal.reader.meta(JUDGES) or "[]")
    seated, before = [], len(known)
    for name, judge in judges:
        entry = {"label": name.label, "fingerprint": fingerprint_of(judge, name.rubric)}
        if entry not in known:
            known.append(entry)
        seated.append(SeatedJudge(name, judge, known.index(entry)))
    if len(known) > before:
        await journal.set_meta(JUDGES, orjson.dumps(known).decode())
    return seated


def wording_files(rubric: Rubric) -> tuple[str, ...]:
    """Return the names of the template files that a folder of prompts needs for this rubric."""
    return tuple(f"{name}.md.j2" for name in (*rubric.asked.templates, rubric.asked.system))


def asks_for_scores(folder: Path, rubric: Rubric = MEDEBENCH) -> bool:
    """Return True if a folder of prompts contains a template for a benchmark's judge."""
    return any((folder / file).is_file() for file in wording_files(rubric))


KEPT = 24
"""Samples whose encoded images stay in memory; outputs come sample by sample."""


class Judgement:
    """A judgement of a run's outputs; finished calls are read from the journal instead of repeated."""

    def __init__(
        self, benchmark: Benchmark, opened: OpenRun, judges: Sequence[SeatedJudge], *, retry: bool = False
    ) -> None:
        self.benchmark = benchmark
        self.opened = opened
        self.run = BenchRun(opened.journal.reader)
        self.judges = judges
        self.retry = retry
        self._images: OrderedDict[str, asyncio.Task[tuple[EncodedImage, EncodedImage | None]]] = OrderedDict()

    def outstanding(self) -> Iterator[tuple[Output, SeatedJudge]]:
        """Yield each first output (k = 0) with each judge that has not scored it, sample by sample."""
        for _, outputs in self.run.by_sample():
            for output in outputs:
                if output.k > 0:
                    continue
                rows = self.run.scores(output)
                for seated in self.judges:
                    if not seated.complete(rows, output.edited, retry=self.retry):
                        yield output, seated

    async def judge(self, output: Output, seated: SeatedJudge) -> list[StoredScore]:
        """Return the scores of one output by one judge, over all its draws."""
        sample = self.benchmark.sample(output.sample_id)
        obstacle = _obstacle(output, seated, sample)
        if obstacle:
            return seated.unscored(output, obstacle)
        recorded = self.run.reader.calls(output.task_id, output.generation)
        calls = TaskCalls(self.opened.client, output.task_id, output.generation, recorded)
        numbers = seated.draws_to_make(recorded, output.k + 1, retry=self.retry)
        # All at once: draws that wait for batch jobs wait for the same one.
        asked = [calls.answer(self._call(output, seated, sample, k, draw)) for k, draw in enumerate(numbers)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        draws = [(draw, _report(answer, seated)) for draw, answer in zip(numbers, answers, strict=True)]
        return seated.scores(output, draws)

    def _call(
        self, output: Output, seated: SeatedJudge, sample: Sample, k: int, draw: int
    ) -> CallSpec[Observations]:
        name = seated.name
        # The same seed for every arm: differences between arms are not those of the draw.
        seed = derive_seed(self.run.reader.header.seed, "judge", sample.id, k, draw // 100 % 100)
        identity: dict[str, object] = {
            "fingerprint": seated.fingerprint,
            "seed": seed,
            "sample": self.benchmark.content_of(sample),
            "edited": output.edited,
            "variant": name.variant,
        }

        async def send() -> Reply[Observations]:
            previous, truth = await self._sample_images(sample)
            edited = await asyncio.to_thread(self.run.read, output)
            arm = self.run.arms[output.arm]
            for shown in arm.demonstrations.get(sample.task, ())[
                : arm.shots or 0
            ]:  # the output may show them, too
                made_from(edited, (await self._sample_images(self.benchmark.sample(shown)))[0].data)
            request = JudgeRequest(
                image=sample.image,
                original=previous,
                edited=EncodedImage(edited, "image/png"),
                instruction=sample.detailed if name.variant == "D" else sample.prompt,
                finding=finding_of(sample),
                direction=sample.direction,
                rubric=name.rubric,
                seed=seed,
                truth=truth,
                variant=name.variant,
            )
            return await seated.judge.judge(request)

        async def settle(reply: Reply[Observations], draft: CallResult) -> CallResult:
            return draft if reply.value is None else replace(draft, answer=to_json(reply.value))

        return CallSpec(Step.JUDGE, output.k + 1, draw, name.model, identity, send, settle)

    async def _sample_images(self, sample: Sample) -> tuple[EncodedImage, EncodedImage | None]:
        """Return the image before and the true one after as PNGs of one size, encoded once for neighbouring outputs."""

        async def encoded() -> tuple[EncodedImage, EncodedImage | None]:
            previous, _ = await previous_of(self.benchmark, self.opened.journal, sample)
            truth = None if sample.changed is None else await changed_of(self.benchmark, sample, previous)
            return previous, truth

        if sample.id not in self._images:
            self._images[sample.id] = asyncio.create_task(encoded())
            while len(self._images) > KEPT:
                self._images.popitem(last=False)
        return await asyncio.shield(self._images[sample.id])


def _report(answer: Answer | BaseException, seated: SeatedJudge) -> Observations:
    """Return the result of a draw; what stopped it is raised."""
    if isinstance(answer, BaseException):
        raise answer
    if answer.outcome.ok:
        return from_json(Observations, answer.text)
    why = f"{answer.outcome.kind.value}: {answer.outcome.reason}".rstrip(": ")
    missing = {c.name: CriterionResult(None, evidence=why) for c in seated.name.rubric.criteria}
    return Observations(missing, reason=why)


def _obstacle(output: Output, seated: SeatedJudge, sample: Sample) -> str:
    """Return why an output is not judged; "" if it is."""
    if output.edited is None:
        return output.reason
    if sample.changed is None:
        return "the sample has no ground truth"
    if seated.name.variant == "D" and not sample.detailed:
        return "the sample has no description of the change"
    return ""
