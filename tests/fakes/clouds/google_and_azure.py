"""Clouds in front of the providers' formats: Google's and Azure's addresses, and tokens that last for a few requests.

Paths are those of the installed SDKs' own clients (google-genai 3.4.0 `_api_client.py`, openai 3.54.0 `lib/azure.py`);
token endpoints are RFC 7523's for a service account (google-auth 2.62) and App Service's for a managed identity
(azure-identity 1.27). A token is counted down by the requests that it signs, so that no test has to wait for its end.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import KEY, Answer, FakeProvider, Request, json_answer

PROJECT, LOCATION, API = "hospital-project", "europe-west4", "2025-04-01-preview"
VERTEX = f"/v1beta1/projects/{PROJECT}/locations/{LOCATION}/publishers/google/models/"


class Tokens:
    """Whoever signs in gets a token; each is good for `lasts` requests, whatever life it was said to have.

    Args:
        lasts: requests that a token signs.
        told_s: the life that is told: long, so that only the 401 says that it is over; short, so that the client asks
            for another before each request.
    """

    def __init__(self, lasts: int = 3, told_s: int = 3_600) -> None:
        self.lasts, self.told_s = lasts, told_s
        self.issued: list[str] = []
        self.used: Counter[str] = Counter()
        self.refused = 0

    def issue(self, request: Request) -> Answer | None:
        """Google's token endpoint, and a managed identity's."""
        if request.path == "/token":
            assert b"grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer" in request.body
        elif not request.path.startswith("/msi/token"):
            return None
        token = f"ya29.fake-token-{len(self.issued):04d}-abcdefghijklmnop"
        self.issued.append(token)
        return json_answer(
            {
                "access_token": token,
                "expires_in": self.told_s,
                "expires_on": str(4_000_000_000 if self.told_s > 600 else 1),
                "resource": "https://cognitiveservices.azure.com",
                "token_type": "Bearer",
            }
        )

    def accepts(self, token: str) -> bool:
        self.used[token] += 1
        good = token in self.issued and self.used[token] <= self.lasts
        self.refused += not good
        return good


def vertex_route(tokens: Tokens) -> Callable[[Request], Answer | None]:
    """Gemini's models at a project's address; other projects and regions are not there."""

    def route(request: Request) -> Answer | None:
        if not request.path.startswith("/v1beta1/projects/"):
            return None
        if not tokens.accepts(request.key):
            return json_answer(
                {
                    "error": {
                        "code": 401,
                        "message": "Request had invalid authentication credentials.",
                        "status": "UNAUTHENTICATED",
                    }
                },
                401,
            )
        if not request.path.startswith(VERTEX):
            return None
        return gemini_route(replace(request, path="/v1beta/models/" + request.path.removeprefix(VERTEX)))

    return route


def azure_route(tokens: Tokens, deployments: dict[str, str]) -> Callable[[Request], Answer | None]:
    """OpenAI's formats as a resource speaks them: deployments in paths, a version in the query, key or token."""

    def route(request: Request) -> Answer | None:
        path, _, query = request.path.partition("?")
        if not path.startswith("/openai/"):
            return None
        if request.key != KEY and not tokens.accepts(request.key):
            return json_answer(
                {
                    "error": {
                        "code": "401",
                        "message": "Unauthorized. Access token is missing, invalid, audience is incorrect "
                        "(https://cognitiveservices.azure.com), or have expired.",
                    }
                },
                401,
            )
        if query != f"api-version={API}":
            return json_answer({"error": {"code": "404", "message": "Resource not found"}}, 404)
        named = re.match(r"/openai/deployments/([^/]+)(/.*)", path)
        deployment = named[1] if named else str(request.fields.get("model"))
        if deployment not in deployments:
            said = "The API deployment for this resource does not exist."
            return json_answer({"error": {"code": "DeploymentNotFound", "message": said}}, 404)
        answer = openai_route(replace(request, path=named[2] if named else path.removeprefix("/openai")))
        if answer is None or "/images/" in path:
            return answer
        return replace(
            answer, body=json.dumps({**json.loads(answer.body), "model": deployments[deployment]}).encode()
        )

    return route


