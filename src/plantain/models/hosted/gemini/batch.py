"""Gemini's batch interface: request files, jobs found by their display name, answers as files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO
from urllib.parse import quote, urlsplit

import orjson

from plantain.models.hosted.answers import JsonObject, child, objects, text
from plantain.models.hosted.batch.client import batcher_of
from plantain.models.hosted.batch.service import NOT_BILLED, BatchJob, JobState, delete_each
from plantain.models.hosted.connection import TRANSFER_S
from plantain.models.hosted.faults import Fault, answer_fault, read_body, refused_request
from plantain.models.hosted.gemini.models import GeminiWire
from plantain.models.hosted.gemini.provider import Settings
from plantain.models.hosted.images_sent import sending_cleared_file
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind

PATH = "generateContent"
UPLOAD = "/upload/v1beta/files"
PAGE = 100

STATES = {
    "SUCCEEDED": JobState.DONE,
    "PARTIALLY_SUCCEEDED": JobState.DONE,
    "FAILED": JobState.FAILED,
    "EXPIRED": JobState.EXPIRED,
    "CANCELLED": JobState.CANCELLED,
}
"""By the end of BATCH_STATE_..."""

HTTP_OF_RPC = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}
"""Errors of single requests have the codes of google.rpc; ours go by HTTP's."""


class GeminiBatch:
    """A Gemini model whose requests are sent in batch jobs; see `BatchService`."""

    def __init__(self, wire: GeminiWire, options: Settings) -> None:
        self._wire = wire
        self.name, self.aclose = wire.name, wire.aclose
        self._batcher = batcher_of(options.context.jobs, options.batch, self, PATH)

    def line(self, key: str, path: str, body: JsonObject) -> bytes:
        return orjson.dumps({"key": key, "request": body})

    def key_of(self, answer: JsonObject) -> str:
        return text(answer, "key") or text(child(answer, "metadata"), "key")

    def read(self, answer: JsonObject) -> JsonObject:
        if error := child(answer, "error"):
            code = error.get("code")
            status = HTTP_OF_RPC.get(code, code if code >= 400 else 500) if isinstance(code, int) else 500
            content = orjson.dumps({"error": error}).decode()
            raise refused_request(self.name, status, content, usage=NOT_BILLED)
        body = answer.get("response")
        if not isinstance(body, dict):
            raise answer_fault(OutcomeKind.MALFORMED, "the answer was empty")
        return body

    async def upload(self, key: str, file: Path) -> str:
        """Upload a request file in one piece, at the recipe's address, and return its id. Raise Fault if that fails."""
        await self._wire.clear_file(file)
        lines = await asyncio.to_thread(file.read_bytes)
        about = {"displayName": key, "mimeType": "jsonl", "sizeBytes": str(len(lines))}
        started = await self._wire.request("POST", UPLOAD, {"file": about}, headers=_command("start", lines))
        url = urlsplit(started.headers.get("x-goog-upload-url", ""))
        session = url._replace(scheme="", netloc="").geturl()
        if not session:
            raise _not_whole("no address for it")
        with sending_cleared_file():
            sent = await self._wire.request(
                "POST",
                session,
                timeout_s=TRANSFER_S,
                headers=_command("upload, finalize", lines),
                content=lines,
            )
        if sent.headers.get("x-goog-upload-status") != "final":
            raise _not_whole(f"status {sent.headers.get('x-goog-upload-status', 'unknown')}")
        return text(child(read_body(sent.content), "file"), "name")

    async def create(self, key: str, path: str, file_id: str) -> BatchJob:
        batch = {"displayName": key, "inputConfig": {"fileName": file_id}}
        made = await self._wire.request(
            "POST", f"{self._wire.model_path}:batchGenerateContent", {"batch": batch}
        )
        return _job(read_body(made.content))

    async def find(self, key: str) -> BatchJob | None:
        async for job in self._pages("/batches", "operations"):
            if text(child(job, "metadata"), "displayName") == key:
                return _job(job)
        return None

    async def look(self, job_id: str) -> BatchJob:
        return _job(await self._wire.get(f"/{job_id}"))

    async def fetch(self, file_id: str, to: IO[bytes]) -> None:
        await self._wire.download(f"/{file_id}:download?alt=media", to)

    async def tidy(self, key: str, job: BatchJob) -> None:
        """Delete the job's files; its request file is found by our key, since the job does not name it."""

        async def delete(file_id: str) -> None:
            await self._wire.request("DELETE", f"/{file_id}")

        sent = [
            text(file, "name")
            async for file in self._pages("/files", "files")
            if text(file, "displayName") == key
        ]
        await delete_each((*sent, *job.answers), delete)

    async def _pages(self, path: str, name: str) -> AsyncIterator[JsonObject]:
        """Yield the objects of a list, page by page."""
        token = ""
        while True:
            page = await self._wire.get(f"{path}?pageSize={PAGE}{token}")
            for one in objects(page.get(name)):
                yield one
            if not text(page, "nextPageToken"):
                return
            token = f"&pageToken={quote(text(page, 'nextPageToken'))}"

    async def generate(self, body: JsonObject) -> JsonObject:
        """Send a request in a job and return the answer's body. Raise as `Batcher.ask` does."""
        settings = child(body, "generationConfig")
        answer = self._batcher.ask(body, int("responseModalities" in settings))
        del body
        return await answer


def _command(command: str, lines: bytes) -> dict[str, str]:
    """Return the headers of one step of a resumable upload."""
    if command == "start":
        about = {
            "Header-Content-Length": str(len(lines)),
            "Header-Content-Type": "jsonl",
            "Protocol": "resumable",
        }
    else:
        about = {"Offset": "0"}
    return {f"X-Goog-Upload-{name}": value for name, value in {"Command": command, **about}.items()}


def _not_whole(why: str) -> Fault:
    return Fault(Outcome(OutcomeKind.TRANSPORT, f"the file was not taken whole ({why})"))


def _job(job: JsonObject) -> BatchJob:
    about, name = child(job, "metadata"), text(job, "name")
    state = STATES.get(text(about, "state").partition("_STATE_")[2], JobState.RUNNING)
    answers = tuple(filter(None, [text(child(about, "output"), "responsesFile")]))
    failure = _failure(name, child(job, "error")) if state is JobState.FAILED else None
    return BatchJob(name, state, answers, failure=failure)


def _failure(job_id: str, error: JsonObject) -> Outcome | None:
    """Return the outcome of a failed job: a limit is temporary, any other error stops the run."""
    code = error.get("code")
    if not isinstance(code, int):
        return None
    message = one_line(text(error, "message") or "no reason given")
    reason = f"batch job {job_id} failed: {code}: {message}"
    if HTTP_OF_RPC.get(code, code) == 429:
        return Outcome(OutcomeKind.RATE_LIMITED, reason, retry_after=60.0)
    return Outcome(OutcomeKind.TRANSPORT, reason, fatal=True)
