"""A judge that looks at the two images alone before it judges: its first turn is a memoised call of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace

from plantain.calls import CallSpec, TaskCalls
from plantain.journal import CallResult
from plantain.records import OK, Outcome, Step
from plantain.roles import Judge, JudgeRequest, LooksFirst, Reply, fingerprint_of


async def look_first(
    calls: TaskCalls,
    judge: Judge,
    request: JudgeRequest,
    *,
    round: int,
    draw: int,
    identity: Mapping[str, object],
    unanswered: Callable[[Outcome, CallResult], CallResult] = lambda _, draft: draft,
) -> tuple[JudgeRequest, Outcome]:
    """Return the request with the judge's description of the two images; unchanged for a judge without a first turn.

    The first turn is a memoised call of its own: a process killed between the two turns buys neither again.
    """
    if not isinstance(judge, LooksFirst) or not judge.looks_first:
        return request, OK
    looking = request.images_alone
    asked = {
        **identity,
        "fingerprint": fingerprint_of(judge, request.rubric),
        "seed": looking.seed,
        "edited_first": looking.edited_first,
    }

    async def send() -> Reply[str]:
        return await judge.look(looking)

    async def settle(reply: Reply[str], draft: CallResult) -> CallResult:
        if reply.value is None:
            return unanswered(reply.outcome, draft)
        return replace(draft, answer=reply.value)

    answer = await calls.answer(CallSpec(Step.LOOK, round, draw, judge.name, asked, send, settle))
    return (replace(request, seen=answer.text) if answer.outcome.ok else request), answer.outcome


def seen_in(request: JudgeRequest) -> dict[str, object]:
    """Return the part of the second turn's identity that depends on the first; empty without one."""
    return {"seen": hashlib.sha256(request.seen.encode()).hexdigest()} if request.seen else {}
