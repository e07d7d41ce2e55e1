"""OpenAI's batch interface: request files, jobs found by their metadata, answers and errors as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO
from urllib.parse import quote

import orjson

from plantain.files.secrets import redacted
from plantain.models.hosted.answers import JsonObject, child, objects, text
from plantain.models.hosted.batch.client import batcher_of
from plantain.models.hosted.batch.service import NOT_BILLED, BatchJob, JobState, delete_each
from plantain.models.hosted.connection import TRANSFER_S
from plantain.models.hosted.faults import answer_fault, read_body, refused_request
from plantain.models.hosted.images_sent import sending_cleared_file
from plantain.models.hosted.openai.provider import Settings
from plantain.models.hosted.openai.wire import REQUEST_ID, Named, OpenAIWire, data_url
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind

LABEL = "plantain"
"""Key of a job's metadata that contains our job key."""

PAGE = 100

STATES = {
    "completed": JobState.DONE,
    "failed": JobState.FAILED,
    "expired": JobState.EXPIRED,
    "cancelled": JobState.CANCELLED,
}
CROWDED = frozenset({"token_limit_exceeded", "rate_limit_exceeded"})
"""Codes of a job that failed because too many requests are queued at the provider."""

LATE = frozenset({"batch_expired", "batch_cancelled"})
"""Codes of a line for a request that the job did not answer before its end."""


class OpenAIBatch:
    """An OpenAI model whose requests of one format are sent in batch jobs; see `BatchService`."""

    def __init__(self, wire: OpenAIWire, options: Settings, path: str) -> None:
        self._wire = wire
        self.name, self.model, self.aclose = wire.name, wire.model, wire.aclose
        self._batcher = batcher_of(options.context.jobs, options.batch, self, path)

    def line(self, key: str, path: str, body: JsonObject) -> bytes:
        return orjson.dumps({"custom_id": key, "method": "POST", "url": f"/v1{path}", "body": body})

    def key_of(self, answer: JsonObject) -> str:
        return "" if text(child(answer, "error"), "code") in LATE else text(answer, "custom_id")

    def read(self, answer: JsonObject) -> JsonObject:
        response, error = child(answer, "response"), child(answer, "error")
        status, body = response.get("status_code"), response.get("body")
        failed = isinstance(status, int) and status >= 400
        if failed or error:
            content = body if failed and isinstance(body, dict) else {"error": error}
            code = status if isinstance(status, int) and failed else 500
            raise refused_request(self.name, code, orjson.dumps(content).decode(), usage=NOT_BILLED)
        if not isinstance(body, dict) or not body:
            raise answer_fault(OutcomeKind.MALFORMED, "the answer was empty")
        # An edit's answer names no request itself; its line does.
        return body if body.get("id") else {REQUEST_ID: redacted(text(response, "request_id")), **body}

    async def upload(self, key: str, file: Path) -> str:
        await self._wire.clear_file(file)
        with sending_cleared_file(), file.open("rb") as lines:
            form = {"file": (f"{key}.jsonl", lines, "application/jsonl")}
            fields = {"purpose": "batch"}
            sent = await self._wire.request("POST", "/files", data=fields, files=form, timeout_s=TRANSFER_S)
        return text(read_body(sent.content), "id")

    async def create(self, key: str, path: str, file_id: str) -> BatchJob:
        asked = {"input_file_id": file_id, "endpoint": f"/v1{path}", "completion_window": "24h"}
        return _job(await self._wire.post("/batches", {**asked, "metadata": {LABEL: key}}))

    async def find(self, key: str) -> BatchJob | None:
        after = ""
        while True:
            listed = await self._wire.get(f"/batches?limit={PAGE}{after}")
            jobs = objects(listed.get("data"))
            for job in jobs:
                if text(child(job, "metadata"), LABEL) == key:
                    return _job(job)
            if not jobs or not listed.get("has_more"):
                return None
            after = f"&after={quote(text(jobs[-1], 'id'))}"

    async def look(self, job_id: str) -> BatchJob:
        return _job(await self._wire.get(f"/batches/{quote(job_id)}"))

    async def fetch(self, file_id: str, to: IO[bytes]) -> None:
        await self._wire.download(f"/files/{quote(file_id)}/content", to)

    async def tidy(self, key: str, job: BatchJob) -> None:
        async def delete(file_id: str) -> None:
            await self._wire.request("DELETE", f"/files/{quote(file_id)}")

        await delete_each((job.request_file, *job.answers), delete)

    async def post(self, path: str, body: JsonObject) -> JsonObject:
        """Send a request in a job and return the answer's body. Raise as `Batcher.ask` does."""
        answer = self._batcher.ask(body)
        del body
        return await answer

    async def post_form(self, path: str, fields: JsonObject, files: Sequence[Named]) -> JsonObject:
        """Send an edit in a job, as JSON, since jobs do not support forms; return the answer's body."""
        shown = [{"image_url": data_url(sent)} for _, sent in files]
        return await self._batcher.ask({**fields, "images": shown}, images=1)


def _job(job: JsonObject) -> BatchJob:
    state = STATES.get(text(job, "status"), JobState.RUNNING)
    answers = tuple(filter(None, (text(job, "output_file_id"), text(job, "error_file_id"))))
    failure = _failure(job) if state is JobState.FAILED else None
    return BatchJob(text(job, "id"), state, answers, text(job, "input_file_id"), failure)


def _failure(job: JsonObject) -> Outcome:
    first = next(iter(objects(child(job, "errors").get("data"))), {})
    code, message = text(first, "code"), text(first, "message") or "no reason given"
    reason = f"batch job {text(job, 'id')} was not accepted: {code or 'no code'}: {one_line(message)}"
    if code in CROWDED:
        return Outcome(OutcomeKind.RATE_LIMITED, reason, retry_after=60.0)
    return Outcome(OutcomeKind.TRANSPORT, reason, fatal=True)
