"""The batcher: collects the requests of many tasks into jobs for one model, and returns the answer to each."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial

import orjson

from plantain.journal.batches import BatchLedger, JobRow, LeftWithJob, current_call
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.batch.files import JobFiles, Line, index
from plantain.models.hosted.batch.poller import JobPoller
from plantain.models.hosted.batch.service import NOT_BILLED, BatchService
from plantain.models.hosted.faults import Fault
from plantain.records import Outcome, OutcomeKind
from plantain.roles.batch_rules import BatchRules

Result = Line | BaseException
"""The answer to a request: a line to read, or an exception to raise."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that is in no job yet, and the call that it is for."""

    key: str
    call: int
    line: bytes
    images: int


class Batcher:
    """Requests of one model in one of the provider's formats. Belongs to one event loop once it is bound to a run.

    Args:
        service: the provider.
        path: the format, as the provider names it.
        rules: how large and how old a job may become before it is sent.
    """

    def __init__(self, service: BatchService, path: str, rules: BatchRules) -> None:
        self.service = service
        self.path = path
        self._rules = rules
        self._run: tuple[BatchLedger, JobFiles, Callable[[], Awaitable[None]]] | None = None
        self._places: dict[str, asyncio.Future[Result]] = {}
        self._queue: list[Waiting] = []
        self._queued_bytes = self._queued_images = 0
        self._first_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._forming: set[asyncio.Task[None]] = set()
        self._following: set[asyncio.Task[None]] = set()
        self._left = False

    def bind(self, ledger: BatchLedger, files: JobFiles, sweep: Callable[[], Awaitable[None]]) -> None:
        """Work for this run from now on; `sweep` is called when a job has ended."""
        self._run, self._left = (ledger, files, sweep), False

    def ask(self, body: JsonObject, images: int = 0) -> Awaitable[JsonObject]:
        """Return the answer to a request, when its job has ended; at once if an earlier process's job has it.

        The awaitable keeps the request only until it is in a job: it may be a megabyte, and the answer may take a day.
        A caller that waits should not keep `body` either.

        Args:
            body: as it would be posted online.
            images: how many images the answer will contain.

        Raises:
            Fault: there is none.
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
        """Continue a job of an earlier process: these of its requests wait for their answers."""
        keys = list(requests)
        for key in keys:
            self._place(key)
        self._follow(job, keys, fresh=False)

    def leave(self) -> None:
        """Stop with the run: jobs continue at the provider; requests that were not sent are dropped."""
        self._left = True
        self._stop_timer()
        self._resolve([request.key for request in self._take_queue()], _not_sent())
        for task in self._following:
            task.cancel()

    async def close(self) -> None:
        """Wait for all tasks of this batcher to end."""
        self.leave()
        await asyncio.gather(*self._forming, return_exceptions=True)
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)
        self._places.clear()

    def _bound(self) -> tuple[BatchLedger, JobFiles, Callable[[], Awaitable[None]]]:
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
        ledger, files, sweep = self._bound()
        ended = await JobPoller(self.service, ledger, files, self._rules).run(job, fresh=fresh)
        service = self.service
        lines = await asyncio.to_thread(index, files.answers(job.key), service.key_of, service.read)
        for key in keys:
            self._resolve([key], lines.get(key) or ended.unanswered())
        await sweep()

    def _resolve(self, keys: Iterable[str], result: Result) -> None:
        for key in keys:
            place = self._places.get(key)
            if place is not None and not place.done():
                place.set_result(result)


def _again(why: BaseException) -> BaseException:
    """Return a copy of an exception: one object raised in many tasks would collect all their tracebacks."""
    if isinstance(why, Fault):
        return Fault(why.outcome, why.status, why.raw, why.usage)
    return LeftWithJob(*why.args) if isinstance(why, LeftWithJob) else why


def _not_sent() -> Fault:
    return Fault(Outcome(OutcomeKind.CANCELLED, "never sent: the run stopped first"), usage=NOT_BILLED)
