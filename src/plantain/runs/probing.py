"""What `plantain models --probe` asks of providers, as calls like any other: journalled, within the budget."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from plantain.calls import CallSpec
from plantain.journal import CallResult
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.openai import compatible
from plantain.models.registry import provider
from plantain.records import Direction, EditTask, InputError, Outcome, OutcomeKind, Step, TaskKind, TaskState
from plantain.roles import Reply
from plantain.runs.door import Beginning, Door
from plantain.runs.settings.terms import Terms

if TYPE_CHECKING:
    from plantain.models.hosted.openai.survey import ProbedAddress

Question = Callable[[Any], Awaitable[tuple[bool, str]]]
"""Asks a provider with its settings: whether it answered, and what it said. Raises InputError or Fault."""


async def probe(terms: Terms, run: Path) -> tuple[bool, str]:
    """Return whether the first model of the terms answers, and what it said.

    Args:
        terms: whose model is asked.
        run: folder of the journal that counts probes.

    Raises:
        InputError: only hosted models can be probed.
    """
    name = terms.models[0]
    ask = getattr(provider(terms.kind(name)), "probe", None)
    if not name.partition("/")[2] or ask is None:
        raise InputError(f"--probe {name!r}: only hosted models can be probed, e.g. gemini/gemini-3.8-flash")
    return (await _asked(terms, run, {name: lambda options: ask(name, options)}))[name]


async def look_at(terms: Terms, sections: Iterable[str], run: Path) -> list[tuple[str, ProbedAddress]]:
    """Return what is at each address of sections of an `openai-compatible` kind; a recipe's model of each is called.

    Args:
        terms: the sections, and the models of the recipe.
        sections: their names.
        run: folder of the journal that counts probes.

    Raises:
        InputError: a section cannot be followed.
    """

    def looking(name: str) -> Question:
        async def ask(options: Any) -> tuple[bool, str]:
            return True, orjson.dumps(await compatible.look(name, options)).decode()

        return ask

    served = {model.partition("/")[0]: model for model in terms.models}
    names = [served.get(section, f"{section}/") for section in sections]
    answers = await _asked(replace(terms, models=()), run, {name: looking(name) for name in names})
    from plantain.models.hosted.openai.survey import ProbedAddress

    found: list[tuple[str, ProbedAddress]] = []
    for name, (done, answer) in answers.items():
        section, url = name.partition("/")[0], terms.options(name).get("base_url")
        rows = [ProbedAddress(**row) for row in orjson.loads(answer)] if done else []
        found += [(section, row) for row in rows or [ProbedAddress(url, False, answer=answer)]]
    return found


async def _asked(terms: Terms, run: Path, questions: Mapping[str, Question]) -> dict[str, tuple[bool, str]]:
    """Return every question's answer by the name of its model; each is asked anew, since the state now is asked for."""
    door = Door(terms)
    door.check()
    answers: dict[str, tuple[bool, str]] = {}
    refused: list[InputError] = []

    async def reply(name: str) -> Reply[str]:
        try:
            done, answer = await questions[name](door.options(name))
        except (InputError, Fault) as error:
            done, answer = False, str(error)
            refused.extend([error] if isinstance(error, InputError) else [])
        answers[name] = done, answer
        return Reply(answer) if done else Reply(None, Outcome(OutcomeKind.MALFORMED, answer))

    async def settle(answered: Reply[str], draft: CallResult) -> CallResult:
        return replace(draft, answer=answered.value or "")

    async with door.open(run, Beginning("probes", 0, {"kind": "probes"})) as opened:

        async def carry(name: str) -> None:
            task = EditTask(os.urandom(10).hex(), "none", "none", "probe", Direction.CHANGE, TaskKind.BENCH)
            await opened.journal.add_tasks([task])
            asked: dict[str, object] = {"probe": task.id}
            spec = CallSpec(Step.WRITE, 1, 0, name, asked, lambda: reply(name), settle, alone=True)
            answer = await opened.calls(task.id, 1).answer(spec)
            state = TaskState.SUCCESS if answer.outcome.ok else TaskState.FAILED
            await opened.close_task(task.id, state, 1, answer.outcome.reason)

        await opened.walk(questions, carry)
    if refused:
        raise refused[0]
    return {name: answers.get(name, (False, opened.summary.stopped or "was not asked")) for name in questions}
