"""How a judge decides on held-out edits when it is asked as it will be, beside the verdicts and beside chance.

A low loss is no judgement: the words of an answer are learned long before its decisions. So the trained judge is asked,
and its decisions are compared with the verdicts by Cohen's kappa, which is 0 for a judge that guesses or that always
says the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from plantain.metrics.statistics.agreement import cohen_kappa
from plantain.records import Observations, Rubric
from plantain.roles import JudgeRequest, Reply
from plantain.rubrics.policies import decide
from plantain.train.judge.verdicts import StoredJudgement, VerdictSource, judgements_listed

MOST = 200
"""Held-out edits that are asked about."""


class AskedJudge(Protocol):
    """A judge."""

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """Its report, or why there is none."""
        ...


@dataclass(frozen=True, slots=True)
class HeldOutDecisions:
    """Decisions on edits of groups that nothing was learned from.

    Attributes:
        asked, answered: edits, and those for which there was an answer that could be read.
        same: answers with the verdict's decision.
        commoner: how many of those answered have the decision that is commoner among the verdicts.
        kappa: Cohen's, over those answered; None where it is undefined.
        low, high: its 95 % interval over groups; None where there is none.
    """

    asked: int
    answered: int
    same: int
    commoner: int
    kappa: float | None
    low: float | None
    high: float | None

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> HeldOutDecisions:
        """From a training's JSON file."""
        return cls(**found)

    def __str__(self) -> str:
        interval = "" if self.low is None else f" [{self.low:z.2f}, {self.high:z.2f}]"
        kappa = "undefined" if self.kappa is None else f"{self.kappa:z.2f}{interval}"
        return (
            f"{self.answered} of {self.asked} answered, {self.same} with the verdict's decision (always the commoner "
            f"one: {self.commoner}), kappa {kappa} (chance: 0)"
        )


async def held_out_decisions(
    source: VerdictSource,
    some: Sequence[StoredJudgement],
    judge: AskedJudge,
    stop: Callable[[], bool] = lambda: False,
) -> HeldOutDecisions | None:
    """Asks about held-out edits, one after the other; None when stopped.

    Args:
        source: of the verdicts.
        some: held out, at most `MOST` of them are asked about, the same ones every time.
        judge: who is asked.
        stop: asked before each.
    """
    rubric = source.rubric
    groups = {listed.id: listed.cluster for listed in judgements_listed(some)}
    chosen = sorted(some, key=lambda one: one.edited)[:MOST]
    pairs: list[tuple[bool, bool, str]] = []
    for one, request in source.requests(chosen):
        if stop():
            return None
        reply = await judge.judge(request)
        if reply.value is not None:
            pairs.append(
                (_decision(one.verdict.observations, rubric), _decision(reply.value, rubric), groups[one.id])
            )
    verdicts, answers = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = cohen_kappa(verdicts, answers, categories=(True, False), clusters=[pair[2] for pair in pairs])
    return HeldOutDecisions(
        len(chosen),
        len(pairs),
        sum(verdict == answer for verdict, answer, _ in pairs),
        max(Counter(verdicts).values(), default=0),
        found.value,
        found.low,
        found.high,
    )


def _decision(seen: Observations, rubric: Rubric) -> bool:
    return decide(seen, rubric, judge="", policy=rubric.policy, threshold=rubric.threshold).qualified
