"""Who judges: one judge, or a panel whose majority counts, and how either is asked within a run.

A panel is named by its members with commas between. Each member's answer is a call of its own, memoised and paid for
once; the joint report is computed from them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.calls import CallSpec, TaskCalls
from plantain.journal import CallResult, StoredVerdict
from plantain.journal.payload import from_json, to_json
from plantain.privacy.lineage import sha256_of
from plantain.records import OK, Direction, InputError, Observations, Outcome, Rubric, Step
from plantain.roles import Judge, JudgeRequest, Reply, fingerprint_of
from plantain.rubrics import identity_of, majority
from plantain.runs.door import Door
from plantain.runs.looking import look_first, seen_in

MOST_MEMBERS = 100
"""Draws that one asking may take: those of a judge's next asking begin behind them."""


@dataclass(frozen=True, slots=True)
class Jury:
    """A judge, or several that decide together.

    Attributes:
        name: as it is stored: "provider/model"; of a panel its members, separated by commas.
        members: who is asked.
        rubric: by which they judge.
    """

    name: str
    members: tuple[Judge, ...]
    rubric: Rubric

    @property
    def fingerprint(self) -> str:
        """What changes whenever an answer could."""
        return " + ".join(fingerprint_of(member, self.rubric) for member in self.members)

    def together(self, reports: Sequence[Observations], direction: Direction) -> Observations:
        """The joint report of all members, in their order, on an edit that was to add or to remove."""
        if len(self.members) == 1:
            return reports[0]
        names = [member.name for member in self.members]
        return majority(list(zip(names, reports, strict=True)), self.rubric, direction)


def models_of(judge: str) -> tuple[str, ...]:
    """The models behind a judge's name. Raises InputError for an empty one."""
    names = tuple(name.strip() for name in judge.split(","))
    if not all(names) or len(names) > MOST_MEMBERS:
        raise InputError(
            f"--judge {judge!r}: expected provider/model, or several with commas between for a panel"
        )
    return names


def jury_of(
    door: Door,
    judge: str | Judge,
    rubric: Rubric,
    prompts: Path | None = None,
    label: str = "",
    *,
    missing: list[str] | None = None,
) -> Jury:
    """A judge by its name, or a model that somebody made, ready to be asked.

    Args:
        door: of the run in which it is asked.
        judge: "provider/model", several with commas between, or the judge itself.
        rubric: by which it judges.
        prompts: a folder of prompts of its own.
        label: what its verdicts are stored under, where that is not its name.
        missing: takes a line for a key that is not set, instead of a refusal; such a judge cannot be asked.

    Raises:
        InputError: there is no such judge, or it cannot judge by this rubric.
    """
    if isinstance(judge, str):
        members = tuple(
            door.judge(name, missing=missing, prompts=prompts, named_by="--judge")
            for name in models_of(judge)
        )
    else:
        members = (door.guarded(judge),)
    found = Jury(label or ",".join(member.name for member in members), members, rubric)
    _ = found.fingerprint  # refuses a rubric by which it cannot judge, before anything is asked
    return found


async def ask(
    jury: Jury,
    calls: TaskCalls,
    request: JudgeRequest,
    *,
    round: int,
    draw: int,
    identity: dict[str, object] | None = None,
    verdicts: Callable[[Observations], tuple[StoredVerdict, ...]] | None = None,
) -> tuple[Observations | None, Outcome]:
    """What the jury saw, recorded now or before; or None, and how the call of the first silent member ended.

    Args:
        jury: who is asked.
        calls: of the task that the edit belongs to.
        request: the edit.
        round, draw: under which the first member's call is journalled; the others' follow.
        identity: what the answer depends on beside the judge; default: the request's own content.
        verdicts: what to store of the joint report, in the same transaction as the last answer.
    """
    known = identity or {
        "original": await asyncio.to_thread(lambda: sha256_of(request.original.data)),
        "edited": await asyncio.to_thread(lambda: sha256_of(request.edited.data)),
    }
    reports: list[Observations] = []
    for number, judge in enumerate(jury.members):
        last = number == len(jury.members) - 1
        handed, looked = await look_first(
            calls, judge, request, round=round, draw=draw + number, identity=known
        )
        if not looked.ok:
            return None, looked
        spec = _call(judge, handed, known, round, draw + number, reports, jury, verdicts if last else None)
        answer = await calls.answer(spec)
        if not answer.outcome.ok:
            return None, answer.outcome
        reports.append(from_json(Observations, answer.text))
    return jury.together(reports, request.direction), OK


def _call(
    judge: Judge,
    request: JudgeRequest,
    known: dict[str, object],
    round: int,
    draw: int,
    before: list[Observations],
    jury: Jury,
    verdicts: Callable[[Observations], tuple[StoredVerdict, ...]] | None,
) -> CallSpec[Observations]:
    identity: dict[str, object] = {
        "fingerprint": fingerprint_of(judge, request.rubric),
        "seed": request.seed,
        **known,
        "instruction": request.instruction,
        "finding": request.finding.name if request.finding else "",
        "direction": request.direction.value,
        "rubric": identity_of(request.rubric),
        **seen_in(request),
    }

    async def send() -> Reply[Observations]:
        return await judge.judge(request)

    async def settle(reply: Reply[Observations], draft: CallResult) -> CallResult:
        if reply.value is None:
            return draft
        stored = (
            () if verdicts is None else verdicts(jury.together([*before, reply.value], request.direction))
        )
        return replace(draft, answer=to_json(reply.value), verdicts=stored)

    return CallSpec(Step.JUDGE, round, draw, judge.name, identity, send, settle)
