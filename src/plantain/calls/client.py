"""The memoised call: every answer is durable before it is used, and no recorded answer is asked for again."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import orjson

from plantain.calls.admission import Admission
from plantain.calls.deadline import Deadline
from plantain.calls.failure_streaks import FailureStreaks
from plantain.calls.model_drift import ModelDrift
from plantain.calls.policy import next_step
from plantain.calls.stops import Interrupted, RequestChanged, RunHalted
from plantain.journal import CallResult, CallRow, Journal, StartedCall
from plantain.journal.batches import LeftWithJob, current_call
from plantain.records import CallKey, Outcome, OutcomeKind, Step
from plantain.roles import Reply, failed
from plantain.roles.exchange import Exchange, exchange

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CallSpec(Generic[T]):
    """One call to be made or replayed.

    Attributes:
        step, round, draw: where it stands in the task.
        model: the model's name; `identity` is everything else that the answer depends on.
        send: performs the call.
        settle: turns a final reply, good or bad, into what the journal keeps; it may find an ok reply wanting.
        alone: its failure says nothing of other calls: no model is asked.
    """

    step: Step
    round: int
    draw: int
    model: str
    identity: dict[str, object]
    send: Callable[[], Awaitable[Reply[T]]]
    settle: Callable[[Reply[T], CallResult], Awaitable[CallResult]]
    alone: bool = False

    @property
    def request_hash(self) -> str:
        """Hash of model and identity; image bytes enter by their hashes, so a replay encodes nothing."""
        payload = orjson.dumps([self.model, self.step.value, self.identity], option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(payload).hexdigest()


@dataclass(frozen=True, slots=True)
class Answer:
    """What the loop gets of a call, fresh or replayed: its outcome and the JSON text that was recorded."""

    outcome: Outcome
    text: str


@dataclass(slots=True)
class ModelClient:
    """What all tasks of a run share: the journal, admission, and the wish to stop.

    Attributes:
        served: who has answered so far; None where nobody asks.
        unhurried: models whose answers come from jobs.
        leave_jobs: called when the run stops without waiting for jobs.
        in_jobs: open calls of earlier processes that a job answers: they are continued, not made again.
        on_waiting: told why nothing goes on for now.
        on_worker: told a model and the kind of worker that answered for it.
        streaks: failures in a row, which end the run before they have used up its tasks.
    """

    journal: Journal
    admission: Admission
    served: ModelDrift | None = None
    unhurried: Collection[str] = ()
    in_jobs: Collection[int] = ()
    leave_jobs: Callable[[], None] | None = None
    on_waiting: Callable[[str], None] | None = None
    on_worker: Callable[[str, str], Awaitable[None]] | None = None
    made: int = 0
    replayed: int = 0
    stop_requested: bool = False
    streaks: FailureStreaks = field(default_factory=FailureStreaks)
    jitter: random.Random = field(default_factory=random.Random)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def request_stop(self, *, wait_for_jobs: bool = False) -> None:
        """No new call is sent from now on; those in flight finish and are recorded.

        Calls in batch jobs, which may take a day, stay open and are continued by the next process, unless this one is
        to wait for them.
        """
        self.stop_requested = True
        if self.leave_jobs is not None and not wait_for_jobs:
            self.leave_jobs()
        self.wake.set()
        self.admission.stop()

    def outage(self, model: str, news: str) -> None:
        """Report that a model does not answer."""
        if self.on_waiting is not None:
            self.on_waiting(f"{model}: {news}")

    async def send(self, spec: CallSpec[T], deadline: Deadline) -> Reply[T]:
        """Performs a call within its deadline."""
        try:
            async with deadline.guard() as guard:
                return await spec.send()
        except TimeoutError:
            if guard.expired_after_s is None:
                raise
            message = f"no answer within {guard.expired_after_s:g} s"
            return failed(Outcome(OutcomeKind.TRANSPORT, message, timed_out=True))

    async def pause(self, seconds: float) -> None:
        """Waits before another try; a wish to stop ends the wait."""
        try:
            await asyncio.wait_for(self.wake.wait(), timeout=seconds)
        except TimeoutError:
            return


PROBES = 24
"""Failures during outages that a call is not blamed for; one whose own picture is the trouble would wait for ever."""


@dataclass(slots=True)
class _Tries:
    """The tries of one call.

    Attributes:
        made: by all processes, as they are numbered in the journal.
        left_open: the last one of an earlier process, whose request is in a job: it goes on as that call.
        counted: those of this process that the retry policy counts, by how they ended: a busy provider's refusals use
            up none of the tries that a broken connection has.
        excused: those that failed while nobody was answered; they are not counted.
    """

    made: int
    left_open: CallRow | None
    counted: Counter[tuple[OutcomeKind, bool]] = field(default_factory=Counter)
    excused: int = 0


def _too_long(model: str, outcome: Outcome) -> Outcome:
    message = (
        f"{outcome.reason}; no answer for longer than limits.outage_hours; resume when {model} answers again"
    )
    return replace(outcome, reason=message, fatal=True)


class TaskCalls:
    """The calls of one task in one generation: replays what is recorded, makes and records the rest."""

    def __init__(self, client: ModelClient, task_id: str, generation: int, recorded: list[CallRow]) -> None:
        self._client = client
        self._task_id = task_id
        self._generation = generation
        self._tries: dict[CallKey, int] = {}
        self._final: dict[CallKey, CallRow] = {}
        self._in_jobs: dict[CallKey, CallRow] = {}
        for row in recorded:
            self._tries[row.key] = max(self._tries.get(row.key, 0), row.tries)
            if row.final:
                self._final[row.key] = row
            elif row.outcome is None and row.id in client.in_jobs:
                self._in_jobs[row.key] = row

    async def check_recorded(self, step: Step, round: int, draws: range) -> None:
        """Takes note of who gave recorded answers whose result is used as it is stored, without asking for them again.

        Raises:
            RunHalted: another model than before, and changes are not accepted.
        """
        if self._client.served is None:
            return
        for key, row in self._final.items():
            if (
                (key.step, key.round) == (step, round)
                and key.draw in draws
                and row.outcome
                and row.outcome.ok
            ):
                await self._client.served.check(row.model, row.usage.served_model, replayed=True)

    async def answer(self, spec: CallSpec[T]) -> Answer:
        """The recorded answer to this call, or a new one that is durable before this returns.

        Raises:
            RequestChanged: the recorded call was asked with another request.
            Interrupted: a stop was requested before the call was sent.
            RunHalted: the outcome concerns the whole run.
        """
        key = CallKey(self._task_id, self._generation, spec.round, spec.step, spec.draw)
        request_hash = spec.request_hash
        recorded = self._final.get(key)
        if recorded is not None and recorded.outcome is not None:
            if recorded.request_hash != request_hash:
                raise RequestChanged(
                    f"task {self._task_id}, round {spec.round}: the recorded {spec.step} call to {recorded.model} "
                    "was made with a different prompt, model version or image than today's; resume with the version "
                    "that began this run, or start a new run folder"
                )
            if self._client.served is not None:
                await self._client.served.check(recorded.model, recorded.usage.served_model, replayed=True)
            self._client.replayed += 1
            return Answer(recorded.outcome, recorded.answer)
        tried = _Tries(self._tries.get(key, 0), self._in_jobs.pop(key, None))
        while True:
            if self._client.stop_requested:
                raise Interrupted
            settlement, wait = await self._send_once(spec, key, request_hash, tried)
            if settlement.outcome.fatal:
                raise RunHalted(f"{spec.model}: {settlement.outcome.reason}")
            if self._client.served is not None:
                await self._client.served.check(spec.model, settlement.usage.served_model)
            if settlement.outcome.kind is OutcomeKind.CANCELLED:
                raise Interrupted
            if settlement.final:
                return Answer(settlement.outcome, settlement.answer)
            await self._client.pause(wait)

    async def _send_once(
        self, spec: CallSpec[T], key: CallKey, request_hash: str, tried: _Tries
    ) -> tuple[CallResult, float]:
        """Journals the start, sends, journals what came; returns it and the seconds until another try."""
        client = self._client
        left_open, tried.left_open = tried.left_open, None
        if left_open is None:
            admitted = client.admission.admit(spec.model, spec.step)
        else:
            admitted = client.admission.resume(spec.model, spec.step, left_open.reserved_usd)
        async with admitted as ticket:
            if client.stop_requested:
                raise Interrupted
            if left_open is None:
                tried.made += 1
                call_id = await client.journal.start_call(
                    StartedCall(key, tried.made, spec.model, request_hash, ticket.reserved_usd)
                )
                client.made += 1
            else:
                call_id = left_open.id
            ticket.started = True
            current_call.set(call_id)
            heard = Exchange(timed=ticket.deadline.seconds is not None)
            exchange.set(heard)
            begun = time.monotonic()
            try:
                reply = await client.send(spec, ticket.deadline)
            except LeftWithJob as left:
                raise (RunHalted(f"{spec.model}: {left}") if str(left) else Interrupted()) from None
            latency = time.monotonic() - begun
            if heard.ran_on and client.on_worker is not None:
                await client.on_worker(spec.model, heard.ran_on)
            ticket.announced(heard.limits)
            ticket.settle(reply.outcome, reply.usage)
            draft = CallResult(
                call_id=call_id,
                outcome=reply.outcome,
                final=False,
                usage=replace(reply.usage, ran_on=heard.ran_on) if heard.ran_on else reply.usage,
                cost_usd=ticket.cost_usd,
                latency_s=latency,
                answer="",
                raw=reply.raw,
            )
            ended = reply.outcome.kind, reply.outcome.lost
            tried.counted[ended] += 1
            wait = next_step(reply.outcome, tried.counted[ended], client.jitter)
            if ticket.give_up:
                draft = replace(draft, outcome=_too_long(spec.model, reply.outcome))
            elif ticket.sit_out and tried.excused < PROBES:
                tried.excused += 1
                tried.counted.clear()  # those before were of the same outage
                wait = 0.0
            unfinished = draft.outcome.fatal or draft.outcome.kind is OutcomeKind.CANCELLED
            if wait is None and not unfinished:
                draft = self._closed(spec, key, replace(await spec.settle(reply, draft), final=True))
            await client.journal.settle_call(draft)
        return draft, wait or 0.0

    def _closed(self, spec: CallSpec[T], key: CallKey, draft: CallResult) -> CallResult:
        """A call as it is recorded at its end: as final, unless it is one of too many that failed.

        Then it is left to be made again when the run is resumed.
        """
        if spec.alone:
            return draft
        outcome = self._client.streaks.judged(spec.model, spec.step, key.task_id, draft.outcome)
        if outcome is draft.outcome:
            return draft
        return replace(draft, outcome=outcome, final=False, answer="", attempt=None, verdicts=(), blobs=())
