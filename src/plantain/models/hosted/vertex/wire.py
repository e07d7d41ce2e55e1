"""The connection to Gemini models of a Google Cloud project, with application default credentials."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC
from urllib.parse import quote

import google.auth
import requests
from google.auth import exceptions
from google.auth.transport.requests import Request

from plantain.files.secrets import MissingKey, Secret, redacted
from plantain.models.hosted.connection import Tokens
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.gemini.models import GeminiWire
from plantain.models.hosted.vertex.provider import Settings
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
GLOBAL = "global"
JURISDICTIONS = frozenset({"us", "eu"})
"""Locations of several regions, which have addresses of another form."""


def address_of(location: str) -> str:
    """Return the base URL of a location: a region, a jurisdiction ("eu"), or "global"."""
    if location == GLOBAL:
        return "https://aiplatform.googleapis.com"
    if location in JURISDICTIONS:
        return f"https://aiplatform.{location}.rep.googleapis.com"
    return f"https://{location}-aiplatform.googleapis.com"


class VertexWire(GeminiWire):
    """The connection to one Gemini model on Vertex, with the Google credentials of machine or user.

    Raises:
        MissingKey: there are no credentials, and `options.context.key_later` is not set.
    """

    version = "v1beta1"

    def __init__(self, name: str, options: Settings) -> None:
        location = options.location or GLOBAL
        super().__init__(name, Secret(""), options, address_of(location))
        place = f"/projects/{options.project}/locations/{location}/publishers/google"
        self.model_path = f"{place}/models/{quote(self.model)}"
        self.tokens: Tokens = Tokens(_no_token if options.context.key_later else _fetcher(options))

    async def sign(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {await self.tokens()}"}


def _no_token() -> tuple[str, float]:
    raise MissingKey("vertex: credentials were not loaded")


def _fetcher(options: Settings) -> Callable[[], tuple[str, float]]:
    """Find application default credentials; return a function that fetches their tokens.

    These are GOOGLE_APPLICATION_CREDENTIALS, gcloud's own login, or the machine's service account. Tokens are fetched
    with the authorities of the recipe.
    """
    session = requests.Session()
    session.max_redirects = 0  # signed requests are sent to Google's address only
    if options.ca_bundle is not None:
        session.verify = str(options.ca_bundle)
    request = Request(session)
    try:
        found, _ = google.auth.default(scopes=SCOPES, request=request)
    except exceptions.DefaultCredentialsError as error:
        raise MissingKey(
            "vertex: no application default credentials; run `gcloud auth application-default login`, or name a file "
            f"in GOOGLE_APPLICATION_CREDENTIALS ({one_line(redacted(str(error)))})"
        ) from None

    def fetch() -> tuple[str, float]:
        try:
            found.refresh(request)  # type: ignore[no-untyped-call]  # google-auth has few types
        except exceptions.GoogleAuthError as error:
            passing = isinstance(error, exceptions.TransportError) or error.retryable
            reason = f"no token from Google: {one_line(redacted(str(error)))}"
            raise Fault(Outcome(OutcomeKind.TRANSPORT, reason, fatal=not passing, unbilled=True)) from None
        ends = found.expiry.replace(tzinfo=UTC).timestamp() if found.expiry else time.time() + 3_600.0
        return str(found.token), ends

    return fetch
