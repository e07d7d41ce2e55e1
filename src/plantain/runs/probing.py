"""One cheap call to a model, through the door like any other: journalled, within the budget, once."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from plantain.calls import CallSpec
from plantain.journal import CallResult
from plantain.models.registry import provider
from plantain.records import Direction, EditTask, InputError, Outcome, OutcomeKind, Step, TaskKind, TaskState
from plantain.roles import Reply
from plantain.runs.door import Door
from plantain.runs.opening import Beginning
from plantain.runs.settings.terms import Terms
from plantain.runs.summary import RunSummary


async def probe(terms: Terms, run: Path) -> tuple[bool, str, RunSummary]:
    """Whether the model of the terms answers, and what it said. Each probe asks anew: it is asked what is true now.

    Args:
        terms: whose one model is asked.
        run: folder of the journal that counts probes.

    Raises:
        InputError: only hosted models can be probed.
    """
    name = terms.models[0]
    provider_name, _, model = name.partition("/")
    look = getattr(provider(provider_name), "probe", None)
    if not model or look is None:
        raise InputError(f"--probe {name!r}: only hosted models can be probed, e.g. gemini/gemini-3.8-flash")
    door = Door(terms)
    door.check()
    options = door.options(name)
    said: list[tuple[bool, str]] = []
    trouble: list[InputError] = []

    async def send() -> Reply[str]:
        try:
            done, words = await look(name, options)
        except InputError as error:
            trouble.append(error)
            return Reply(None, Outcome(OutcomeKind.MALFORMED, str(error)))
        said.append((done, words))
        return Reply(words) if done else Reply(None, Outcome(OutcomeKind.MALFORMED, words))

    async def settle(reply: Reply[str], draft: CallResult) -> CallResult:
        return replace(draft, answer=reply.value or "")

    task = EditTask(os.urandom(10).hex(), "none", "none", "probe", Direction.CHANGE, TaskKind.BENCH)
    async with door.open(run, Beginning("probes", 0, {"kind": "probes"})) as opened:

        async def carry(one: EditTask) -> None:
            await opened.journal.add_tasks([one])
            spec = CallSpec(Step.WRITE, 1, 0, name, {"probe": one.id}, send, settle, alone=True)
            answer = await opened.calls(one.id, 1).answer(spec)
            state = TaskState.SUCCESS if answer.outcome.ok else TaskState.FAILED
            await opened.close_task(one.id, state, 1, answer.outcome.reason)

        await opened.walk([task], carry)
    if trouble:
        raise trouble[0]
    done, words = said[-1] if said else (False, opened.summary.stopped or "was not asked")
    return done, words, opened.summary
