"""A judge's scores of a benchmark's outputs: who judges how, in which draws, and what its answers come to.

Each draw is one memoised call of the output's task (step judge, round of the output). A run numbers its judges in the
order in which they first judge, so that draws of different judges never meet: draw = judge * 10,000 + again * 100 + k,
where `again` counts how often failed draws were asked for anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from plantain.bench.generate.runfile import Output
from plantain.journal import CallRow, Journal, JsonValue, StoredScore
from plantain.records import (
    CriterionResult,
    InputError,
    Observations,
    Rubric,
    RubricCriterion,
    Score,
    Step,
    unscored,
)
from plantain.roles import Judge, fingerprint_of
from plantain.rubrics import MEDEBENCH

VARIANTS = ("P", "D")
"""What a judge is told: the prompt, or the description of the change."""
JUDGES = "bench.judges"
"""Key of the run's meta: the judges in the order of their numbers."""
MOST_DRAWS, MOST_AGAIN = 100, 100
VERSION = "1"
"""Of how draws are put together."""


@dataclass(frozen=True, slots=True)
class JudgeName:
    """One way of judging.

    Attributes:
        model: "provider/model".
        variant: "P" (judged by the prompt) or "D" (by the description of the change).
        truth: the judge sees the real image after.
        draws: how often each output is judged; None for once where the judge repeats itself, else three times.
        prompts: folder with another wording of the question; its scores have a name of their own. None for ours.
        rubric: by what it is judged; by any but MedEBench's, the scores bear that one's name.
    """

    model: str
    variant: str = "D"
    truth: bool = True
    draws: int | None = None
    prompts: Path | None = None
    rubric: Rubric = MEDEBENCH

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise InputError(
                f"--variant: {self.variant!r}; choose P (prompt) or D (description of the change)"
            )
        if self.draws is not None and not 1 <= self.draws <= MOST_DRAWS:
            raise InputError(f"--draws: {self.draws}; from 1 to {MOST_DRAWS}")
        if self.prompts is not None and self.model.startswith("offline/"):
            raise InputError(f"--prompts: {self.model} reads no prompts")
        if self.prompts is not None and not asks_for_scores(self.prompts, self.rubric):
            files = " or ".join(wording_files(self.rubric))
            raise InputError(f"--prompts: {self.prompts}: holds no {files}: nothing to ask with")

    @property
    def label(self) -> str:
        """As stored after the dimension: "gemini/m/P", "offline/instruments/D-blind"."""
        return f"{self.model}/{self.variant}{'' if self.truth else '-blind'}"

    @property
    def wording(self) -> str:
        """What the folder of another wording is called, in letters that a metric's name may have; "" for ours."""
        if self.prompts is None:
            return ""
        return re.sub(r"[^a-z0-9]+", "-", self.prompts.resolve().name.lower()).strip("-") or "prompts"

    @property
    def variety(self) -> str:
        """What stands between a score's criterion and its judge: the rubric's name, unless it is MedEBench's, and that
        of another wording; "" for neither."""
        own = "" if self.rubric == MEDEBENCH else self.rubric.name
        return "-".join(filter(None, (own, self.wording)))

    @property
    def times(self) -> int:
        return self.draws or (1 if self.model.startswith("offline/") else 3)


@dataclass(frozen=True, slots=True)
class SeatedJudge:
    """A judge with its number in this run; another fingerprint of the same name takes another number."""

    name: JudgeName
    judge: Judge
    number: int

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.judge, self.name.rubric)

    def draw(self, k: int, again: int = 0) -> int:
        return (self.number * MOST_AGAIN + again) * MOST_DRAWS + k


async def seat(journal: Journal, judges: Sequence[tuple[JudgeName, Judge]]) -> list[SeatedJudge]:
    """Gives each judge its number in the run, the same as in earlier processes."""
    known: list[dict[str, str]] = orjson.loads(journal.reader.meta(JUDGES) or "[]")
    seated, before = [], len(known)
    for name, judge in judges:
        entry = {"label": name.label, "fingerprint": fingerprint_of(judge, name.rubric)}
        if entry not in known:
            known.append(entry)
        seated.append(SeatedJudge(name, judge, known.index(entry)))
    if len(known) > before:
        await journal.set_meta(JUDGES, orjson.dumps(known).decode())
    return seated


