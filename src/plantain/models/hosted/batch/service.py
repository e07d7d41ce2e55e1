"""What a provider's batch interface must be able to do, in our words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.faults import Fault
from plantain.records import Outcome, OutcomeKind, Usage

NOT_BILLED = Usage(input_tokens=0, output_tokens=0)
"""Of a request that a job did not answer: providers bill answers only."""


class JobState(StrEnum):
    """Where a job stands at the provider. Any but the first is final, and may have left answers."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A job as the provider describes it.

    Attributes:
        id: the provider's name for it.
        answers: ids of the files with its answers.
        request_file: id of the file with its requests, "" when the provider does not say.
        failure: of a failed job, what that means for us.
    """

    id: str
    state: JobState
    answers: tuple[str, ...] = ()
    request_file: str = ""
    failure: Outcome | None = None

    def unanswered(self) -> Fault:
        """What has become of a request of this job, now ended, that none of its answers names."""
        kind, fatal = OutcomeKind.TRANSPORT, False
        match self.state:
            case JobState.EXPIRED:
                return Fault(
                    Outcome(
                        OutcomeKind.RATE_LIMITED, f"batch job {self.id} expired before this was answered"
                    ),
                    usage=NOT_BILLED,
                )
            case JobState.CANCELLED:
                why, fatal = (
                    "was cancelled at the provider; resume to send again what it left unanswered",
                    True,
                )
            case JobState.FAILED if self.failure is not None:
                return Fault(self.failure, usage=NOT_BILLED)
            case JobState.FAILED:
                why = "failed; the provider gave no reason"
            case JobState.UNKNOWN:
                return Fault(Outcome(kind, f"batch job {self.id} is no longer known to the provider"))
            case _:
                return Fault(Outcome(kind, f"batch job {self.id} ended without an answer to this request"))
        return Fault(Outcome(kind, f"batch job {self.id} {why}", fatal=fatal), usage=NOT_BILLED)


async def delete_each(files: Iterable[str | None], delete: Callable[[str], Awaitable[None]]) -> None:
    """Deletes files; one that is gone already is as good as deleted.

    Raises Fault where any other stays, when all have been tried: one that may not be deleted keeps no other there.
    """
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
    """One model's batch interface. Every method that speaks to the provider raises `Fault` where it is not obeyed."""

    @property
    def name(self) -> str: ...

    def line(self, key: str, path: str, body: JsonObject) -> bytes:
        """A request as a line of the request file, without its end."""
        ...

    def key_of(self, answer: JsonObject) -> str:
        """Which request a line of an answer file belongs to; "" when it does not say."""
        ...

    def read(self, answer: JsonObject) -> JsonObject:
        """The body that a line of an answer file holds, as it would have come online."""
        ...

    async def upload(self, key: str, file: Path) -> str:
        """Sends a request file; returns its id at the provider."""
        ...

    async def create(self, key: str, path: str, file_id: str) -> BatchJob:
        """Makes a job of an uploaded file, under our key."""
        ...

    async def find(self, key: str) -> BatchJob | None:
        """The job that bears our key, if the provider has one."""
        ...

    async def look(self, job_id: str) -> BatchJob: ...

    async def fetch(self, file_id: str, to: Path) -> None:
        """Downloads a file of answers."""
        ...

    async def tidy(self, key: str, job: BatchJob) -> None:
        """Deletes the files of our job `key` at the provider, requests and answers: they hold images."""
        ...
