"""The connection to Amazon Bedrock: a bearer token, or requests signed with AWS credentials."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import httpx2
import openai

from plantain.files.redaction import redacted
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.openai.wire import OpenAIWire, without_environment
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind

T = TypeVar("T")


class BedrockWire(OpenAIWire):
    """Sends requests for one model of one region. The SDK signs each request anew, so that credentials may rotate."""

    async def _sent(self, request: Awaitable[T], timeout_s: float | None = None) -> T:
        try:
            return await super()._sent(request, timeout_s)
        except openai.OpenAIError as error:  # what the SDK says where it cannot sign
            reason = f"the request could not be signed: {one_line(redacted(str(error)))}"
            raise Fault(Outcome(OutcomeKind.TRANSPORT, reason, fatal=True, unbilled=True)) from None

    def _new_client(self, timeout: httpx2.Timeout, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        client = openai.AsyncBedrockOpenAI(
            api_key=self.key.reveal() or None,
            aws_region=self._options.location,
            base_url=self.address,
            max_retries=0,
            timeout=timeout,
            http_client=http,
        )
        return without_environment(client)
