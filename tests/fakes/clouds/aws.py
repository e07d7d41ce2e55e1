"""An AWS service that checks signatures: what it expects is computed by botocore's own signer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from fakes.server import Answer, Request, json_answer


@dataclass
class Signatures:
    """Asked before the routes: refuses what is not signed for this service and region by a key that holds now.

    Attributes:
        service, region: for which requests have to be signed.
        url: of the server, which a signature covers through the header `host`.
        secrets: of the access keys that hold.
        seen: access keys of the requests that were let through.
    """

    service: str
    region: str
    url: str = ""
    secrets: dict[str, str] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> Answer | None:
        said = request.signed.get("authorization", "")
        scope = said.partition("Credential=")[2].partition(",")[0].split("/")
        if scope[2:] != [self.region, self.service, "aws4_request"] or scope[0] not in self.secrets:
            return _refused(f"Credential should be scoped to {self.region}/{self.service}")
        covered = {name: value for name, value in request.signed.items() if name != "authorization"}
        digest = hashlib.sha256(request.body).hexdigest()
        if covered.get("x-amz-content-sha256") != digest or not {"host", "x-amz-date"} <= covered.keys():
            return _refused("The body is not the one that was signed.")
        again = AWSRequest(request.method, self.url + request.path, covered, request.body)
        again.context["timestamp"] = covered["x-amz-date"]
        signer = SigV4Auth(Credentials(scope[0], self.secrets[scope[0]]), self.service, self.region)
        expected = signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)
        if said.rpartition("Signature=")[2] != expected:
            return _refused("The request signature we calculated does not match the signature you provided.")
        self.seen.append(scope[0])
        return None


def _refused(why: str) -> Answer:
    return json_answer({"message": why, "code": "InvalidSignatureException"}, 403)