def draws_to_make(seated: SeatedJudge, recorded: Iterable[CallRow], round: int, *, retry: bool) -> list[int]:
    """The draw of each k: its latest one, or with `retry` a new one where that failed.

    Args:
        seated: the judge.
        recorded: the calls of the output's task and generation.
        round: of the output.
        retry: ask for failed draws anew.
    """
    own = {
        row.key.draw: row
        for row in recorded
        if row.key.step is Step.JUDGE and row.key.round == round and row.final and row.outcome is not None
    }
    draws = []
    for k in range(seated.name.times):
        again = 0
        while again + 1 < MOST_AGAIN and seated.draw(k, again + 1) in own:
            again += 1
        last = own.get(seated.draw(k, again))
        if retry and last is not None and last.outcome is not None and not last.outcome.ok:
            again += 1
        draws.append(seated.draw(k, again))
    return draws


def complete(seated: SeatedJudge, rows: Mapping[str, StoredScore], blob: str | None, *, retry: bool) -> bool:
    """Whether an output has this judge's scores: of this image and fingerprint, in as many draws as asked for."""
    for criterion in seated.name.rubric.criteria:
        row = rows.get(stored_name(seated.name, criterion))
        if row is None or row.detail.get("version") != _version(seated) or row.detail.get("blob") != blob:
            return False
        asked, scored = row.detail.get("asked"), row.detail.get("scored")
        if isinstance(asked, int) and (asked < seated.name.times or (retry and asked != scored)):
            return False
    return True


def stored_name(name: JudgeName, criterion: RubricCriterion) -> str:
    """Return a score's name in the journal: "ea@gemini/m/P"; "ea:authors@gemini/m/P" in another wording."""
    short = (criterion.short or criterion.name).lower()
    return f"{short}{':' * bool(name.variety)}{name.variety}@{name.label}"


def wording_files(rubric: Rubric) -> tuple[str, ...]:
    """Return the names of the files that word a judge's question by this rubric."""
    return tuple(f"{name}.md.j2" for name in (*rubric.asked.templates, rubric.asked.system))


def asks_for_scores(folder: Path, rubric: Rubric = MEDEBENCH) -> bool:
    """Return True if a folder of prompts words the question of a benchmark's judge."""
    return any((folder / file).is_file() for file in wording_files(rubric))


def without_judging(seated: SeatedJudge, output: Output, reason: str) -> list[StoredScore]:
    """Return the unscored scores of an output that the judge was not asked about."""
    detail: dict[str, JsonValue] = {"version": _version(seated), "blob": output.edited}
    return [
        output.score(stored_name(seated.name, criterion), unscored(reason), detail)
        for criterion in seated.name.rubric.criteria
    ]


def put_together(
    seated: SeatedJudge, output: Output, draws: Sequence[tuple[int, Observations]]
) -> list[StoredScore]:
    """Return the scores of an output, one per criterion: the mean over scored draws, as a share of the scale.

    The detail lists each draw with the number of its call in the journal.
    """
    name, rows = seated.name, []
    for criterion in name.rubric.criteria:
        results = [(draw, report.criteria[criterion.name]) for draw, report in draws]
        values = [value for _, result in results if (value := _value(result)) is not None]
        reasons = dict.fromkeys(result.evidence for _, result in results if _value(result) is None)
        least, most = criterion.scale or (0, 1)
        score = unscored("; ".join(reasons))
        if values:
            score = Score((sum(values) / len(values) - least) / (most - least))
        detail: dict[str, JsonValue] = {
            "version": _version(seated),
            "blob": output.edited,
            "judge": name.model,
            "variant": name.variant,
            "truth": name.truth,
            "asked": len(draws),
            "scored": len(values),
            "draws": [_draw_row(draw, result) for draw, result in results],
            **({} if name.rubric == MEDEBENCH else {"scale": [least, most]}),
            "reason": draws[0][1].reason[:600],
        }
        rows.append(output.score(stored_name(name, criterion), score, detail))
    return rows


def _version(seated: SeatedJudge) -> str:
    return f"{VERSION} {seated.fingerprint}"


def _draw_row(draw: int, result: CriterionResult) -> dict[str, JsonValue]:
    value = _value(result)
    return {"draw": draw, "reason": result.evidence} if value is None else {"draw": draw, "score": value}


def _value(result: CriterionResult) -> float | None:
    """Return the number of a criterion; of one without a scale 1 if it passed, else 0; None if unscored."""
    if result.value is not None or result.passed is None:
        return result.value
    return float(result.passed)
