"""Batch jobs of one model: each is created exactly once, polled to its end, and its answers are fetched.

The batcher collects the requests of many tasks into jobs and returns the answer to each.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from functools import partial

import orjson

from plantain.journal.batches import BatchLedger, JobRow, LeftWithJob, current_call
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.batch.files import JobFiles, Line, index
from plantain.models.hosted.batch.service import NOT_BILLED, BatchJob, BatchService, JobState
from plantain.models.hosted.faults import Fault
from plantain.records import Outcome, OutcomeKind
from plantain.records.messages import counted
from plantain.roles.options import BatchRules

SLOWEST = 10.0
"""Most multiple of the first interval between two looks at a job, or two tries after a fault."""

PATIENT = frozenset({OutcomeKind.TRANSPORT, OutcomeKind.RATE_LIMITED})
"""Temporary faults. A job waits as long as they last: submitting it again could be billed twice."""


class JobPoller:
    """One batch job, sent and polled until it ends. Waits grow, and are at least as long as the provider requests."""

    def __init__(
        self, service: BatchService, ledger: BatchLedger, files: JobFiles, rules: BatchRules
    ) -> None:
        self._service = service
        self._ledger = ledger
        self._files = files
        self._rules = rules
        self._jitter = random.Random()

    async def run(self, job: JobRow, *, fresh: bool) -> BatchJob:
        """Wait until a job has ended, download its answers to disk, and return it.

        Args:
            job: the journalled job; its request file is on disk until it has an id at the provider.
            fresh: True if the job was never sent, so that the provider need not be searched for it.

        Raises:
            Fault: the provider rejects the job; that is the answer to its requests.
            LeftWithJob: the user has to act first; resuming continues from here.
        """
        if not job.provider_id:
            made = await self._create(job, fresh=fresh)
            await self._ledger.move(job.key, "running", provider_id=made.id)
            job = replace(job, provider_id=made.id)
            await asyncio.to_thread(self._files.drop_requests, job.key)
        ended = await self._end_of(job)
        await self._fetch(job, ended)
        await self._ledger.move(job.key, "ended", reason="" if ended.state is JobState.DONE else ended.state)
        return ended

    async def _create(self, job: JobRow, *, fresh: bool) -> BatchJob:
        """Create the job, unless the provider has one with its key: the answer to `create` can be lost."""
        file_id, tries = "", 0
        while True:
            try:
                found = None if fresh else await self._service.find(job.key)
                if found is not None:
                    return found
                file_id = file_id or await self._service.upload(job.key, self._files.requests(job.key))
                fresh = False
                return await self._service.create(job.key, job.path, file_id)
            except Fault as fault:
                if fault.outcome.kind not in PATIENT:
                    await self._ledger.move(job.key, "ended", reason=fault.outcome.reason)
                    fatal = replace(fault.outcome, fatal=True)
                    raise Fault(fatal, fault.status, fault.raw, NOT_BILLED) from None
                await self._sit_out(job, fault, tries)
                tries += 1

    async def _end_of(self, job: JobRow) -> BatchJob:
        tries, looks = 0, 0
        while True:
            try:
                seen = await self._service.look(job.provider_id)
                if seen.state is not JobState.RUNNING:
                    return seen
                if tries:
                    await self._ledger.note(job.key, "")
                    tries = 0
                await asyncio.sleep(self._rules.poll_s * min(SLOWEST, 1.25**looks))
                looks += 1
            except Fault as fault:
                if fault.status == 404:
                    return BatchJob(job.provider_id, JobState.UNKNOWN)
                await self._sit_out(job, fault, tries)
                tries += 1

    async def _fetch(self, job: JobRow, ended: BatchJob) -> None:
        """Download the answer files that are missing here; a file exists only when it is complete."""
        for number, file_id in enumerate(ended.answers):
            tries = 0
            while not self._files.answer(job.key, number).exists():
                try:
                    with self._files.naming_full_disk(0), self._files.nameless() as raw:
                        await self._service.fetch(file_id, raw)
                        await asyncio.to_thread(self._files.keep_answer, raw, job.key, number)
                except Fault as fault:
                    if fault.status == 404:
                        break
                    await self._sit_out(job, fault, tries)
                    tries += 1

    async def _sit_out(self, job: JobRow, fault: Fault, tries: int) -> None:
        """Wait for a fault to pass; `plantain status` shows it. Raise LeftWithJob if it will not pass by itself."""
        if fault.outcome.fatal or fault.outcome.kind not in PATIENT:
            raise LeftWithJob(fault.outcome.reason) from None
        await self._ledger.note(job.key, fault.outcome.reason)
        wait = self._rules.poll_s * min(SLOWEST, 2.0 ** min(tries, 10)) * self._jitter.uniform(0.5, 1.0)
        await asyncio.sleep(max(wait, fault.outcome.retry_after or 0.0))


Result = Line | BaseException
"""The answer to a request: a line to read, or an exception to raise."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that is not in a job yet.

    Attributes:
        key: its id in a job; `call`: id of the call that it belongs to.
        line: its line of the request file.
        images: number of images that the answer will contain.
    """

    key: str
    call: int
    line: bytes
    images: int


class Batcher:
    """A collector of one model's requests in one format into batch jobs. Use it in one event loop after `bind`.

    Args:
        service: the provider's batch interface.
        path: path of the format at the provider, e.g. "/v1/responses".
        rules: size and age at which a job is sent.
    """

    def __init__(self, service: BatchService, path: str, rules: BatchRules) -> None:
        self.service = service
        self.path = path
        self._rules = rules
        self._run: tuple[BatchLedger, JobFiles, Callable[[str], Awaitable[None]]] | None = None
        self._places: dict[str, asyncio.Future[Result]] = {}
        self._queue: list[Waiting] = []
        self._queued_bytes = self._queued_images = 0
        self._first_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._forming: set[asyncio.Task[None]] = set()
        self._following: set[asyncio.Task[None]] = set()
        self._left = False

    def bind(self, ledger: BatchLedger, files: JobFiles, ended: Callable[[str], Awaitable[None]]) -> None:
        """Attach the batcher to a run; `ended` is called with a remark, or "", when a job has ended."""
        self._run, self._left = (ledger, files, ended), False

    def ask(self, body: JsonObject, images: int = 0) -> Awaitable[JsonObject]:
        """Return the answer to a request when its job has ended; at once if an earlier process's job has it.

        The awaitable keeps the request only until it is in a job: it may be a megabyte, and the answer may take a day.
        A caller that waits should not keep `body` either.

        Args:
            body: the request's JSON body, as for an online call.
            images: number of images that the answer will contain.

        Raises:
            Fault: the request has no answer.
            LeftWithJob: the run stops; the job continues.
        """
        call = current_call.get()
        key = f"{call}-{hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]}"
        return self._answer(Waiting(key, call, self.service.line(key, self.path, body), images))

    async def _answer(self, request: Waiting) -> JsonObject:
        ledger = self._bound()[0]
        key = request.key
        place = self._places.get(key)
        if place is None:
            if self._left:
                raise _not_sent()
            place = self._place(key)
            await ledger.add_request(key, request.call)
            self._enqueue(request)
        del request
        result = await asyncio.shield(place)
        self._places.pop(key, None)
        if not isinstance(result, Line):
            raise _again(result)
        return self.service.read(await asyncio.to_thread(result.read))

    def adopt(self, job: JobRow, requests: Iterable[str]) -> None:
        """Continue a job of an earlier process; `requests` are the keys of its requests that are still unanswered."""
        keys = list(requests)
        for key in keys:
            self._place(key)
        self._follow(job, keys, fresh=False)

    def leave(self) -> None:
        """Stop waiting: jobs continue at the provider; requests that were not sent are dropped."""
        self._left = True
        self._stop_timer()
        self._resolve([request.key for request in self._take_queue()], _not_sent())
        for task in self._following:
            task.cancel()

    async def close(self) -> None:
        """Call `leave`, then wait until all tasks have ended."""
        self.leave()
        await asyncio.gather(*self._forming, return_exceptions=True)
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)
        self._places.clear()

    def _bound(self) -> tuple[BatchLedger, JobFiles, Callable[[str], Awaitable[None]]]:
        if self._run is None:
            raise RuntimeError("a batch transport belongs to a run: `BatchClient.open` first")
        return self._run

    def _place(self, key: str) -> asyncio.Future[Result]:
        place: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._places[key] = place
        return place

    def _enqueue(self, request: Waiting) -> None:
        now = asyncio.get_running_loop().time()
        if self._left:
            self._resolve([request.key], _not_sent())
            return
        if self._queue and not self._fits(request):
            self._form()
        if not self._queue:
            self._first_at = now
        self._queue.append(request)
        self._queued_bytes += len(request.line)
        self._queued_images += request.images
        self._stop_timer()
        if len(self._queue) >= self._rules.requests or self._queued_images >= self._rules.images:
            self._form()
            return
        wait = min(self._rules.quiet_s, self._first_at + self._rules.wait_s - now)
        self._timer = asyncio.get_running_loop().call_later(max(0.0, wait), self._form)

    def _fits(self, request: Waiting) -> bool:
        return (
            self._queued_bytes + len(request.line) <= self._rules.megabytes * 1e6
            and self._queued_images + request.images <= self._rules.images
        )

    def _take_queue(self) -> list[Waiting]:
        taken, self._queue = self._queue, []
        self._queued_bytes = self._queued_images = 0
        return taken

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _form(self) -> None:
        self._stop_timer()
        waiting = self._take_queue()
        if waiting:
            self._start(self._forming, self._new_job(waiting), [request.key for request in waiting])

    async def _new_job(self, waiting: list[Waiting]) -> None:
        """Write the request file, then the journal: a job that is journalled always has its file."""
        ledger, files, _ = self._bound()
        job = JobRow(f"plantain-{os.urandom(8).hex()}", self.service.name, self.path, "formed")
        keys = [request.key for request in waiting]
        await asyncio.to_thread(files.write_requests, job.key, [request.line for request in waiting])
        await ledger.form(job, keys)
        waiting.clear()
        if self._left:
            self._resolve(keys, LeftWithJob())
        else:
            self._follow(job, keys, fresh=True)

    def _follow(self, job: JobRow, keys: list[str], *, fresh: bool) -> None:
        self._start(self._following, self._see_through(job, keys, fresh=fresh), keys)

    def _start(
        self, tasks: set[asyncio.Task[None]], work: Coroutine[None, None, None], keys: list[str]
    ) -> None:
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(partial(self._done, tasks, keys))

    def _done(self, tasks: set[asyncio.Task[None]], keys: list[str], task: asyncio.Task[None]) -> None:
        """Pass the error that ended a job's task to the callers that wait for its answers."""
        tasks.discard(task)
        if task.cancelled():
            self._resolve(keys, LeftWithJob())
        elif (trouble := task.exception()) is not None:
            self._resolve(keys, trouble)

    async def _see_through(self, job: JobRow, keys: list[str], *, fresh: bool) -> None:
        """Create a job, wait for its end, fetch its answers and return them to the callers."""
        ledger, files, finish = self._bound()
        ended = await JobPoller(self.service, ledger, files, self._rules).run(job, fresh=fresh)
        service = self.service
        lines, repeated = await asyncio.to_thread(index, files.answers(job.key), service.key_of, service.read)
        for key in keys:
            self._resolve([key], lines.get(key) or ended.unanswered())
        foreign = len(lines.keys() - ledger.requests(job.key, settled=True))
        await finish(_remark(ended.id, repeated, foreign))

    def _resolve(self, keys: Iterable[str], result: Result) -> None:
        for key in keys:
            place = self._places.get(key)
            if place is not None and not place.done():
                place.set_result(result)


def _remark(job_id: str, repeated: int, foreign: int) -> str:
    """Return the line about a job's answers that were not used; "" if there are none."""
    if not repeated and not foreign:
        return ""
    return (
        f"batch job {job_id}: ignored {counted(repeated, 'further answer')} to answered requests, "
        f"and {counted(foreign, 'answer')} to requests that were not in the job"
    )


def _again(why: BaseException) -> BaseException:
    """Return a copy of an exception: one object raised in many tasks would collect all their tracebacks."""
    if isinstance(why, Fault):
        return Fault(why.outcome, why.status, why.raw, why.usage)
    return LeftWithJob(*why.args) if isinstance(why, LeftWithJob) else why


def _not_sent() -> Fault:
    return Fault(Outcome(OutcomeKind.CANCELLED, "never sent: the run stopped first"), usage=NOT_BILLED)
