"""One batch job at the provider: created exactly once, polled to its end, its answers fetched."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

from plantain.journal.batches import BatchLedger, JobRow, LeftWithJob
from plantain.models.hosted.batch.files import JobFiles
from plantain.models.hosted.batch.service import NOT_BILLED, BatchJob, BatchService, JobState
from plantain.models.hosted.faults import Fault
from plantain.records import OutcomeKind
from plantain.roles.batch_rules import BatchRules

SLOWEST = 10.0
"""Most multiple of the first interval between two looks at a job, or two tries after a fault."""

PATIENT = frozenset({OutcomeKind.TRANSPORT, OutcomeKind.RATE_LIMITED})
"""Temporary faults. A job waits as long as they last: submitting it again could be billed twice."""


class JobPoller:
    """Follows one job. Waits grow with the tries, and are at least as long as the provider requests."""

    def __init__(
        self, service: BatchService, ledger: BatchLedger, files: JobFiles, rules: BatchRules
    ) -> None:
        self._service = service
        self._ledger = ledger
        self._files = files
        self._rules = rules
        self._jitter = random.Random()

    async def run(self, job: JobRow, *, fresh: bool) -> BatchJob:
        """Return the job as it ended, its answers on disk.

        Args:
            job: as journalled, its request file on disk while it has no id at the provider.
            fresh: the provider cannot know it yet.

        Raises:
            Fault: the provider does not take the job; that is the answer to its requests.
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
