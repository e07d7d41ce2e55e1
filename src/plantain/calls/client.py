"""Memoised calls: every answer is recorded before it is used, and no recorded answer is requested again."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Generic, TypeVar

import orjson

from plantain.calls.admission import AdmissionController
from plantain.calls.policy import FailureStreaks, Interrupted, RequestChanged, RunHalted, next_step
from plantain.journal import CallResult, CallRow, Journal, StartedCall
from plantain.journal.batches import LeftWithJob, current_call
from plantain.records import CallKey, Outcome, OutcomeKind, Step
from plantain.roles import Exchange, Reply, exchange, failed

T = TypeVar("T")

SERVED, CHANGES = "served_models", "model_changes"
"""Keys of the run's meta: served models by requested name, and accepted changes, as JSON."""

PROBES = 24
"""Failures during outages that do not count against a call; one whose own image is at fault would wait for ever."""


@dataclass(frozen=True, slots=True)
class CallSpec(Generic[T]):
    """One call to be made or replayed.

    Attributes:
        step, round, draw: key of the call in its task.
        model: the model's name; `identity`: all other inputs that the answer depends on.
        send: performs the call.
        settle: converts a final reply into its journal record; it may reject an ok reply.
        alone: True if no model is called, so that a failure does not count for other calls.
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
        """A SHA-256 in hex of model, step and identity, in which images appear by their hashes."""
        payload = orjson.dumps([self.model, self.step.value, self.identity], option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(payload).hexdigest()


@dataclass(frozen=True, slots=True)
class Answer:
    """A call's answer, fresh or replayed: its outcome and the JSON text that was recorded."""

    outcome: Outcome
    text: str


class ModelDrift:
    """A check for another model behind a provider's name: served models are compared with those of the run.

    Args:
        journal: journal of the run.
        accept_changes: True to accept and record a new model instead of stopping the run; None if the command has no
            such option.
    """

    def __init__(self, journal: Journal, *, accept_changes: bool | None = None) -> None:
        self._journal = journal
        self._accept = accept_changes
        self._known: dict[str, list[str]] = orjson.loads(journal.reader.meta(SERVED) or "{}")

    async def check(self, model: str, served: str, *, replayed: bool = False) -> None:
        """Compare a served model with the run's; record it if it is the first.

        Args:
            model, served: the requested name, and the name in the answer; "" if unknown.
            replayed: True if an earlier process recorded the answer. A process that a change stopped has already
                recorded the first answers of the new model, which were billed.

        Raises:
            RunHalted: another model than before answered, and changes are not accepted.
        """
        known = self._known.setdefault(model, [])
        if not served or served in known:
            return
        before = list(known)
        if before and not self._accept:
            way = "" if self._accept is None else "resume with --accept-model-change (it is recorded), or "
            raise RunHalted(
                f"{model} {'was once' if replayed else 'is now'} served by {served}, and this run was made with "
                f"{', '.join(known)}: the answers would not be of one model; {way}start a new run folder"
            )
        known.append(served)
        await self._journal.set_meta(SERVED, orjson.dumps(self._known).decode())
        if before:
            changes = orjson.loads(self._journal.reader.meta(CHANGES) or "[]")
            at = datetime.now(UTC).isoformat(timespec="seconds")
            changes.append({"model": model, "from": before, "to": served, "at": at})
            await self._journal.set_meta(CHANGES, orjson.dumps(changes).decode())


@dataclass(slots=True)
class ModelClient:
    """State shared by all tasks of a run: the journal, admission, and the stop request.

    Attributes:
        served: the served models so far; None if they are not checked.
        unhurried: models whose calls are sent in batch jobs.
        in_jobs: ids of open calls of earlier processes that a job answers; they are continued, not repeated.
        leave_jobs: called when the run stops without waiting for jobs.
        made, replayed: number of calls that this process made, and of recorded answers that it reused.
        streaks: failures in a row, which end the run before they have used up its tasks.
    """

    journal: Journal
    admission: AdmissionController
    served: ModelDrift | None = None
    unhurried: Collection[str] = ()
    in_jobs: Collection[int] = ()
    leave_jobs: Callable[[], None] | None = None
    made: int = 0
    replayed: int = 0
    stop_requested: bool = False
    streaks: FailureStreaks = field(default_factory=FailureStreaks)
    jitter: random.Random = field(default_factory=random.Random)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def request_stop(self, *, wait_for_jobs: bool = False) -> None:
        """Send no new call from now on; those in flight finish and are recorded.

        Calls in batch jobs, which may take a day, stay open for the next process, unless `wait_for_jobs`.
        """
        self.stop_requested = True
        if self.leave_jobs is not None and not wait_for_jobs:
            self.leave_jobs()
        self.wake.set()
        self.admission.stop()

    async def pause(self, seconds: float) -> None:
        """Wait for some seconds before another try; a request to stop ends the wait."""
        try:
            await asyncio.wait_for(self.wake.wait(), timeout=seconds)
        except TimeoutError:
            return