class Bucket:
    """Cloud Storage's JSON interface over one bucket, and Vertex AI's batch jobs over its files.

    Paths and bodies: storage/docs/json_api/v1/objects, and google-genai's `_CreateBatchJobParameters_to_vertex`.
    Answers come in reversed order, without the key of a line, each beside its request, as Google's page on batch has
    them; a request that failed has a sentence in `status`.

    Args:
        tokens: that sign requests.
        fails: the number of the one request, over all jobs, that is not answered; 0 for none.
    """

    NAME = "ward-bucket"
    ROOT = f"/v1beta1/projects/{PROJECT}/locations/{LOCATION}/batchPredictionJobs"

    def __init__(self, tokens: Tokens, fails: int = 0) -> None:
        self.tokens, self.fails = tokens, fails
        self.objects: dict[str, bytes] = {}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.deleted: list[str] = []
        self.lines = 0
        self._lock = threading.Lock()

    def route(self, request: Request) -> Answer | None:
        parts = urlsplit(request.path)
        if not parts.path.startswith(("/storage/", "/upload/storage/", self.ROOT)):
            return None
        if not self.tokens.accepts(request.key):
            return json_answer({"error": {"code": 401, "message": "Invalid Credentials"}}, 401)
        with self._lock:
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            return self._job(request, parts.path) or self._object(request, parts.path, query)

    def _object(self, request: Request, path: str, query: dict[str, str]) -> Answer:
        if path == f"/upload/storage/v1/b/{self.NAME}/o" and query["uploadType"] == "media":
            self.objects[query["name"]] = request.body
            return json_answer({"name": query["name"], "size": str(len(request.body))})
        if path == f"/storage/v1/b/{self.NAME}/o":
            names = [name for name in sorted(self.objects) if name.startswith(query["prefix"])]
            first = int(query.get("pageToken", 0))
            more = {"nextPageToken": str(first + 1)} if len(names) > first + 1 else {}
            return json_answer({"items": [{"name": name} for name in names[first : first + 1]], **more})
        name = unquote(path.rsplit("/", 1)[1])
        if name not in self.objects:
            return json_answer({"error": {"code": 404, "message": f"No such object: {name}"}}, 404)
        if request.method == "DELETE":
            self.deleted.append(name)
            del self.objects[name]
            return Answer(b"", 204)
        return Answer(self.objects[name])

    def _job(self, request: Request, path: str) -> Answer | None:
        if not path.startswith(self.ROOT):
            return None
        if request.method == "POST":
            body = request.fields
            name = f"projects/{PROJECT}/locations/{LOCATION}/batchPredictionJobs/{len(self.jobs) + 1}"
            (source,) = body["inputConfig"]["gcsSource"]["uris"]
            folder = body["outputConfig"]["gcsDestination"]["outputUriPrefix"]
            assert (
                body["inputConfig"]["instancesFormat"] == body["outputConfig"]["predictionsFormat"] == "jsonl"
            )
            self._answer(body["model"], source, folder)
            self.jobs[name] = {**body, "name": name, "state": "JOB_STATE_RUNNING"}
            return json_answer(self.jobs[name])
        if path == self.ROOT:
            return json_answer({"batchPredictionJobs": list(self.jobs.values())})
        name = path.removeprefix("/v1beta1/")
        told = dict(self.jobs[name])
        self.jobs[name]["state"] = "JOB_STATE_SUCCEEDED"
        return json_answer(told)

    def _answer(self, model: str, source: str, folder: str) -> None:
        lines = []
        for line in self.objects[source.removeprefix(f"gs://{self.NAME}/")].splitlines():
            self.lines += 1
            asked = json.loads(line)["request"]
            path = f"/v1beta/models/{model.rsplit('/', 1)[1]}:generateContent"
            answer = gemini_route(Request("POST", path, asked, {}, b"", KEY, 0.0))
            assert answer is not None
            failed = self.lines == self.fails
            error = 'Bad Request: {"error": {"code": 503, "message": "try later", "status": "UNAVAILABLE"}}'
            lines.append(
                json.dumps(
                    {
                        "status": error if failed else "",
                        "processed_time": "2026-11-22T10:00:00Z",
                        "request": asked,
                        "response": {} if failed else json.loads(answer.body),
                    }
                ).encode()
            )
        where = f"{folder.removeprefix(f'gs://{self.NAME}/')}/prediction-model-2026-11-22T10:00:00Z"
        self.objects[f"{where}/predictions.jsonl"] = b"\n".join(reversed(lines)) + b"\n"


def cloud(
    tokens: Tokens, deployments: dict[str, str] | None = None, bucket: Bucket | None = None
) -> FakeProvider:
    """Both clouds on one port, which also hand out tokens."""
    return FakeProvider(
        [
            tokens.issue,
            *([bucket.route] if bucket else []),
            vertex_route(tokens),
            azure_route(tokens, deployments or {}),
            gemini_route,
            openai_route,
        ],
        checks_key=lambda path: (
            not path.startswith(("/token", "/msi/token", "/v1beta1/", "/openai/", "/storage/", "/upload/"))
        ),
    )


def sign_in(monkeypatch: pytest.MonkeyPatch, folder: Path, url: str) -> None:
    """A service account's file and a managed identity, both of whose tokens come from this server."""
    for name in ("AZURE_OPENAI_API_KEY", "GOOGLE_API_KEY", "AZURE_CLIENT_ID", "AZURE_TENANT_ID"):
        monkeypatch.delenv(name, raising=False)
    account = {
        "type": "service_account",
        "project_id": "another-project",
        "private_key_id": "1",
        "private_key": _private_key(),
        "client_email": "builder@another-project.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"{url}/token",
    }
    file = folder / "service-account.json"
    file.write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{url}/msi/token")
    monkeypatch.setenv("IDENTITY_HEADER", "a-word-of-the-machine")


@cache
def _private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
