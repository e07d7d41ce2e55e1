"""Google's application default credentials: found once, renewed when their token has aged."""

from __future__ import annotations

import google.auth
import requests
from google.auth import credentials, exceptions
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import Request

from plantain.files.redaction import hide, redacted
from plantain.files.secrets import MissingKey
from plantain.models.hosted.faults import Fault
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind
from plantain.roles.options import ProviderOptions

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


class RenewedCredentials(credentials.Credentials):
    """Credentials as google-auth found them; their tokens come by the proxy and the authorities of the recipe.

    The SDK asks them for a new token when the last one is about to expire, whatever was under way.
    """

    def __init__(self, found: credentials.Credentials, session: requests.Session) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # google-auth has few types
        self._found = found
        self._request = Request(session)
        self._quota_project_id = found.quota_project_id

    def refresh(self, request: object) -> None:
        """A new token. Raises Fault: an interruption passes, a refusal does not."""
        try:
            self._found.refresh(self._request)  # type: ignore[no-untyped-call]
        except exceptions.GoogleAuthError as error:
            passing = isinstance(error, exceptions.TransportError) or error.retryable
            reason = f"no token from Google: {one_line(redacted(str(error)))}"
            raise Fault(Outcome(OutcomeKind.TRANSPORT, reason, fatal=not passing, unbilled=True)) from None
        self.token, self.expiry = self._found.token, self._found.expiry
        hide(self.token or "")

    def forget(self, token: str | None) -> None:
        if self.token == token:
            self.token = None


def default_credentials(options: ProviderOptions) -> RenewedCredentials:
    """What `GOOGLE_APPLICATION_CREDENTIALS`, gcloud's own login or the machine's service account offers.

    Raises:
        MissingKey: none of these is there.
    """
    session = requests.Session()
    session.max_redirects = 0  # what is signed for Google's address goes nowhere else
    if options.proxy:
        session.proxies = {"http": options.proxy, "https": options.proxy}
    if options.ca_bundle is not None:
        session.verify = str(options.ca_bundle)
    try:
        found, _ = google.auth.default(scopes=SCOPES, request=Request(session))
    except exceptions.DefaultCredentialsError as error:
        reason = one_line(redacted(str(error)))
        raise MissingKey(
            f"vertex: no application default credentials; run `gcloud auth application-default login`, or name a file "
            f"in GOOGLE_APPLICATION_CREDENTIALS ({reason})"
        ) from None
    return RenewedCredentials(found, session)


def no_credentials() -> RenewedCredentials:
    """Of a model that is looked at and never called."""
    return RenewedCredentials(AnonymousCredentials(), requests.Session())  # type: ignore[no-untyped-call]
