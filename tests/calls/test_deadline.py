from __future__ import annotations

import asyncio
from typing import cast

import pytest

from plantain.calls import ModelClient
from plantain.calls.admission import Admission
from plantain.calls.client import CallSpec
from plantain.journal import CallResult, Journal
from plantain.records import OutcomeKind, Step
from plantain.roles import Reply


@pytest.mark.parametrize(
    ("model", "kind"), [("hosted/m", OutcomeKind.TRANSPORT), ("diffusers/m", OutcomeKind.OK)]
)
def test_deadline_holds_for_models_that_do_not_wait_for_their_turn(model: str, kind: OutcomeKind) -> None:
    async def send() -> Reply[str]:
        await asyncio.sleep(0.05)
        return Reply("done")

    async def settle(reply: Reply[str], draft: CallResult) -> CallResult:
        return draft

    client = ModelClient(cast(Journal, None), cast(Admission, None), deadline_s=0.01, queued={"diffusers/m"})
    reply = asyncio.run(client.send(CallSpec(Step.EDIT, 1, 0, model, {}, send, settle)))
    assert reply.outcome.kind is kind
