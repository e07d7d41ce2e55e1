"""The batch client of a run: its batchers, the jobs that earlier processes left, and what is left when it stops."""

from __future__ import annotations

import asyncio

from plantain.journal import CallResult, Journal
from plantain.journal.batches import FILES_LEFT, BatchLedger, JobRow
from plantain.models.hosted.batch.batcher import Batcher
from plantain.models.hosted.batch.files import JobFiles
from plantain.models.hosted.batch.service import NOT_BILLED, BatchJob, BatchService, JobState
from plantain.models.hosted.faults import Fault
from plantain.records import InputError, Outcome, OutcomeKind
from plantain.records.counts import counted
from plantain.roles.batch_rules import BatchRules

FOLDER = "batch"
"""In the run's folder."""

TIDY_S = 10.0


class BatchClient:
    """All batchers of a run. Adapters ask for theirs when they are made; the run opens and closes it."""

    def __init__(self) -> None:
        self._batchers: dict[tuple[str, str], Batcher] = {}
        self._ledger: BatchLedger | None = None
        self._files: JobFiles | None = None

    @property
    def models(self) -> frozenset[str]:
        """Names of the models whose calls come here."""
        return frozenset(model for model, _ in self._batchers)

    def batcher(self, service: BatchService, path: str, rules: BatchRules) -> Batcher:
        """The batcher for a model and format: the roles that one model fills share its jobs."""
        return self._batchers.setdefault((service.name, path), Batcher(service, path, rules))

    async def open(self, journal: Journal) -> set[int]:
        """Begins work for a run and goes on with the jobs that earlier processes left.

        Returns:
            Ids of the open calls that those jobs answer.
        """
        ledger, files = journal.batches, JobFiles(journal.run / FOLDER)
        self._ledger, self._files = ledger, files
        never = Outcome(OutcomeKind.CANCELLED, "never sent: the process ended first")
        for call in ledger.never_sent():
            await journal.settle_call(CallResult(call, never, final=False, usage=NOT_BILLED, cost_usd=0.0))
        for batcher in self._batchers.values():
            batcher.bind(ledger, files, self.sweep)
        files.keep_only({job.key for job in ledger.jobs()})
        for job in ledger.jobs():
            requests = ledger.requests(job.key)
            if job.state == "formed" and not requests:
                await self._close_job(job)
            elif job.state == "formed" and not files.requests(job.key).exists():
                await ledger.forget(job.key)
            elif requests:
                self._batcher_of(job, len(requests)).adopt(job, requests)
        await self.sweep()
        for job in ledger.files_left():
            if await self._tidied(job):
                await ledger.move(job.key, "closed")
        return ledger.continuing()

    def _batcher_of(self, job: JobRow, requests: int) -> Batcher:
        batcher = self._batchers.get((job.model, job.path))
        if batcher is None:
            provider = job.model.partition("/")[0]
            raise InputError(
                f"providers.{provider}.transport: {counted(requests, 'request')} to {job.model} still in batch job "
                f'{job.provider_id or job.key}, and would be paid for again; resume with transport = "batch" until '
                "their answers are in"
            )
        return batcher

    def leave(self) -> None:
        """The run stops; jobs at providers go on."""
        for batcher in self._batchers.values():
            batcher.leave()

    async def sweep(self) -> None:
        """Closes the jobs whose answers are all settled, and deletes their files here and at the provider."""
        assert self._ledger is not None
        settled = set(self._ledger.settled_jobs())
        for job in self._ledger.jobs():
            if job.key in settled:
                await self._close_job(job)

    async def close(self) -> str:
        """Stops everything; later calls do nothing.

        Returns:
            What goes on without us, in a sentence; "" where nothing does.
        """
        for batcher in self._batchers.values():
            await batcher.close()
        ledger = self._ledger
        if ledger is None:
            return ""
        await self.sweep()
        self._ledger = None
        left = [(job, len(ledger.requests(job.key))) for job in ledger.jobs()]
        return left_behind([(job, requests) for job, requests in left if requests])

    async def _close_job(self, job: JobRow) -> None:
        assert self._ledger is not None
        assert self._files is not None
        left = "" if await self._tidied(job) else FILES_LEFT
        self._files.drop(job.key)
        await self._ledger.move(job.key, "closed", reason=left)

    async def _tidied(self, job: JobRow) -> bool:
        """Deletes a job's files at the provider; whether none is left, as far as it can be known.

        A run neither fails for it nor waits long: where they cannot be deleted, the next process tries again, and what
        is left expires by itself.
        """
        if not job.provider_id:
            return True
        batcher = self._batchers.get((job.model, job.path))
        if batcher is None:
            return False
        try:
            async with asyncio.timeout(TIDY_S):
                try:
                    seen = await batcher.service.look(job.provider_id)
                except Fault:
                    seen = BatchJob(job.provider_id, JobState.UNKNOWN)
                await batcher.service.tidy(job.key, seen)
        except (Fault, TimeoutError):
            return False
        return True


def left_behind(jobs: list[tuple[JobRow, int]]) -> str:
    """What a person should know of jobs that a stopped run leaves: how many, which, and that nothing is lost."""
    if not jobs:
        return ""
    ids = [job.provider_id or f"{job.key} (not handed in yet)" for job, _ in jobs]
    named = ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
    total = sum(requests for _, requests in jobs)
    return (
        f"{counted(total, 'request waits', 'requests wait')} in {counted(len(jobs), 'batch job')} at the "
        f"provider, which "
        f"go{'' if len(jobs) > 1 else 'es'} on without us: {named}; resume to collect the answers"
    )
