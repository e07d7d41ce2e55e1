"""The loop of Med-Banana-50K, 2.3: write, edit, judge; refine with the complete history, up to five rounds.

Each step of a round is a memoised call whose results are durable before they are used.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import orjson

from plantain.calls import CallSpec, TaskCalls
from plantain.journal import CallResult, Journal, StoredVerdict
from plantain.journal.rows import clean_text, dumps, from_json, to_json
from plantain.pipeline.post_edit import EditCheck, object_to, restored, veto
from plantain.pipeline.recipe import NONE, Method, restore_identity
from plantain.pixels.decode import BadImage, pixel_sha256
from plantain.pixels.encode import normalise
from plantain.records import (
    OK,
    Attempt,
    EditTask,
    Finding,
    Observations,
    Outcome,
    OutcomeKind,
    SourceImage,
    Step,
    TaskState,
    Verdict,
    derive_seed,
    state_after,
)
from plantain.roles import (
    EditedImage,
    EditRequest,
    EncodedImage,
    JudgeRequest,
    NormalForm,
    Reply,
    WriteRequest,
    fingerprint_of,
)
from plantain.rubrics import decide, identity_of, majority
from plantain.runs.open_run import ImageCache

_GAVE_UP = frozenset({OutcomeKind.RATE_LIMITED, OutcomeKind.TRANSPORT})
"""The editor never answered in any try: the instruction is not at fault, and the round is not used up."""


class Closing(NamedTuple):
    """How a task ended: its state, the round that decided it, and why in one line."""

    state: TaskState
    round: int
    reason: str = ""


async def edit_until_qualified(rounds: Rounds) -> Closing:
    """Run one task to its end and return how it ended; a second run replays recorded calls, then continues.

    Every round edits the original, never the last attempt. Failed attempts remain negative examples. An edit that the
    judge cannot decide on ends the task: refining the instruction would not change that.
    """
    history: list[Attempt] = []
    most = rounds.method.max_rounds
    for number in range(1, most + 1):
        attempt = await rounds.write(history)
        if isinstance(attempt, Outcome):
            return _stopped(attempt, number, "writer")

        attempt = await rounds.edit(attempt)
        if attempt.edited is None:
            assert attempt.edit_outcome is not None
            if attempt.edit_outcome.kind in _GAVE_UP:
                return _stopped(attempt.edit_outcome, number, "editor")
            history.append(attempt)
            if _cannot_be_shown(history, most):
                return Closing(TaskState.NOT_APPLICABLE, number, attempt.edit_outcome.reason)
            continue

        attempt = await rounds.judge(attempt)
        if attempt.verdict is None:
            assert attempt.judge_outcome is not None
            return _stopped(attempt.judge_outcome, number, "judge")
        state = state_after(attempt.verdict)
        if state is not TaskState.FAILED:
            return Closing(state, number, attempt.verdict.why_not)
        history.append(attempt)

    last = history[-1]
    if last.verdict is None:
        assert last.edit_outcome is not None
        return _stopped(last.edit_outcome, most, "editor")
    return Closing(TaskState.FAILED, most, last.verdict.why_not)


def _cannot_be_shown(history: list[Attempt], most: int) -> bool:
    """Two instructions, all so far, were not applicable: one alone may name a bad place."""
    outcomes = {attempt.edit_outcome and attempt.edit_outcome.kind for attempt in history}
    return outcomes == {OutcomeKind.NOT_APPLICABLE} and len(history) >= min(2, most)


def _stopped(outcome: Outcome, number: int, role: str) -> Closing:
    reason = f"{role}: {outcome.kind}" + (f", {outcome.reason}" if outcome.reason else "")
    return Closing(TaskState.STOPPED, number, reason)


Panel = list[tuple[str, Observations]]


@dataclass(slots=True)
class Rounds:
    """The steps of one task (write, edit, judge), which the loop calls in order."""

    method: Method
    calls: TaskCalls
    journal: Journal
    task: EditTask
    generation: int
    finding: Finding
    image: SourceImage
    images: ImageCache
    checks: Sequence[EditCheck] = ()

    @property
    def original(self) -> EncodedImage:
        return self.images.image(self.image.prepared_sha256)

    def instructed(self, instruction: str, number: int = 1) -> Attempt:
        """Make the attempt of round `number`, from 1, with its instruction, not yet edited or judged."""
        return Attempt(self.task.id, self.generation, number, instruction)

    async def write(self, history: Sequence[Attempt]) -> Attempt | Outcome:
        """Let the writer start the next round; return its attempt with the instruction, or the failed outcome."""
        number = len(history) + 1
        writer = self.method.writer
        seed = self._seed(number, Step.WRITE)
        identity: dict[str, object] = {
            "fingerprint": writer.fingerprint,
            "seed": seed,
            "image": self.image.prepared_sha256,
            "finding": self.task.finding,
            "direction": self.task.direction.value,
            "history": [_history_row(attempt) for attempt in history],
        }

        async def send() -> Reply[str]:
            return await writer.write(
                WriteRequest(
                    task=self.task,
                    finding=self.finding,
                    image=self.image,
                    original=self.original,
                    history=tuple(history),
                    seed=seed,
                )
            )

        async def settle(reply: Reply[str], draft: CallResult) -> CallResult:
            if reply.value is None:
                return draft
            instruction = clean_text(reply.value).strip()
            if not instruction:
                return replace(draft, outcome=Outcome(OutcomeKind.MALFORMED, "the instruction is empty"))
            return replace(draft, answer=instruction, attempt=self.instructed(instruction, number))

        answer = await self.calls.answer(CallSpec(Step.WRITE, number, 0, writer.name, identity, send, settle))
        return self.instructed(answer.text, number) if answer.outcome.ok else answer.outcome

    async def edit(self, attempt: Attempt) -> Attempt:
        """Let the editor make the edit; return the attempt with its image, or with the reason in `edit_outcome`."""
        editor = self.method.editor
        seed = self._seed(attempt.round, Step.EDIT)
        identity: dict[str, object] = {
            "fingerprint": editor.fingerprint,
            "seed": seed,
            "image": self.image.prepared_sha256,
            "instruction": attempt.instruction,
            **restore_identity(self.method.restore),
        }
        request = EditRequest(
            self.image,
            self.original,
            attempt.instruction,
            seed,
            concept=self.finding.name,
            direction=self.task.direction,
            round=attempt.round,
            task_seed=derive_seed(self.method.seed, self.task.id, self.generation),
        )

        async def send() -> Reply[EditedImage]:
            return await editor.edit(request)

        async def settle(reply: Reply[EditedImage], draft: CallResult) -> CallResult:
            if reply.value is None:
                return replace(draft, attempt=replace(attempt, edit_outcome=reply.outcome))
            return await asyncio.to_thread(self._keep_edit, attempt, reply.value, draft)

        answer = await self.calls.answer(
            CallSpec(Step.EDIT, attempt.round, 0, editor.name, identity, send, settle)
        )
        if not answer.outcome.ok:
            return replace(attempt, edit_outcome=answer.outcome)
        return replace(attempt, edit_outcome=OK, **orjson.loads(answer.text))

    def _keep_edit(self, attempt: Attempt, edited: EditedImage, draft: CallResult) -> CallResult:
        """Store the editor's answer unchanged, and the normalised or restored image to judge. Runs in a thread."""
        raw = self.journal.put_blob(edited.image.data, edited.image.media_type)
        try:
            known = edited.normal or NormalForm(normalise(edited.image.data, pixels=edited.pixels), "")
        except BadImage as error:
            outcome = Outcome(OutcomeKind.MALFORMED, str(error))
            kept = replace(attempt, edit_outcome=outcome, raw=raw.sha256)
            return replace(draft, outcome=outcome, attempt=kept, blobs=(raw,))
        restoration = None
        if self.method.restore != NONE:
            restoration = restored(attempt, edited, self.original.data, self.finding)
        if restoration is not None and restoration.edited is not None:
            known = NormalForm(restoration.edited, "")
        normal = known.data
        image = raw if normal == edited.image.data else self.journal.put_blob(normal, "image/jpeg")
        image = replace(image, pixel_sha256=known.pixel_sha256 or pixel_sha256(normal))
        mask = None
        if restoration is not None and restoration.mask is not None:
            mask = self.journal.put_blob(restoration.mask, "image/png")
        elif edited.mask is not None:
            mask = self.journal.put_blob(edited.mask.data, edited.mask.media_type)
        scores = () if restoration is None else (restoration.score,)
        made = replace(draft, raw=draft.raw or edited.note, scores=scores)
        kept = replace(attempt, edit_outcome=OK, support=edited.support)
        return made.with_edit(kept, raw, image, mask)

    async def judge(self, attempt: Attempt) -> Attempt:
        """Let the judge or panel judge the edit; return the attempt with its verdict or a reason in `judge_outcome`."""
        assert attempt.edited is not None
        await asyncio.to_thread(self.images.read, attempt.edited)  # it must be there and intact
        edited = self.images.image(attempt.edited)
        objections = dict[str, str]()
        for check in self.checks:
            if objection := await check.objection(attempt, self.image, edited.data):
                objections[check.name] = objection
        panel: Panel = []
        for draw in range(len(self.method.judges)):
            answer = await self.calls.answer(self._judge_call(attempt, edited, draw, panel, objections))
            if not answer.outcome.ok:
                return replace(attempt, judge_outcome=answer.outcome)
            panel.append((self.method.judges[draw].name, from_json(Observations, answer.text)))
        return replace(attempt, judge_outcome=OK, verdict=self._decide(panel, objections))

    def _judge_call(
        self, attempt: Attempt, edited: EncodedImage, draw: int, before: Panel, objections: Mapping[str, str]
    ) -> CallSpec[Observations]:
        judge = self.method.judges[draw]
        request = JudgeRequest(
            image=self.image,
            original=self.original,
            edited=edited,
            instruction=attempt.instruction,
            finding=self.finding,
            direction=self.task.direction,
            rubric=self.method.rubric,
            seed=self._seed(attempt.round, Step.JUDGE, draw),
        )
        identity: dict[str, object] = {
            "fingerprint": fingerprint_of(judge, self.method.rubric),
            "seed": request.seed,
            "image": self.image.prepared_sha256,
            "edited": attempt.edited,
            "instruction": attempt.instruction,
            "finding": self.task.finding,
            "direction": self.task.direction.value,
            "rubric": identity_of(self.method.rubric),
        }

        async def send() -> Reply[Observations]:
            return await judge.judge(request)

        async def settle(reply: Reply[Observations], draft: CallResult) -> CallResult:
            if reply.value is None:
                return replace(draft, attempt=replace(attempt, judge_outcome=reply.outcome))
            last = draw == len(self.method.judges) - 1
            report = [*before, (judge.name, reply.value)]
            alone = len(self.method.judges) == 1 and not objections
            decisions = [(self._decide([report[-1]]), draw, alone)]
            if last and not alone:
                decisions.append((self._decide(report, objections), 0, True))
            return replace(
                draft,
                answer=to_json(reply.value),
                attempt=replace(attempt, judge_outcome=OK) if last else None,
                verdicts=tuple(
                    StoredVerdict(self.task.id, self.generation, attempt.round, verdict, number, decisive)
                    for verdict, number, decisive in decisions
                ),
            )

        return CallSpec(Step.JUDGE, attempt.round, draw, judge.name, identity, send, settle)

    def _decide(self, panel: Panel, objections: Mapping[str, str] | None = None) -> Verdict:
        method = self.method
        name, observations = panel[0]
        if len(panel) > 1:
            name, observations = "panel", majority(panel, method.rubric, self.task.direction)
        if objections:
            name = " + ".join((name, *objections))
            observations = object_to(observations, "; ".join(objections.values()))
        verdict = decide(
            observations, method.rubric, judge=name, policy=method.policy, threshold=method.threshold
        )
        return veto(verdict) if objections else verdict

    def _seed(self, number: int, step: Step, draw: int = 0) -> int:
        return derive_seed(self.method.seed, self.task.id, self.generation, number, step.value, draw)


def _history_row(attempt: Attempt) -> list[object]:
    """An attempt of the history, as part of a request's identity."""
    verdict = dumps(attempt.verdict) if attempt.verdict else b""
    outcome = attempt.edit_outcome.kind.value if attempt.edit_outcome else ""
    return [attempt.instruction, outcome, hashlib.sha256(verdict).hexdigest()]
