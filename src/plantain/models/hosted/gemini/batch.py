"""Gemini's batch interface: request files, jobs found by their display name, answers as files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import orjson
from google import genai
from google.genai import types

from plantain.files.redaction import redacted
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.batch.batcher import Batcher
from plantain.models.hosted.batch.client import BatchClient
from plantain.models.hosted.batch.service import (
    NOT_BILLED,
    BatchJob,
    JobState,
    delete_each,
)
from plantain.models.hosted.faults import Fault, http_fault
from plantain.models.hosted.gemini.requests import request_body
from plantain.models.hosted.gemini.wire import GeminiWire
from plantain.models.hosted.outgoing import sending_cleared_file
from plantain.models.hosted.scrub import child, text
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind
from plantain.roles.batch_rules import BatchRules

T = TypeVar("T")

PATH = "generateContent"
TRANSFER_S = 1_800.0
"""Seconds that a file may take up or down."""

PAGE = 100

STATES = {
    types.JobState.JOB_STATE_SUCCEEDED: JobState.DONE,
    types.JobState.JOB_STATE_PARTIALLY_SUCCEEDED: JobState.DONE,
    types.JobState.JOB_STATE_FAILED: JobState.FAILED,
    types.JobState.JOB_STATE_EXPIRED: JobState.EXPIRED,
    types.JobState.JOB_STATE_CANCELLED: JobState.CANCELLED,
}

HTTP_OF_RPC = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}
"""Errors of single requests bear the codes of google.rpc; ours go by HTTP's."""


class GeminiBatch:
    """Carries one model's requests in jobs: the batch form of `GeminiTransport`."""

    def __init__(self, wire: GeminiWire, client: BatchClient, rules: BatchRules) -> None:
        self._wire = wire
        self._batcher: Batcher = client.batcher(GeminiJobs(wire), PATH, rules)
        self.name = wire.name

    async def generate(
        self, contents: list[types.Content], config: types.GenerateContentConfig
    ) -> JsonObject:
        """The answer's body. Raises as `Batcher.ask` does."""
        pictures = int("IMAGE" in (config.response_modalities or []))
        answer = self._batcher.ask(request_body(contents, config), pictures)
        del contents
        return await answer

    def scrub(self, body: JsonObject) -> object:
        return self._wire.scrub(body)

    async def aclose(self) -> None:
        await self._wire.aclose()


class GeminiJobs:
    """The jobs of one model; see `BatchService`."""

    def __init__(self, wire: GeminiWire) -> None:
        self._wire = wire
        self.name = wire.name

    def line(self, key: str, path: str, body: JsonObject) -> bytes:
        return orjson.dumps({"key": key, "request": body})

    def key_of(self, answer: JsonObject) -> str:
        return text(answer, "key") or text(child(answer, "metadata"), "key")

    def read(self, answer: JsonObject) -> JsonObject:
        error = child(answer, "error")
        if error:
            raise self._refusal(error)
        body = answer.get("response")
        if not isinstance(body, dict):
            raise Fault(Outcome(OutcomeKind.MALFORMED, "the answer was empty"), 200)
        return body

    async def upload(self, key: str, file: Path) -> str:
        # Else the SDK sends the bytes wherever the answer to its first request says, past the recipe's own address.
        there = types.HttpOptions(base_url=self._wire.address)
        config = types.UploadFileConfig(display_name=key, mime_type="jsonl", http_options=there)
        await self._wire.clear_file(file)
        with sending_cleared_file():
            sent = await self._transfer(lambda client: client.aio.files.upload(file=file, config=config))
        return sent.name or ""

    async def create(self, key: str, path: str, file_id: str) -> BatchJob:
        config = types.CreateBatchJobConfig(display_name=key)
        made = await self._wire.do(
            lambda client: client.aio.batches.create(model=self._wire.model, src=file_id, config=config)
        )
        return _job(made)

    async def find(self, key: str) -> BatchJob | None:
        async def search(client: genai.Client) -> types.BatchJob | None:
            pages = await client.aio.batches.list(config=types.ListBatchJobsConfig(page_size=PAGE))
            async for job in pages:
                if job.display_name == key:
                    return job
            return None

        found = await self._wire.do(search)
        return _job(found) if found is not None else None

    async def look(self, job_id: str) -> BatchJob:
        seen = _job(await self._wire.do(lambda client: client.aio.batches.get(name=job_id)))
        if seen.state is not JobState.FAILED:
            return seen
        return replace(seen, failure=failure_of(job_id, child(await self._wire.operation(job_id), "error")))

    async def fetch(self, file_id: str, to: Path) -> None:
        await self._transfer(lambda client: client.aio.files.download(file=file_id, destination=to))

    async def tidy(self, key: str, job: BatchJob) -> None:
        """The job does not name its request file, which is found by our key, under which it was sent."""

        async def sent(client: genai.Client) -> list[str]:
            pages = await client.aio.files.list(config=types.ListFilesConfig(page_size=PAGE))
            return [file.name or "" async for file in pages if file.display_name == key]

        await delete_each(
            (*await self._wire.do(sent), *job.answers),
            lambda file_id: self._wire.do(partial(_delete, file_id)),
        )

    async def _transfer(self, request: Callable[[genai.Client], Awaitable[T]]) -> T:
        """Sends or fetches a file; an upload that breaks off is told by bare errors of the SDK."""
        try:
            return await self._wire.do(request, TRANSFER_S)
        except (KeyError, ValueError) as error:
            reason = f"the file was not taken whole ({type(error).__name__})"
            raise Fault(Outcome(OutcomeKind.TRANSPORT, reason)) from None

    def _refusal(self, error: JsonObject) -> Fault:
        code = error.get("code")
        status = HTTP_OF_RPC.get(code, code if code >= 400 else 500) if isinstance(code, int) else 500
        content = redacted(orjson.dumps({"error": error}).decode())
        raw = {"status": status, "body": self._wire.scrub({"text": content})}
        return Fault(http_fault(self.name, status, content, {}), status, raw, NOT_BILLED)


async def _delete(file_id: str, client: genai.Client) -> None:
    await client.aio.files.delete(name=file_id)


def _job(job: types.BatchJob) -> BatchJob:
    state = STATES.get(job.state, JobState.RUNNING) if job.state else JobState.RUNNING
    answers = (job.dest.file_name,) if job.dest and job.dest.file_name else ()
    return BatchJob(job.name or "", state, answers)


def failure_of(job_id: str, error: JsonObject) -> Outcome | None:
    """What a failed job says of itself: a limit passes, anything else is for a person to see to."""
    code = error.get("code")
    if not isinstance(code, int):
        return None
    message = one_line(text(error, "message") or "no reason given")
    reason = f"batch job {job_id} failed: {code}: {message}"
    if HTTP_OF_RPC.get(code, code) == 429:
        return Outcome(OutcomeKind.RATE_LIMITED, reason, retry_after=60.0)
    return Outcome(OutcomeKind.TRANSPORT, reason, fatal=True)
