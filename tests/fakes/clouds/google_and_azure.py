"""Clouds in front of the providers' formats: Google's and Azure's addresses, and tokens that last for a few requests.

Paths are those of the installed SDKs' own clients (google-genai 3.4.0 `_api_client.py`, openai 3.54.0 `lib/azure.py`);
token endpoints are RFC 7523's for a service account (google-auth 2.62) and App Service's for a managed identity
(azure-identity 1.27). A token is counted down by the requests that it signs, so that no test has to wait for its end.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import KEY, Answer, FakeProvider, Request, json_answer

PROJECT, LOCATION, API = "hospital-project", "europe-west4", "2025-04-01-preview"
VERTEX = f"/v1beta1/projects/{PROJECT}/locations/{LOCATION}/publishers/google/models/"


class Tokens:
    """Gives every client that signs in a token, good for `lasts` requests, whatever its stated lifetime.

    Args:
        lasts: requests that a token signs.
        stated_s: the stated lifetime: long, so that only the 401 shows that it is over; short, so that the client
            requests another before each request.
    """

    def __init__(self, lasts: int = 3, stated_s: int = 3_600) -> None:
        self.lasts, self.stated_s = lasts, stated_s
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
                "expires_in": self.stated_s,
                "expires_on": str(4_000_000_000 if self.stated_s > 600 else 1),
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
            message = "The API deployment for this resource does not exist."
            return json_answer({"error": {"code": "DeploymentNotFound", "message": message}}, 404)
        answer = openai_route(replace(request, path=named[2] if named else path.removeprefix("/openai")))
        if answer is None or "/images/" in path:
            return answer
        return replace(
            answer, body=json.dumps({**json.loads(answer.body), "model": deployments[deployment]}).encode()
        )

    return route


def cloud(tokens: Tokens, deployments: dict[str, str] | None = None) -> FakeProvider:
    """Both clouds on one port, which also hand out tokens."""
    return FakeProvider(
        [
            tokens.issue,
            vertex_route(tokens),
            azure_route(tokens, deployments or {}),
            gemini_route,
            openai_route,
        ],
        checks_key=lambda path: not path.startswith(("/token", "/msi/token", "/v1beta1/", "/openai/")),
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
