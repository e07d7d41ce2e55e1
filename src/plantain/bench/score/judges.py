"""Asking judges about outputs: what each is shown, through the memoised calls of the output's task."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.bench.generate.taken_in import changed_of, previous_of
from plantain.bench.score.judging import (
    SeatedJudge,
    complete,
    draws_to_make,
    failed_report,
    put_together,
    report_from_json,
    without_judging,
)
from plantain.bench.score.pixel_metrics import by_sample, rows_of
from plantain.calls import Answer, CallSpec, ModelClient, TaskCalls
from plantain.findings import Taxonomy
from plantain.journal import CallResult, Journal, StoredScore
from plantain.journal.payload import to_json
from plantain.privacy.lineage import made_from
from plantain.records import Finding, InputError, Observations, Step, derive_seed
from plantain.roles import EncodedImage, JudgeRequest, Reply

KEPT = 24
"""Samples whose encoded pictures are kept at hand; outputs come sample by sample."""


@dataclass(slots=True)
class Judgement:
    """All that is needed to have outputs judged."""

    benchmark: Benchmark
    run: BenchRun
    journal: Journal
    taxonomy: Taxonomy
    client: ModelClient
    judges: Sequence[SeatedJudge]
    retry: bool
    all_outputs: bool
    _pictures: OrderedDict[str, asyncio.Task[tuple[EncodedImage, EncodedImage | None]]] = field(
        default_factory=OrderedDict
    )

    def outstanding(self) -> Iterator[tuple[Output, SeatedJudge]]:
        """Every output that a judge has not scored yet, sample by sample; those of the arm's rule, or all."""
        reader = self.run.reader
        for _, outputs in by_sample(self.run):
            for output in outputs:
                if not self.all_outputs and output.k not in self.run.arms[output.arm].scored:
                    continue
                rows = rows_of(reader, output)
                for seated in self.judges:
                    if not complete(seated, rows, output.edited, retry=self.retry):
                        yield output, seated

    async def judge(self, item: tuple[Output, SeatedJudge]) -> int:
        """Has one output judged by one judge in all its draws; returns how many scores were stored."""
        return await self.journal.add_scores(await self._scores(*item))

    async def _scores(self, output: Output, seated: SeatedJudge) -> list[StoredScore]:
        sample = self.benchmark.sample(output.sample_id)
        obstacle = _obstacle(output, seated, sample)
        if obstacle:
            return without_judging(seated, output, obstacle)
        recorded = self.run.reader.calls(output.task_id, output.generation)
        calls = TaskCalls(self.client, output.task_id, output.generation, recorded)
        numbers = draws_to_make(seated, recorded, output.k + 1, retry=self.retry)
        # All at once: draws that wait for batch jobs wait for the same one.
        asked = [calls.answer(self._call(output, seated, sample, k, draw)) for k, draw in enumerate(numbers)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        draws = [(draw, _report(answer, seated)) for draw, answer in zip(numbers, answers, strict=True)]
        return put_together(seated, output, draws)

    def _call(
        self, output: Output, seated: SeatedJudge, sample: Sample, k: int, draw: int
    ) -> CallSpec[Observations]:
        name = seated.name
        # The same seed for every arm: differences between arms are not those of the draw.
        seed = derive_seed(self.journal.header.seed, "judge", sample.id, k, draw // 100 % 100)
        text = sample.detailed if name.variant == "D" else sample.prompt
        identity: dict[str, object] = {
            "fingerprint": seated.fingerprint,
            "seed": seed,
            "sample": self.benchmark.content_of(sample),
            "edited": output.edited,
            "variant": name.variant,
            "truth": name.truth,
        }

        async def send() -> Reply[Observations]:
            previous, truth = await self._own_pictures(sample)
            edited = await asyncio.to_thread(self.run.read, output)
            for shown in self._demonstrations(output, sample):
                made_from(
                    edited, (await self._own_pictures(shown))[0].data
                )  # it may show what its editor was shown
            return await seated.judge.judge(
                JudgeRequest(
                    image=sample.image,
                    original=previous,
                    edited=EncodedImage(edited, "image/png"),
                    instruction=text,
                    finding=self._finding(sample),
                    direction=sample.direction,
                    rubric=name.rubric,
                    seed=seed,
                    truth=truth if name.truth else None,
                    variant=name.variant,
                )
            )

        async def settle(reply: Reply[Observations], draft: CallResult) -> CallResult:
            return draft if reply.value is None else replace(draft, answer=to_json(reply.value))

        return CallSpec(Step.JUDGE, output.k + 1, draw, name.model, identity, send, settle)

    def _demonstrations(self, output: Output, sample: Sample) -> Iterator[Sample]:
        """The samples that the output's editor was shown as worked examples."""
        arm = self.run.arms[output.arm]
        return map(self.benchmark.sample, arm.demonstrations.get(sample.task, ())[: arm.shots or 0])

    async def _own_pictures(self, sample: Sample) -> tuple[EncodedImage, EncodedImage | None]:
        """The sample's images as lossless PNGs of the previous image's size, made once for neighbours in the queue."""
        if sample.id not in self._pictures:
            self._pictures[sample.id] = asyncio.create_task(self._encoded(sample))
            while len(self._pictures) > KEPT:
                self._pictures.popitem(last=False)
        return await asyncio.shield(self._pictures[sample.id])

    async def _encoded(self, sample: Sample) -> tuple[EncodedImage, EncodedImage | None]:
        previous, _ = await previous_of(self.benchmark, self.journal, sample)
        truth = None if sample.changed is None else await changed_of(self.benchmark, sample, previous)
        return previous, truth

    def _finding(self, sample: Sample) -> Finding | None:
        if not sample.finding:
            return None
        try:
            return self.taxonomy.get(sample.image.modality, sample.finding)
        except InputError:
            return None  # a finding of its maker's own: nothing is known of how it shows


def _report(answer: Answer | BaseException, seated: SeatedJudge) -> Observations:
    """What a draw came to; what stopped it is raised once all draws have ended."""
    if isinstance(answer, BaseException):
        raise answer
    if answer.outcome.ok:
        return report_from_json(answer.text)
    why = f"{answer.outcome.kind.value}: {answer.outcome.reason}".rstrip(": ")
    return failed_report(why, seated.name.rubric)


def _obstacle(output: Output, seated: SeatedJudge, sample: Sample) -> str:
    """Why an output is not judged; "" where it is."""
    if output.edited is None:
        return output.reason
    if seated.name.truth and sample.changed is None:
        return "the sample has no ground truth"
    if seated.name.variant == "D" and not sample.detailed:
        return "the sample has no description of the change"
    return ""
