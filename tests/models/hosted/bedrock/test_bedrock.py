"""Amazon Bedrock with AWS credentials: requests that botocore's own signer would have signed alike."""

from __future__ import annotations

import asyncio
import datetime
import sys
from pathlib import Path

import pytest

from fakes.openai_format import openai_route
from fakes.requests import write_request
from fakes.server import FakeProvider
from plantain.files.redaction import redacted
from plantain.models.registry import close_models
from plantain.models.resolver import resolve_writer
from plantain.records import Outcome
from plantain.roles.options import ProviderOptions

pytest.importorskip("botocore", reason="the extra bedrock is not installed")

from fakes.clouds.aws import Signatures

REGION = "eu-central-1"
SESSION = "FwoGZXIvYXdzEBYaDHexample0123456789abcdef"


@pytest.fixture
def no_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's own account, and no look at a cloud's address for instance roles."""
    for name in ("AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def written(url: str, times: int = 1) -> list[Outcome]:
    """How `times` calls of one writer ended."""

    async def write() -> list[Outcome]:
        options = ProviderOptions(base_url=f"{url}/openai/v1", location=REGION)
        writer = resolve_writer("bedrock/openai.gpt-oss-120b", options)
        try:
            return [(await writer.write(write_request())).outcome for _ in range(times)]
        finally:
            await close_models(writer)

    return asyncio.run(write())


def served(signatures: Signatures) -> FakeProvider:
    server = FakeProvider([signatures, openai_route])
    server.key, signatures.url = "", server.url
    return server


def test_requests_are_signed_as_botocore_signs_them(
    no_account: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-a-test")
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    signatures = Signatures("bedrock-mantle", REGION, secrets={"AKIAEXAMPLE": "a-secret-of-a-test"})
    with served(signatures) as server:
        assert all(outcome.ok for outcome in written(server.url, 2))
        assert signatures.seen == ["AKIAEXAMPLE"] * 2
        assert all(call.signed["x-amz-security-token"] == SESSION for call in server.calls)
        assert SESSION not in redacted(f"a gateway that repeats headers: {SESSION}")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
        (wrong,) = written(server.url)
        assert not wrong.ok and "does not match the signature" in wrong.reason
        assert "secret" not in wrong.reason and len(signatures.seen) == 2


def test_credentials_that_expire_are_renewed(no_account: None, tmp_path: Path) -> None:
    """A program of the account's configuration hands out a new key each time; each holds a minute."""
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=1)
    program = tmp_path / "keys.py"
    program.write_text(
        "import json, pathlib, sys\n"
        "number = pathlib.Path(sys.argv[1])\n"
        "count = int(number.read_text()) + 1\n"
        "number.write_text(str(count))\n"
        "print(json.dumps({'Version': 1, 'AccessKeyId': f'KEY{count}', 'SecretAccessKey': f's{count}', "
        f"'SessionToken': 't', 'Expiration': {ends.isoformat()!r}}}))\n"
    )
    (tmp_path / "number").write_text("0")
    asked = f"{sys.executable} {program} {tmp_path / 'number'}"
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {asked}\n")
    signatures = Signatures("bedrock-mantle", REGION, secrets={f"KEY{n}": f"s{n}" for n in range(1, 9)})
    with served(signatures) as server:
        assert all(outcome.ok for outcome in written(server.url, 3))
    assert len(set(signatures.seen)) == 3


def test_without_credentials_the_call_ends_the_run_and_is_not_billed(no_account: None) -> None:
    with served(Signatures("bedrock-mantle", REGION)) as server:
        (ended,) = written(server.url)
        assert server.calls == []
    assert ended.fatal and ended.unbilled and "could not be signed" in ended.reason
