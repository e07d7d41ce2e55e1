"""The loop of Med-Banana-50K, 2.3: write, edit, judge; refine with the complete history, up to five rounds."""

from __future__ import annotations

from typing import NamedTuple

from plantain.pipeline.rounds import Rounds
from plantain.records import Attempt, Outcome, OutcomeKind, TaskState, state_after

NO_CHANGE = "Keep this image exactly as it is."
"""The instruction of every control."""

_GAVE_UP = frozenset({OutcomeKind.RATE_LIMITED, OutcomeKind.TRANSPORT})
"""The editor never answered in any try: the instruction is not at fault, and the round is not used up."""


class Closing(NamedTuple):
    """How a task ended: its state, the round that decided it, and why in one line."""

    state: TaskState
    round: int
    reason: str = ""


async def edit_until_qualified(rounds: Rounds) -> Closing:
    """Run one task to its end; running it again replays recorded calls, then continues.

    Every round edits the original, never the last attempt. Failed attempts stay as negative examples. An edit that the
    judge cannot decide on ends the task: refining the instruction would not change that.
    """
    history: list[Attempt] = []
    most = rounds.method.max_rounds
    for number in range(1, most + 1):
        attempt = await rounds.write(history)
        if isinstance(attempt, Outcome):
            return _stopped(attempt, number, "writer")

        attempt = await rounds.edit(attempt)
        if attempt.edited is None:
            assert attempt.edit_outcome is not None
            if attempt.edit_outcome.kind in _GAVE_UP:
                return _stopped(attempt.edit_outcome, number, "editor")
            history.append(attempt)
            if _cannot_be_shown(history, most):
                return Closing(TaskState.NOT_APPLICABLE, number, attempt.edit_outcome.reason)
            continue

        attempt = await rounds.judge(attempt, history)
        if attempt.verdict is None:
            assert attempt.judge_outcome is not None
            return _stopped(attempt.judge_outcome, number, "judge")
        state = state_after(attempt.verdict)
        if state is not TaskState.FAILED:
            return Closing(state, number, attempt.verdict.why_not)
        history.append(attempt)

    last = history[-1]
    if last.verdict is None:
        assert last.edit_outcome is not None
        return _stopped(last.edit_outcome, most, "editor")
    return Closing(TaskState.FAILED, most, last.verdict.why_not)


async def pass_through(rounds: Rounds) -> Closing:
    """Run a control: one edit with an instruction that never varies. It is not judged: nothing was to change."""
    attempt = await rounds.edit(rounds.instructed(NO_CHANGE))
    if attempt.edited is not None:
        return Closing(TaskState.SUCCESS, 1)
    assert attempt.edit_outcome is not None
    if attempt.edit_outcome.kind is OutcomeKind.NOT_APPLICABLE:
        return Closing(TaskState.NOT_APPLICABLE, 1, attempt.edit_outcome.reason)
    return _stopped(attempt.edit_outcome, 1, "editor")


def _cannot_be_shown(history: list[Attempt], most: int) -> bool:
    """Two instructions, all so far, were not applicable: one alone may name a bad place."""
    outcomes = {attempt.edit_outcome and attempt.edit_outcome.kind for attempt in history}
    return outcomes == {OutcomeKind.NOT_APPLICABLE} and len(history) >= min(2, most)


def _stopped(outcome: Outcome, number: int, role: str) -> Closing:
    reason = f"{role}: {outcome.kind}" + (f", {outcome.reason}" if outcome.reason else "")
    return Closing(TaskState.STOPPED, number, reason)
