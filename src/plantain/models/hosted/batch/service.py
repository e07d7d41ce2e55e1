"""The batch interface that a provider implements, and the state of a job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Protocol

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.faults import Fault
from plantain.records import Outcome, OutcomeKind, Usage

NOT_BILLED = Usage(input_tokens=0, output_tokens=0)
"""Usage of a request that a job did not answer: providers bill only answers."""


class JobState(StrEnum):
    """The state of a job at the provider. All but the first are final; each may have some answers."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch job as the provider describes it.

    Attributes:
        id: the provider's id of the job.
        answers: ids of the files with its answers.
        request_file: id of the file with its requests; "" if not stated.
        failure: the outcome of a failed job's requests, if the provider gave a reason.
    """

    id: str
    state: JobState
    answers: tuple[str, ...] = ()
    request_file: str = ""
    failure: Outcome | None = None

    def unanswered(self) -> Fault:
        """Return the fault for requests that the job, which has ended, did not answer."""
        job, transport = f"batch job {self.id}", OutcomeKind.TRANSPORT
        if self.state is JobState.EXPIRED:
            outcome = Outcome(OutcomeKind.RATE_LIMITED, f"{job} expired before this was answered")
        elif self.state is JobState.CANCELLED:
            why = f"{job} was cancelled at the provider; resume to send its unanswered requests again"
            outcome = Outcome(transport, why, fatal=True)
        elif self.state is JobState.FAILED:
            outcome = self.failure or Outcome(transport, f"{job} failed; the provider gave no reason")
        elif self.state is JobState.UNKNOWN:
            return Fault(Outcome(transport, f"{job} is no longer known to the provider"))
        else:
            return Fault(Outcome(transport, f"{job} ended without an answer to this request"))
        return Fault(outcome, usage=NOT_BILLED)


async def delete_each(files: Iterable[str | None], delete: Callable[[str], Awaitable[None]]) -> None:
    """Delete files by id; one that is gone counts as deleted, None is skipped. Try all, then raise the first Fault."""
    stays: Fault | None = None
    for file_id in filter(None, files):
        try:
            await delete(file_id)
        except Fault as fault:
            if fault.status != 404:
                stays = stays or fault
    if stays is not None:
        raise stays


class BatchService(Protocol):
    """The interface of a provider's batch jobs for one model. Methods that call the provider raise `Fault`."""

    @property
    def name(self) -> str: ...

    def line(self, key: str, path: str, body: JsonObject) -> bytes:
        """Return a request as a line of the request file, without the line feed."""
        ...

    def key_of(self, answer: JsonObject) -> str:
        """Return the key of the request that a line of an answer file answers; "" if it has none."""
        ...

    def read(self, answer: JsonObject) -> JsonObject:
        """Return the answer's body in a line of an answer file, in the form of an online answer."""
        ...

    async def upload(self, key: str, file: Path) -> str:
        """Send a request file; return its id at the provider."""
        ...

    async def create(self, key: str, path: str, file_id: str) -> BatchJob:
        """Create a job from an uploaded file, marked with our key so that `find` finds it."""
        ...

    async def find(self, key: str) -> BatchJob | None:
        """Find the job marked with our key; return None if the provider has none."""
        ...

    async def look(self, job_id: str) -> BatchJob: ...

    async def fetch(self, file_id: str, to: IO[bytes]) -> None:
        """Download a file of answers into `to`."""
        ...

    async def tidy(self, key: str, job: BatchJob) -> None:
        """Delete a job's request and answer files at the provider, since they contain images."""
        ...
