"""One judge, or a panel whose majority decides, and the calls that ask it within a run.

A panel is named by its members, separated by commas. Each member's answer is a call of its own, memoised and paid once;
the joint report is computed from them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from plantain.calls import CallSpec, TaskCalls
from plantain.journal import CallResult, StoredVerdict
from plantain.journal.rows import from_json, to_json
from plantain.privacy.permission import sha256_of
from plantain.records import OK, Direction, InputError, Observations, Outcome, Rubric, Step
from plantain.roles import Judge, JudgeRequest, Reply, fingerprint_of
from plantain.rubrics import identity_of, majority
from plantain.runs.setup import RunSetup

MOST_MEMBERS = 100
"""Draws reserved for one request to a jury: one for each member."""


@dataclass(frozen=True, slots=True)
class Jury:
    """A judge, or several that decide together.

    Attributes:
        name: name of its stored verdicts: "provider/model", or a panel's members separated by commas.
        members: the judges that are asked.
        rubric: the rubric by which they judge.
    """

    name: str
    members: tuple[Judge, ...]
    rubric: Rubric

    @property
    def fingerprint(self) -> str:
        """A text that changes whenever an answer of the judge or panel could change."""
        return " + ".join(fingerprint_of(member, self.rubric) for member in self.members)

    def together(self, reports: Sequence[Observations], direction: Direction) -> Observations:
        """Combine the members' reports, given in their order, to one by majority."""
        if len(self.members) == 1:
            return reports[0]
        names = [member.name for member in self.members]
        return majority(list(zip(names, reports, strict=True)), self.rubric, direction)


def models_of(judge: str) -> tuple[str, ...]:
    """Split a judge's name at commas into names of models. Raise InputError if it is empty or has too many."""
    names = tuple(name.strip() for name in judge.split(","))
    if not all(names) or len(names) > MOST_MEMBERS:
        raise InputError(
            f"--judge {judge!r}: expected provider/model, or several separated by commas for a panel"
        )
    return names


def jury_of(
    setup: RunSetup,
    judge: str | Judge,
    rubric: Rubric,
    prompts: Path | None = None,
    label: str = "",
    missing: list[str] | None = None,
) -> Jury:
    """Load a judge or panel, and check that it can judge by a rubric.

    Args:
        setup: setup of the run in which it is asked.
        judge: "provider/model", several separated by commas, or a judge object.
        rubric: the rubric by which it judges.
        prompts: folder of prompts that replace plantain's.
        label: name of its verdicts, if not the judge's name.
        missing: collects a line for each missing key instead of raising; such a judge cannot be asked.

    Raises:
        InputError: the judge is unknown, or cannot judge by this rubric.
    """
    if isinstance(judge, str):
        members = tuple(
            setup.judge(name, missing=missing, prompts=prompts, named_by="--judge")
            for name in models_of(judge)
        )
    else:
        members = (setup.guarded(judge),)
    found = Jury(label or ",".join(member.name for member in members), members, rubric)
    _ = found.fingerprint  # raises for a rubric by which it cannot judge, before any call
    return found


async def ask(
    jury: Jury,
    calls: TaskCalls,
    request: JudgeRequest,
    *,
    round: int,
    draw: int,
    verdicts: Callable[[Observations], tuple[StoredVerdict, ...]] | None = None,
) -> tuple[Observations | None, Outcome]:
    """Ask a judge or panel about an edit; return (observations, ok), or (None, outcome of the first failed call).

    Args:
        jury: the judge or panel.
        calls: calls of the task to which the edit belongs; recorded answers are reused.
        request: the edit.
        round, draw: key of the first member's call; the other members take the draws after it.
        verdicts: makes the verdicts from the joint report; they are stored in the transaction of the last answer.
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
        spec = CallSpec(
            Step.JUDGE,
            round,
            draw + number,
            judge.name,
            _identity(judge, request, known),
            partial(judge.judge, request),
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
    }
