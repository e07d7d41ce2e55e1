"""What `plantain models` asks of providers, through the door like any other call: journalled, within the budget."""

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
"""Asks a provider something: whether it answered, and what it said. Raises InputError or Fault."""


async def probe(terms: Terms, run: Path) -> tuple[bool, str]:
    """Whether the model of the terms answers, and what it said.

    Args:
        terms: whose one model is asked.
        run: folder of the journal that counts probes.

    Raises:
        InputError: only hosted models can be probed.
    """
    name = terms.models[0]
    look = getattr(provider(terms.kind(name)), "probe", None)
    if not name.partition("/")[2] or look is None:
        raise InputError(f"--probe {name!r}: only hosted models can be probed, e.g. gemini/gemini-3.8-flash")
    answers, troubles = await _asked(terms, run, {name: lambda options: look(name, options)})
    if name in troubles:
        raise troubles[name]
    return answers[name]


async def look_at(terms: Terms, sections: Iterable[str], run: Path) -> list[tuple[str, ProbedAddress]]:
    """What stands at each address of sections of an `openai-compatible` kind; a recipe's model of each is called.

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
    answers, troubles = await _asked(replace(terms, models=()), run, {name: looking(name) for name in names})
    for trouble in troubles.values():
        raise trouble
    from plantain.models.hosted.openai.survey import ProbedAddress

    found: list[tuple[str, ProbedAddress]] = []
    for name, (done, answer) in answers.items():
        section = name.partition("/")[0]
        urls = terms.options(name).get("base_url")
        rows = [ProbedAddress(**row) for row in orjson.loads(answer)] if done else []
        found += [(section, row) for row in rows or [ProbedAddress(urls, False, answer=answer)]]
    return found


async def _asked(
    terms: Terms, run: Path, questions: Mapping[str, Question]
) -> tuple[dict[str, tuple[bool, str]], dict[str, InputError]]:
    """Every question's answer by the name of its model; each is asked anew, for it is asked what is true now."""
    door = Door(terms)
    door.check()
    answers: dict[str, tuple[bool, str]] = {}
    troubles: dict[str, InputError] = {}

    async def reply(name: str) -> Reply[str]:
        try:
            done, answer = await questions[name](door.options(name))
        except InputError as error:
            troubles[name] = error
            return Reply(None, Outcome(OutcomeKind.MALFORMED, str(error)))
        except Fault as fault:
            done, answer = False, str(fault)
        answers[name] = done, answer
        return Reply(answer) if done else Reply(None, Outcome(OutcomeKind.MALFORMED, answer))

    async def settle(answered: Reply[str], draft: CallResult) -> CallResult:
        return replace(draft, answer=answered.value or "")

    async with door.open(run, Beginning("probes", 0, {"kind": "probes"})) as opened:

        async def carry(name: str) -> None:
            task = EditTask(os.urandom(10).hex(), "none", "none", "probe", Direction.CHANGE, TaskKind.BENCH)
            await opened.journal.add_tasks([task])
            spec = CallSpec(
                Step.WRITE, 1, 0, name, {"probe": task.id}, lambda: reply(name), settle, alone=True
            )
            answer = await opened.calls(task.id, 1).answer(spec)
            state = TaskState.SUCCESS if answer.outcome.ok else TaskState.FAILED
            await opened.close_task(task.id, state, 1, answer.outcome.reason)

        await opened.walk(questions, carry)
    unasked = opened.summary.stopped or "was not asked"
    return {name: answers.get(name, (False, unasked)) for name in questions if name not in troubles}, troubles
