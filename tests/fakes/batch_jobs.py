"""Batch jobs as both providers keep them: files, jobs that end after some looks, answers by the online routes.

A job's fate is its next entry in `FakeJobs.fates` ("done" when there is none); faults of the wire come from the
server's own `script` and `spoil`, which see these requests like any other. The answers of "junk lines" are in another
order, too.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fakes.server import KEY, SESSION, Answer, Request, Route, json_answer


@dataclass
class FakeJob:
    """One job; `lines` are the requests as they were uploaded."""

    id: str
    key: str
    form: str
    model: str
    request_file: str
    lines: list[dict[str, Any]]
    fate: str
    answers: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    looks: int = 0

    def key_of(self, line: dict[str, Any]) -> str:
        return str(line["key" if self.form == "gemini" else "custom_id"])

    def body_of(self, line: dict[str, Any]) -> dict[str, Any]:
        body: dict[str, Any] = line["request" if self.form == "gemini" else "body"]
        return body


class FakeJobs:
    """The jobs of one server.

    Args:
        online: answers a request of a job as it would be answered online.
        looks: how often a job is looked at before it has ended.
    """

    def __init__(self, online: Route, looks: int = 1) -> None:
        self.online = online
        self.looks = looks
        self.fates: list[str] = []
        self.files: dict[str, bytes] = {}
        self.jobs: dict[str, FakeJob] = {}
        self.names: dict[str, str] = {}
        """Display names of uploaded files."""
        self.deleted: list[str] = []
        self.asked: Counter[str] = Counter()
        """How often each request's body was in a job."""
        self.listed = 1
        """How often a list of jobs names each."""
        self.on_create: Callable[[FakeJob], None] | None = None
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer | None:
        with self._lock:
            path = request.path.partition("?")[0]
            return self._gemini(request, path) or self._openai(request, path)

    @property
    def keys(self) -> Counter[str]:
        """How often a job was made under each of the client's keys."""
        return Counter(job.key for job in self.jobs.values())

    # --- gemini -------------------------------------------------------------------------------------

    def _gemini(self, request: Request, path: str) -> Answer | None:
        if path == "/upload/v1beta/files":
            session = f"s{len(self._sizes)}"
            file = request.fields["file"]
            self._sizes[session] = int(file.get("sizeBytes") or file["size_bytes"])
            self.names[f"files/{session}"] = file.get("displayName") or file["display_name"]
            return json_answer({}, X_Goog_Upload_URL=f"https://upload.example{SESSION}{session}")
        if path.startswith(SESSION):
            session = path.removeprefix(SESSION)
            name = f"files/{session}"
            self.files[name] = self.files.get(name, b"") + request.body
            if len(self.files[name]) < self._sizes[session]:
                return json_answer({}, X_Goog_Upload_Status="active")
            return json_answer({"file": {"name": name}}, X_Goog_Upload_Status="final")
        if path == "/v1beta/files" and request.method == "GET":
            kept = [
                {"name": name, "displayName": text} for name, text in self.names.items() if name in self.files
            ]
            return json_answer({"files": kept})
        if path.endswith(":batchGenerateContent"):
            batch = request.fields["batch"]
            source = batch.get("inputConfig", {}).get("fileName") or batch["input_config"]["file_name"]
            model = path.rsplit("/", 1)[1].partition(":")[0]
            job = self._create("gemini", batch["displayName"], model, source)
            return json_answer(self._gemini_job(job))
        if path == "/v1beta/batches":
            jobs = [self._gemini_job(job) for job in self.jobs.values() if job.form == "gemini"] * self.listed
            return json_answer({"operations": jobs})
        if path.startswith("/v1beta/batches/"):
            return self._seen(path.removeprefix("/v1beta/"), self._gemini_job)
        if path.startswith("/v1beta/files/") and request.method == "DELETE":
            return self._delete(path.removeprefix("/v1beta/"))
        if path.endswith(":download"):
            name = path.removeprefix("/v1beta/").removesuffix(":download")
            return (
                Answer(self.files[name]) if name in self.files else json_answer({"error": {"code": 404}}, 404)
            )
        return None

    def _gemini_job(self, job: FakeJob) -> dict[str, Any]:
        ended = {"expired": "EXPIRED", "cancelled": "CANCELLED", "failed": "FAILED"}.get(
            job.fate, "SUCCEEDED"
        )
        state = ended if self._ended(job) else "RUNNING"
        metadata: dict[str, Any] = {"state": f"BATCH_STATE_{state}", "displayName": job.key}
        if self._ended(job) and job.answers:
            metadata["output"] = {"responsesFile": f"{job.id.replace('batches', 'files')}-out"}
        answer = {"name": job.id, "done": self._ended(job), "metadata": metadata}
        if ended == "FAILED" and self._ended(job):
            answer["error"] = {"code": 3, "message": "The request file has an invalid line."}
        return answer

    # --- openai -------------------------------------------------------------------------------------

    def _openai(self, request: Request, path: str) -> Answer | None:
        if path == "/v1/files" and request.method == "POST":
            name = f"file-{len(self._sizes)}"
            self._sizes[name] = len(request.files["file"])
            self.files[name] = request.files["file"]
            return json_answer(
                {"id": name, "object": "file", "purpose": "batch", "bytes": 1, "created_at": 1}
            )
        if path.startswith("/v1/files/") and path.endswith("/content"):
            name = path.split("/")[3]
            return Answer(self.files[name]) if name in self.files else json_answer({"error": {}}, 404)
        if path.startswith("/v1/files/") and request.method == "DELETE":
            return self._delete(path.split("/")[3])
        if path == "/v1/batches" and request.method == "POST":
            fields = request.fields
            key = fields["metadata"]["plantain"]
            job = self._create("openai", key, fields["endpoint"], fields["input_file_id"])
            return json_answer(self._openai_job(job))
        if path == "/v1/batches":
            jobs = [self._openai_job(job) for job in self.jobs.values() if job.form == "openai"] * self.listed
            return json_answer({"object": "list", "data": jobs, "has_more": False})
        if path.startswith("/v1/batches/"):
            return self._seen(path.removeprefix("/v1/batches/"), self._openai_job)
        return None

    def _openai_job(self, job: FakeJob) -> dict[str, Any]:
        ended = job.fate if job.fate in ("expired", "cancelled") else "completed"
        failed = job.fate == "failed"
        out: dict[str, Any] = {
            "id": job.id,
            "object": "batch",
            "completion_window": "24h",
            "created_at": 1,
            "endpoint": job.model,
            "input_file_id": job.request_file,
            "metadata": {"plantain": job.key},
            "status": ("failed" if failed else ended) if self._ended(job) else "in_progress",
        }
        if self._ended(job) and failed:
            out["errors"] = {"object": "list", "data": [{"code": "invalid_json_line", "message": "no"}]}
        elif self._ended(job):
            stem = job.id
            out["output_file_id"] = f"{stem}-out" if job.answers else None
            out["error_file_id"] = f"{stem}-err" if job.errors else None
        return out

    # --- both ---------------------------------------------------------------------------------------

    def _create(self, form: str, key: str, model: str, source: str) -> FakeJob:
        lines = [json.loads(line) for line in self.files[source].splitlines()]
        number = len(self.jobs)
        name = f"batches/b{number}" if form == "gemini" else f"b{number}"
        job = FakeJob(name, key, form, model, source, lines, self.fates.pop(0) if self.fates else "done")
        for line in lines:
            self.asked[json.dumps(job.body_of(line), sort_keys=True)] += 1
        self._answer(job)
        self.jobs[name] = job
        stem = job.id.replace("batches", "files") if form == "gemini" else job.id
        self.files[f"{stem}-out"] = b"".join(line + b"\n" for line in job.answers)
        self.files[f"{stem}-err"] = b"".join(line + b"\n" for line in job.errors)
        if self.on_create is not None:
            self.on_create(job)
        return job

    def _answer(self, job: FakeJob) -> None:
        """Writes the answer files as the job's fate has them."""
        if job.fate == "failed":
            return
        for number, line in enumerate(job.lines):
            if job.fate in ("expired", "cancelled") and number >= len(job.lines) // 2:
                if job.form == "openai":
                    error = {"code": f"batch_{job.fate}", "message": "too late"}
                    job.errors.append(self._line(job, line, None, error))
            elif job.fate == "missing" and number % 3 == 0:
                continue
            elif job.fate == "line errors" and number % 3 == 0:
                error = {"code": 13 if job.form == "gemini" else "server_error", "message": "oops"}
                (job.answers if job.form == "gemini" else job.errors).append(
                    self._line(job, line, None, error)
                )
            else:
                job.answers.append(self._line(job, line, self._online(job, line), None))
        if job.fate == "junk lines":
            job.answers.reverse()
            job.answers[1:1] = [b'{"key": "cut', b"", b"[1]", b'{"key": "unknown"}', job.answers[0]]
        if job.fate == "answered twice":  # with the same answer, with another's, and for a stranger's request
            first, last = (job.key_of(job.lines[place]).encode() for place in (0, -1))
            again, other = job.answers[0], job.answers[-1].replace(last, first)
            job.answers += [again, other, again.replace(first, b"stranger")]

    def _online(self, job: FakeJob, line: dict[str, Any]) -> dict[str, Any]:
        path = f"/v1beta/models/{job.model}:generateContent" if job.form == "gemini" else line["url"]
        answer = self.online(Request("POST", path, job.body_of(line), {}, b"", KEY, 0.0))
        assert answer is not None
        body: dict[str, Any] = json.loads(answer.body)
        return body

    def _line(
        self, job: FakeJob, line: dict[str, Any], body: dict[str, Any] | None, error: dict[str, Any] | None
    ) -> bytes:
        key = job.key_of(line)
        if job.form == "gemini":
            answer = {"key": key, "error": error} if error else {"key": key, "response": body}
        elif error and error["code"] == "server_error":
            answer = {
                "custom_id": key,
                "response": {"status_code": 500, "body": {"error": error}},
                "error": None,
            }
        elif error:
            answer = {"custom_id": key, "response": None, "error": error}
        else:
            answer = {
                "custom_id": key,
                "response": {"status_code": 200, "request_id": f"req_{key}", "body": body},
                "error": None,
            }
        return json.dumps(answer).encode()

    def _ended(self, job: FakeJob) -> bool:
        return job.looks > self.looks

    def _seen(self, name: str, describe: Callable[[FakeJob], dict[str, Any]]) -> Answer:
        job = self.jobs.get(name)
        if job is None or (job.fate == "lost" and job.looks >= 1):
            return json_answer({"error": {"code": 404, "message": "no such job", "status": "NOT_FOUND"}}, 404)
        job.looks += 1
        return json_answer(describe(job))

    def _delete(self, name: str) -> Answer:
        self.deleted.append(name)
        self.files.pop(name, None)
        return json_answer({})