@dataclass(slots=True)
class _Tries:
    """The tries of one call.

    Attributes:
        made: by all processes, as they are numbered in the journal.
        left_open: the last one of an earlier process, whose request is in a job: it is continued.
        counted: those of this process that the retry policy counts, by outcome: a busy provider's refusals use up none
            of the tries that a broken connection has.
        excused: those that failed during an outage; they are not counted.
    """

    made: int
    left_open: CallRow | None
    counted: Counter[tuple[OutcomeKind, bool]] = field(default_factory=Counter)
    excused: int = 0


class TaskCalls:
    """The calls of one task in one generation: recorded answers are reused, others requested and recorded."""

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

    def answers(self, step: Step, round: int) -> bool:
        """Return True if this step and round has a recorded answer, or is in a batch job."""
        key = CallKey(self._task_id, self._generation, round, step, 0)
        return key in self._final or key in self._in_jobs

    async def check_recorded(self, step: Step, round: int, draws: range) -> None:
        """Check the served models of recorded answers when their stored result is reused.

        Raises:
            RunHalted: another model than before answered, and changes are not accepted.
        """
        for key, row in self._final.items():
            if (
                (key.step, key.round) == (step, round)
                and key.draw in draws
                and row.outcome
                and row.outcome.ok
            ):
                await self._check_served(row.model, row.usage.served_model, replayed=True)

    async def answer(self, spec: CallSpec[T]) -> Answer:
        """Return the recorded answer to a call, or else request one and record it durably.

        Raises:
            RequestChanged: the recorded call had another request.
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
                    "that started this run, or start a new run folder"
                )
            await self._check_served(recorded.model, recorded.usage.served_model, replayed=True)
            self._client.replayed += 1
            return Answer(recorded.outcome, recorded.answer)
        tried = _Tries(self._tries.get(key, 0), self._in_jobs.pop(key, None))
        while True:
            if self._client.stop_requested:
                raise Interrupted
            settlement, wait = await self._send_once(spec, key, request_hash, tried)
            if settlement.outcome.fatal:
                raise RunHalted(f"{spec.model}: {settlement.outcome.reason}")
            await self._check_served(spec.model, settlement.usage.served_model)
            if settlement.outcome.kind is OutcomeKind.CANCELLED:
                raise Interrupted
            if settlement.final:
                return Answer(settlement.outcome, settlement.answer)
            await self._client.pause(wait)

    async def _check_served(self, model: str, served: str, *, replayed: bool = False) -> None:
        if self._client.served is not None:
            await self._client.served.check(model, served, replayed=replayed)

    async def _send_once(
        self, spec: CallSpec[T], key: CallKey, request_hash: str, tried: _Tries
    ) -> tuple[CallResult, float]:
        """Journal the start, send, journal the result; return it and the seconds until another try."""
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
            heard = Exchange()
            exchange.set(heard)
            started = time.monotonic()
            try:
                reply = await _in_time(spec.send, ticket.gate.rules.deadline_s)
            except LeftWithJob as left:
                raise (RunHalted(f"{spec.model}: {left}") if str(left) else Interrupted()) from None
            latency = time.monotonic() - started
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
        """Return a call as it is recorded at its end: as final, unless it is one failure too many.

        Then it is left to be made again when the run is resumed.
        """
        if spec.alone:
            return draft
        outcome = self._client.streaks.judged(spec.model, spec.step, key.task_id, draft.outcome)
        if outcome is draft.outcome:
            return draft
        return replace(draft, outcome=outcome, final=False, answer="", attempt=None, verdicts=(), blobs=())


async def _in_time(send: Callable[[], Awaitable[Reply[T]]], deadline_s: float | None) -> Reply[T]:
    """Send a call and return its reply; after the deadline, a reply with outcome TRANSPORT."""
    try:
        async with asyncio.timeout(deadline_s) as limit:
            return await send()
    except TimeoutError:
        if not limit.expired():
            raise
        message = f"no answer within {deadline_s:g} s"
        return failed(Outcome(OutcomeKind.TRANSPORT, message, timed_out=True))


def _too_long(model: str, outcome: Outcome) -> Outcome:
    message = (
        f"{outcome.reason}; no answer for longer than limits.outage_hours; resume when {model} answers again"
    )
    return replace(outcome, reason=message, fatal=True)
