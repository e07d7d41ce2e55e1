"""Asking judges about outputs, through the memoised calls of each output's task."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.outputs import changed_of, previous_of
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.bench.score.judging import (
    SeatedJudge,
    complete,
    draws_to_make,
    put_together,
    without_judging,
)
from plantain.calls import Answer, CallSpec, TaskCalls
from plantain.findings import load_taxonomy
from plantain.journal import CallResult, StoredScore
from plantain.journal.rows import from_json, to_json
from plantain.privacy.lineage import made_from
from plantain.records import CriterionResult, Finding, InputError, Observations, Step, derive_seed
from plantain.roles import EncodedImage, JudgeRequest, Reply
from plantain.runs.open_run import OpenRun

KEPT = 24
"""Samples whose encoded images stay in memory; outputs come sample by sample."""


class Judgement:
    """The judging of a run's outputs."""

    def __init__(
        self,
        benchmark: Benchmark,
        opened: OpenRun,
        judges: Sequence[SeatedJudge],
        *,
        retry: bool = False,
        all_outputs: bool = False,
    ) -> None:
        self.benchmark = benchmark
        self.opened = opened
        self.run = BenchRun(opened.journal.reader)
        self.judges = judges
        self.retry = retry
        self.all_outputs = all_outputs
        self._images: OrderedDict[str, asyncio.Task[tuple[EncodedImage, EncodedImage | None]]] = OrderedDict()

    def outstanding(self) -> Iterator[tuple[Output, SeatedJudge]]:
        """Yield what is not judged yet, sample by sample: outputs that the arm's rule names, or all."""
        for _, outputs in self.run.by_sample():
            for output in outputs:
                if not self.all_outputs and output.k not in self.run.arms[output.arm].scored:
                    continue
                rows = self.run.scores(output)
                for seated in self.judges:
                    if not complete(seated, rows, output.edited, retry=self.retry):
                        yield output, seated

    async def judge(self, output: Output, seated: SeatedJudge) -> list[StoredScore]:
        """Return the scores of one output by one judge, over all its draws."""
        sample = self.benchmark.sample(output.sample_id)
        obstacle = _obstacle(output, seated, sample)
        if obstacle:
            return without_judging(seated, output, obstacle)
        recorded = self.run.reader.calls(output.task_id, output.generation)
        calls = TaskCalls(self.opened.client, output.task_id, output.generation, recorded)
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
        seed = derive_seed(self.run.reader.header.seed, "judge", sample.id, k, draw // 100 % 100)
        identity: dict[str, object] = {
            "fingerprint": seated.fingerprint,
            "seed": seed,
            "sample": self.benchmark.content_of(sample),
            "edited": output.edited,
            "variant": name.variant,
            "truth": name.truth,
        }

        async def send() -> Reply[Observations]:
            previous, truth = await self._sample_images(sample)
            edited = await asyncio.to_thread(self.run.read, output)
            for shown in self._demonstrations(
                output, sample
            ):  # the output may show what its editor was shown
                made_from(edited, (await self._sample_images(shown))[0].data)
            request = JudgeRequest(
                image=sample.image,
                original=previous,
                edited=EncodedImage(edited, "image/png"),
                instruction=sample.detailed if name.variant == "D" else sample.prompt,
                finding=_finding(sample),
                direction=sample.direction,
                rubric=name.rubric,
                seed=seed,
                truth=truth if name.truth else None,
                variant=name.variant,
            )
            return await seated.judge.judge(request)

        async def settle(reply: Reply[Observations], draft: CallResult) -> CallResult:
            return draft if reply.value is None else replace(draft, answer=to_json(reply.value))

        return CallSpec(Step.JUDGE, output.k + 1, draw, name.model, identity, send, settle)

    def _demonstrations(self, output: Output, sample: Sample) -> Iterator[Sample]:
        """Return the samples that the output's editor was shown as worked examples."""
        arm = self.run.arms[output.arm]
        return map(self.benchmark.sample, arm.demonstrations.get(sample.task, ())[: arm.shots or 0])

    async def _sample_images(self, sample: Sample) -> tuple[EncodedImage, EncodedImage | None]:
        """Return the image before and the true one after as PNGs of one size, encoded once for neighbouring outputs."""
        if sample.id not in self._images:
            self._images[sample.id] = asyncio.create_task(self._encoded(sample))
            while len(self._images) > KEPT:
                self._images.popitem(last=False)
        return await asyncio.shield(self._images[sample.id])

    async def _encoded(self, sample: Sample) -> tuple[EncodedImage, EncodedImage | None]:
        previous, _ = await previous_of(self.benchmark, self.opened.journal, sample)
        truth = None if sample.changed is None else await changed_of(self.benchmark, sample, previous)
        return previous, truth


def _finding(sample: Sample) -> Finding | None:
    try:
        return load_taxonomy().get(sample.image.modality, sample.finding) if sample.finding else None
    except InputError:
        return None  # not in the taxonomy: nothing is known of how it shows


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
    if seated.name.truth and sample.changed is None:
        return "the sample has no ground truth"
    if seated.name.variant == "D" and not sample.detailed:
        return "the sample has no description of the change"
    return ""
