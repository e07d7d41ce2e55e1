"""The call of `plantain models --probe`: journalled and within the budget, like any other."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from plantain.calls import CallSpec
from plantain.journal import CallResult
from plantain.models.hosted.faults import Fault
from plantain.models.registry import provider
from plantain.records import Direction, EditTask, InputError, Outcome, OutcomeKind, Step, TaskKind, TaskState
from plantain.roles import Reply
from plantain.runs.setup import NewRun, RunSetup
from plantain.runs.terms import Terms


async def probe(terms: Terms, name: str, run: Path) -> tuple[bool, str]:
    """Return whether a model answers, and its answer; never replayed from the journal.

    Raises:
        InputError: only hosted models can be probed.
    """
    ask = getattr(provider(terms.kind(name)), "probe", None)
    if "/" not in name or ask is None:
        raise InputError(f"--probe {name!r}: only hosted models can be probed, e.g. gemini/gemini-3.8-flash")
    setup = RunSetup(replace(terms, models=() if name.endswith("/") else (name,)))
    setup.check()
    answers: list[tuple[bool, str]] = []
    refused: list[InputError] = []

    async def reply() -> Reply[str]:
        try:
            done, answer = await ask(name, setup.options(name))
        except (InputError, Fault) as error:
            done, answer = False, str(error)
            refused.extend([error] if isinstance(error, InputError) else [])
        answers.append((done, answer))
        return Reply(answer) if done else Reply(None, Outcome(OutcomeKind.MALFORMED, answer))

    async def settle(answered: Reply[str], draft: CallResult) -> CallResult:
        return replace(draft, answer=answered.value or "")

    async with setup.open(run, NewRun("probes", 0, {"kind": "probes"})) as opened:

        async def carry(name: str) -> None:
            task = EditTask(os.urandom(10).hex(), "none", "none", "probe", Direction.CHANGE, TaskKind.BENCH)
            await opened.journal.add_tasks([task])
            spec = CallSpec(Step.WRITE, 1, 0, name, {"probe": task.id}, reply, settle, alone=True)
            answer = await opened.calls(task.id, 1).answer(spec)
            state = TaskState.SUCCESS if answer.outcome.ok else TaskState.FAILED
            await opened.close_task(task.id, state, 1, answer.outcome.reason)

        await opened.walk([name], carry)
    if refused:
        raise refused[0]
    return answers[0] if answers else (False, opened.summary.stopped or "was not asked")
