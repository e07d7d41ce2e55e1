"""Ask a judge or a panel within a run: each member's answer is a call of its own, memoised and paid once.

The joint report is computed from them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from plantain.audit.jury import Jury
from plantain.calls import CallSpec, TaskCalls
from plantain.journal import CallResult, StoredVerdict
from plantain.journal.rows import from_json, to_json
from plantain.privacy.permission import sha256_of
from plantain.records import OK, Observations, Outcome, OutcomeKind, Step
from plantain.roles import Judge, JudgeRequest, Reply, fingerprint_of
from plantain.rubrics import identity_of
from plantain.runs.looking import look_first, seen_in


async def ask(
    jury: Jury,
    calls: TaskCalls,
    request: JudgeRequest,
    *,
    round: int,
    draw: int,
    verdicts: Callable[[Observations], tuple[StoredVerdict, ...]] | None = None,
) -> tuple[Observations | None, Outcome]:
    """Return the jury's observations, new or recorded; or None and the outcome of the first failed call.

    Args:
        jury: to ask.
        calls: of the task to which the edit belongs.
        request: the edit.
        round, draw: key of the first member's call; the other members take the draws after it.
        verdicts: returns the verdicts on the joint report, stored in the transaction of the last answer.
    """
    known: dict[str, object] = {
        "original": await asyncio.to_thread(lambda: sha256_of(request.original.data)),
        "edited": await asyncio.to_thread(lambda: sha256_of(request.edited.data)),
    }
    reports: list[Observations] = []

    async def settle(reply: Reply[Observations], draft: CallResult) -> CallResult:
        if reply.value is None:
            return draft
        last = len(reports) == len(jury.members) - 1
        stored = (
            verdicts(jury.together([*reports, reply.value], request.direction)) if verdicts and last else ()
        )
        return replace(draft, answer=to_json(reply.value), verdicts=stored)

    for number, judge in enumerate(jury.members):
        seen_request, looked = await look_first(
            calls, judge, request, round=round, draw=draw + number, identity=known
        )
        if not looked.ok:
            return None, looked
        spec = CallSpec(
            Step.JUDGE,
            round,
            draw + number,
            judge.name,
            _identity(judge, seen_request, known),
            partial(judge.judge, seen_request),
            settle,
        )
        answer = await calls.answer(spec)
        if not answer.outcome.ok:
            return None, answer.outcome
        reports.append(from_json(Observations, answer.text))
    return jury.together(reports, request.direction), OK


def _identity(judge: Judge, request: JudgeRequest, known: Mapping[str, object]) -> dict[str, object]:
    """Return all inputs of the answer; the call's memo compares their hash."""
    return {
        "fingerprint": fingerprint_of(judge, request.rubric),
        "seed": request.seed,
        **known,
        "instruction": request.instruction,
        "finding": request.finding.name if request.finding else "",
        "direction": request.direction.value,
        "rubric": identity_of(request.rubric),
        **seen_in(request),
    }


def describe_ending(outcome: Outcome) -> str:
    """Describe how a call without an answer ended."""
    kind = outcome.kind.value.replace("_", " ")
    return f"{kind}: {outcome.reason}" if outcome.reason and outcome.kind is not OutcomeKind.OK else kind
