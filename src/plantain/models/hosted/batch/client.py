"""The batch client of a run: its batchers, and the jobs that earlier processes left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from plantain.journal import CallResult, Journal
from plantain.journal.batches import FILES_LEFT, FOLDER, BatchLedger, JobRow
from plantain.models.hosted.batch.batcher import Batcher
from plantain.models.hosted.batch.files import JobFiles
from plantain.models.hosted.batch.service import NOT_BILLED, BatchJob, BatchService, JobState
from plantain.models.hosted.faults import Fault
from plantain.records import InputError, Outcome, OutcomeKind
from plantain.records.messages import counted
from plantain.roles.options import BatchRules

TIDY_S = 10.0
"""Seconds that deleting a job's files may take."""


def batcher_of(jobs: object, rules: BatchRules, service: BatchService, path: str) -> Batcher:
    """Return the run's batcher for a model and format; all roles of one model share its jobs."""
    assert isinstance(jobs, BatchClient)
    return jobs.batchers.setdefault((service.name, path), Batcher(service, path, rules))


class BatchClient:
    """All batch jobs of a run, by model and format. The run opens and closes it."""

    def __init__(self) -> None:
        self.batchers: dict[tuple[str, str], Batcher] = {}
        self._run: tuple[BatchLedger, Path] | None = None

    @property
    def models(self) -> frozenset[str]:
        """The names of the models whose calls are sent in jobs."""
        return frozenset(model for model, _ in self.batchers)

    async def open(self, journal: Journal, note: Callable[[str], None]) -> set[int]:
        """Start serving a run, and continue the jobs that earlier processes left.

        Args:
            note: prints a remark on a job for the user.

        Returns:
            Ids of the open calls that the continued jobs will answer.
        """
        ledger, folder = self._run = journal.batches, journal.run / FOLDER
        never = Outcome(OutcomeKind.CANCELLED, "never sent: the process ended first")
        for call in ledger.never_sent():
            await journal.settle_call(CallResult(call, never, final=False, usage=NOT_BILLED, cost_usd=0.0))
        for batcher in self.batchers.values():
            batcher.bind(ledger, JobFiles(folder), partial(self._ended, note))
        if folder.is_dir():
            JobFiles(folder).keep_only({job.key for job in ledger.jobs()})
        for job in ledger.jobs():
            requests = ledger.requests(job.key)
            if job.state == "formed" and not requests:
                await self._close_job(job)
            elif job.state == "formed" and not JobFiles(folder).requests(job.key).exists():
                await ledger.forget(job.key)
            elif requests:
                self._batcher_of(job, len(requests)).adopt(job, requests)
        await self.sweep()
        for job in ledger.files_left():
            if await self._tidied(job):
                await ledger.move(job.key, "closed")
        return ledger.continuing()

    def _batcher_of(self, job: JobRow, requests: int) -> Batcher:
        batcher = self.batchers.get((job.model, job.path))
        if batcher is None:
            provider = job.model.partition("/")[0]
            raise InputError(
                f"providers.{provider}.transport: {counted(requests, 'request')} to {job.model} still in batch job "
                f'{job.provider_id or job.key}, and would be paid for again; resume with transport = "batch" until '
                "their answers are in"
            )
        return batcher

    def leave(self) -> None:
        """Stop waiting for all jobs; they continue at their providers."""
        for batcher in self.batchers.values():
            batcher.leave()

    async def _ended(self, note: Callable[[str], None], remark: str) -> None:
        if remark:
            note(remark)
        await self.sweep()

    async def sweep(self) -> None:
        """Close the jobs whose answers are all settled, and delete their files here and at the provider."""
        assert self._run is not None
        ledger = self._run[0]
        settled = set(ledger.settled_jobs())
        for job in ledger.jobs():
            if job.key in settled:
                await self._close_job(job)

    async def close(self) -> str:
        """Stop everything; later calls do nothing. Return one sentence about the jobs that continue, or ""."""
        for batcher in self.batchers.values():
            await batcher.close()
        if self._run is None:
            return ""
        await self.sweep()
        ledger, self._run = self._run[0], None
        left = [(job, requests) for job in ledger.jobs() if (requests := len(ledger.requests(job.key)))]
        if not left:
            return ""
        ids = [job.provider_id or f"{job.key} (not submitted yet)" for job, _ in left]
        named = ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
        total = sum(requests for _, requests in left)
        return (
            f"{counted(total, 'request waits', 'requests wait')} in {counted(len(left), 'batch job')} at the "
            f"provider, which will continue: {named}; resume to collect the answers"
        )

    async def _close_job(self, job: JobRow) -> None:
        assert self._run is not None
        ledger, folder = self._run
        left = "" if await self._tidied(job) else FILES_LEFT
        JobFiles(folder).drop(job.key)
        await ledger.move(job.key, "closed", reason=left)

    async def _tidied(self, job: JobRow) -> bool:
        """Delete a job's files at the provider; return True if none is known to be left.

        A failure does not end the run: the next process tries again, and the files expire by themselves.
        """
        if not job.provider_id:
            return True
        batcher = self.batchers.get((job.model, job.path))
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
