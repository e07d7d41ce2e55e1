"""OpenAI's batch interface: request files, jobs found by their metadata, answers and errors as files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import openai
import orjson
from openai.types import Batch

from plantain.files.redaction import redacted
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.batch.client import BatchClient
from plantain.models.hosted.batch.service import NOT_BILLED, BatchJob, JobState, delete_each
from plantain.models.hosted.faults import Fault, http_fault
from plantain.models.hosted.openai.wire import REQUEST_ID, Named, OpenAIWire, edit_in_json
from plantain.models.hosted.outgoing import sending_cleared_file
from plantain.models.hosted.scrub import child, text
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind
from plantain.roles.batch_rules import BatchRules

TRANSFER_S = 1_800.0
"""Seconds that a file may take up or down."""

LABEL = "plantain"
"""Under this name a job's metadata hold our key."""

PAGE = 100

STATES = {
    "completed": JobState.DONE,
    "failed": JobState.FAILED,
    "expired": JobState.EXPIRED,
    "cancelled": JobState.CANCELLED,
}
CROWDED = frozenset({"token_limit_exceeded", "rate_limit_exceeded"})
"""Codes of a failed job that say that too much is waiting at the provider."""

LATE = frozenset({"batch_expired", "batch_cancelled"})


class OpenAIBatch:
    """Carries one model's requests of one format in jobs: the batch form of `OpenAITransport`."""

    def __init__(self, wire: OpenAIWire, client: BatchClient, rules: BatchRules, path: str) -> None:
        self._wire = wire
        self._path = path
        self._batcher = client.batcher(OpenAIJobs(wire), path, rules)
        self.name = wire.name
        self.model = wire.model

    async def post(self, path: str, body: JsonObject) -> JsonObject:
        """The body of the answer. Raises as `Batcher.ask` does."""
        assert path == self._path
        answer = self._batcher.ask(body)
        del body
        return await answer

    async def post_form(self, path: str, fields: JsonObject, files: Sequence[Named]) -> JsonObject:
        """The same for an edit in its JSON form: a line of a file of requests holds no form fields."""
        assert path == self._path
        answer = self._batcher.ask(edit_in_json(fields, files), pictures=1)
        return await answer

    def scrub(self, body: JsonObject) -> object:
        return self._wire.scrub(body)

    async def aclose(self) -> None:
        await self._wire.aclose()


class OpenAIJobs:
    """The jobs of one model; see `BatchService`."""

    def __init__(self, wire: OpenAIWire) -> None:
        self._wire = wire
        self.name = wire.name

    def line(self, key: str, path: str, body: JsonObject) -> bytes:
        return orjson.dumps({"custom_id": key, "method": "POST", "url": f"/v1{path}", "body": body})

    def key_of(self, answer: JsonObject) -> str:
        """A line that only says that the job ended first is no answer."""
        late = text(child(answer, "error"), "code") in LATE
        return "" if late else text(answer, "custom_id")

    def read(self, answer: JsonObject) -> JsonObject:
        response, error = child(answer, "response"), child(answer, "error")
        status, body = response.get("status_code"), response.get("body")
        if isinstance(status, int) and status >= 400:
            raise self._refusal(status, body if isinstance(body, dict) else {"error": error})
        if error:
            raise self._refusal(500, {"error": error})
        if not isinstance(body, dict) or not body:
            raise Fault(Outcome(OutcomeKind.MALFORMED, "the answer was empty"), 200)
        # An edit's answer names no request itself; its line does.
        return body if body.get("id") else {REQUEST_ID: redacted(text(response, "request_id")), **body}

    async def upload(self, key: str, file: Path) -> str:
        async def send(client: openai.AsyncOpenAI) -> str:
            with file.open("rb") as requests:
                sent = await client.files.create(file=(f"{key}.jsonl", requests), purpose="batch")
            return sent.id

        await self._wire.clear_file(file)
        with sending_cleared_file():
            return await self._wire.do(send, TRANSFER_S)

    async def create(self, key: str, path: str, file_id: str) -> BatchJob:
        return _job(
            await self._wire.do(
                lambda client: client.batches.create(
                    input_file_id=file_id,
                    endpoint=f"/v1{path}",  # type: ignore[arg-type]  # one of the SDK's literals
                    completion_window="24h",
                    metadata={LABEL: key},
                )
            )
        )

    async def find(self, key: str) -> BatchJob | None:
        async def search(client: openai.AsyncOpenAI) -> Batch | None:
            async for job in client.batches.list(limit=PAGE):
                if (job.metadata or {}).get(LABEL) == key:
                    return job
            return None

        found = await self._wire.do(search)
        return _job(found) if found is not None else None

    async def look(self, job_id: str) -> BatchJob:
        return _job(await self._wire.do(lambda client: client.batches.retrieve(job_id)))

    async def fetch(self, file_id: str, to: Path) -> None:
        async def save(client: openai.AsyncOpenAI) -> None:
            async with client.files.with_streaming_response.content(file_id) as response:
                await response.stream_to_file(to)

        await self._wire.do(save, TRANSFER_S)

    async def tidy(self, key: str, job: BatchJob) -> None:
        await delete_each(
            (job.request_file, *job.answers), lambda file_id: self._wire.do(partial(_delete, file_id))
        )

    def _refusal(self, status: int, body: JsonObject) -> Fault:
        content = redacted(orjson.dumps(body).decode())
        raw = {"status": status, "body": self._wire.scrub({"text": content})}
        return Fault(http_fault(self.name, status, content, {}), status, raw, NOT_BILLED)


async def _delete(file_id: str, client: openai.AsyncOpenAI) -> None:
    await client.files.delete(file_id)


def _job(job: Batch) -> BatchJob:
    state = STATES.get(job.status, JobState.RUNNING)
    answers = tuple(filter(None, (job.output_file_id, job.error_file_id)))
    failure = _failure(job) if state is JobState.FAILED else None
    return BatchJob(job.id, state, answers, job.input_file_id, failure)


def _failure(job: Batch) -> Outcome:
    first = next(iter((job.errors.data if job.errors else None) or []), None)
    code, message = (
        (first.code or "", one_line(redacted(first.message or ""))) if first else ("", "no reason given")
    )
    reason = f"batch job {job.id} was not accepted: {code or 'no code'}: {message}"
    if code in CROWDED:
        return Outcome(OutcomeKind.RATE_LIMITED, reason, retry_after=60.0)
    return Outcome(OutcomeKind.TRANSPORT, reason, fatal=True)
