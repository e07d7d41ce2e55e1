"""The loop of Med-Banana-50K, 2.3: write, edit, judge; refine with the complete history, up to five rounds."""

from __future__ import annotations

from dataclasses import dataclass

from plantain.pipeline.rounds import Rounds
from plantain.records import Attempt, Outcome, OutcomeKind, TaskState, state_after

GAVE_UP = frozenset({OutcomeKind.RATE_LIMITED, OutcomeKind.TRANSPORT})
"""The editor never answered, in spite of all tries: that says nothing about the instruction, and uses up no round."""


@dataclass(frozen=True, slots=True)
class Closing:
    """How a task ended: its state, the round that decided it, and why in one line."""

    state: TaskState
    round: int
    reason: str = ""


async def edit_until_qualified(rounds: Rounds) -> Closing:
    """Run one task to its end; running it again replays what is recorded, then continues.

    Every round edits the original, never the last attempt. Failed attempts stay as negative examples. An edit that the
    judge cannot decide on ends the task: refining the instruction would not change that.
    """
    history: list[Attempt] = []
    for number in range(1, rounds.most + 1):
        attempt = await rounds.write(history)
        if isinstance(attempt, Outcome):
            return stopped(attempt, number, "writer")

        attempt = await rounds.edit(attempt)
        if attempt.edited is None:
            if attempt.edit_outcome is not None and attempt.edit_outcome.kind in GAVE_UP:
                return stopped(attempt.edit_outcome, number, "editor")
            if _cannot_be_shown(attempt, history, rounds.most):
                return Closing(TaskState.NOT_APPLICABLE, number, _why(attempt))
            history.append(attempt)
            continue

        attempt = await rounds.judge(attempt, history)
        if attempt.verdict is None:
            assert attempt.judge_outcome is not None
            return stopped(attempt.judge_outcome, number, "judge")
        state = state_after(attempt.verdict)
        if state is not TaskState.FAILED:
            return Closing(state, number, attempt.verdict.why_not)
        history.append(attempt)

    last = history[-1]
    if last.verdict is None:
        assert last.edit_outcome is not None
        return stopped(last.edit_outcome, rounds.most, "editor")
    return Closing(TaskState.FAILED, rounds.most, last.verdict.why_not)


def _cannot_be_shown(attempt: Attempt, history: list[Attempt], most: int) -> bool:
    """True when the editor has said so of two instructions and has drawn nothing: one alone may name a bad place."""
    refused = [
        a.edit_outcome is not None and a.edit_outcome.kind is OutcomeKind.NOT_APPLICABLE
        for a in (*history, attempt)
    ]
    return all(refused) and len(refused) >= min(2, most)


def _why(attempt: Attempt) -> str:
    return attempt.edit_outcome.reason if attempt.edit_outcome else ""


def stopped(outcome: Outcome, number: int, role: str) -> Closing:
    """The end of a task whose last call brought nothing."""
    reason = f"{role}: {outcome.kind}" + (f", {outcome.reason}" if outcome.reason else "")
    return Closing(TaskState.STOPPED, number, reason)
