"""Batch jobs of Vertex AI: requests and answers are files of a bucket, jobs are found by their display name."""

from __future__ import annotations

from pathlib import Path

import orjson
from google import genai
from google.genai import types

from plantain.files.redaction import redacted
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.batch.service import NOT_BILLED, BatchJob, JobState
from plantain.models.hosted.faults import Fault, http_fault
from plantain.models.hosted.gemini.batch import HTTP_OF_RPC, PAGE, STATES, failure_of
from plantain.models.hosted.scrub import child, text
from plantain.models.hosted.vertex.storage import CloudStorage
from plantain.models.hosted.vertex.wire import VertexWire
from plantain.records import Outcome, OutcomeKind

LABEL = "plantain"
"""Under this label a request bears our key: answers come in any order, each with its request."""

REQUESTS, ANSWERS = "requests.jsonl", "answers"


class VertexJobs:
    """The jobs of one model; see `BatchService`. A job's files lie in a folder of its own, named by our key."""

    def __init__(self, wire: VertexWire, storage: CloudStorage) -> None:
        self._wire = wire
        self._storage = storage
        self.name = wire.name

    def line(self, key: str, path: str, body: JsonObject) -> bytes:
        return orjson.dumps({"key": key, "request": {**body, "labels": {LABEL: key}}})

    def key_of(self, answer: JsonObject) -> str:
        return text(child(child(answer, "request"), "labels"), LABEL) or text(answer, "key")

    def read(self, answer: JsonObject) -> JsonObject:
        body = answer.get("response")
        if isinstance(body, dict) and body:
            return body
        status = text(answer, "status")
        if not status:
            raise Fault(Outcome(OutcomeKind.MALFORMED, "the answer was empty"), 200)
        raise self._refusal(status)

    async def upload(self, key: str, file: Path) -> str:
        where = f"{self._storage.folder}/{key}/{REQUESTS}"
        await self._storage.put(where, file)
        return where

    async def create(self, key: str, path: str, file_id: str) -> BatchJob:
        answers = f"{file_id.removesuffix(REQUESTS)}{ANSWERS}"
        config = types.CreateBatchJobConfig(display_name=key, dest=answers)
        made = await self._wire.do(
            lambda client: client.aio.batches.create(model=self._wire.model, src=file_id, config=config)
        )
        return BatchJob(made.name or "", JobState.RUNNING)

    async def find(self, key: str) -> BatchJob | None:
        async def search(client: genai.Client) -> types.BatchJob | None:
            pages = await client.aio.batches.list(config=types.ListBatchJobsConfig(page_size=PAGE))
            async for job in pages:
                if job.display_name == key:
                    return job
            return None

        found = await self._wire.do(search)
        return None if found is None else BatchJob(found.name or "", JobState.RUNNING)

    async def look(self, job_id: str) -> BatchJob:
        job = await self._wire.do(lambda client: client.aio.batches.get(name=job_id))
        state = STATES.get(job.state, JobState.RUNNING) if job.state else JobState.RUNNING
        if state is JobState.RUNNING:
            return BatchJob(job_id, state)
        error: JsonObject = job.error.model_dump() if job.error is not None else {}
        failure = failure_of(job_id, error) if state is JobState.FAILED else None
        folder = job.dest.gcs_uri if job.dest else None
        answers = (
            [uri for uri in await self._storage.list(folder) if uri.endswith(".jsonl")] if folder else []
        )
        return BatchJob(job_id, state, tuple(answers), failure=failure)

    async def fetch(self, file_id: str, to: Path) -> None:
        await self._storage.get(file_id, to)

    async def tidy(self, key: str, job: BatchJob) -> None:
        for uri in await self._storage.list(f"{self._storage.folder}/{key}"):
            await self._storage.delete(uri)

    def _refusal(self, line: str) -> Fault:
        """What a line says of a request that was not answered: a sentence, often with the error's body in it."""
        start = line.find("{")
        content = redacted(
            line[start:] if start >= 0 else orjson.dumps({"error": {"message": line}}).decode()
        )
        try:
            error = child(orjson.loads(content), "error")
        except orjson.JSONDecodeError:
            error, content = {}, orjson.dumps({"error": {"message": redacted(line)}}).decode()
        code = error.get("code")
        status = HTTP_OF_RPC.get(code, code if code >= 400 else 500) if isinstance(code, int) else 500
        raw = {"status": status, "body": self._wire.scrub({"text": content})}
        return Fault(http_fault(self.name, status, content, {}), status, raw, NOT_BILLED)
