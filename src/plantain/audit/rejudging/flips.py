"""What judges say of the same stored attempts: coverage, and flips between every two and the published verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plantain.audit.pictures import cluster_of
from plantain.audit.rejudging.stored import SeatedJury, stored_attempts
from plantain.journal import JournalReader, StoredVerdict
from plantain.metrics.statistics.agreement import Agreement
from plantain.metrics.statistics.clusters import Rate
from plantain.records import CriterionResult, SourceImage

PUBLISHED = "published"
"""Stands for a judge's name where the verdict came with the edits; and the metric under which an import keeps it."""

IN_RUN = "(in the run)"
"""Behind the name of a judge whose verdict decided in the run."""

SHOWN = 12
"""Flips of which pictures are kept, of each cell of a matrix."""

EVERYWHERE = ("all", "all", "all")


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """What one judge said of one stored attempt.

    Attributes:
        id: the imported row's own, else the task's.
        qualified: None where the judge could not tell, or gave no verdict.
        criteria: true, false, a number, or None where unscored.
    """

    id: str
    task: str
    generation: int
    round: int
    judge: str
    qualified: bool | None
    criteria: Mapping[str, bool | float | None]
    modality: str
    finding: str
    direction: str
    cluster: str
    original: str
    edited: str
    judged: bool = True

    def as_json(self) -> dict[str, object]:
        """As `rejudge --json` prints it."""
        record = {"id": self.id, "task": self.task, "round": self.round, "judge": self.judge}
        return {**record, "qualified": self.qualified, "criteria": dict(self.criteria)}


@dataclass(frozen=True, slots=True)
class Flip:
    """Two judges on the attempts that both decided, in one cell of the matrix.

    Attributes:
        first, second: the judges; the second may be "published".
        modality, finding, direction: of the cell; "all" for the whole.
        both, first_only, second_only, neither: how many each accepted.
        rate: share on which they differ, with its interval over pictures.
        kappa: agreement beyond chance; only of the whole.
        pictures: the first flips, as (row of the first, accepted by the first).
    """

    first: str
    second: str
    modality: str
    finding: str
    direction: str
    both: int
    first_only: int
    second_only: int
    neither: int
    rate: Rate
    kappa: Agreement | None
    pictures: tuple[tuple[JudgedRow, bool], ...]

    def as_json(self) -> dict[str, object]:
        """As `rejudge --json` prints it."""
        record: dict[str, object] = {
            "first": self.first,
            "second": self.second,
            "modality": self.modality,
            "finding": self.finding,
            "direction": self.direction,
            "n": self.rate.n,
            "both": self.both,
            "first_only": self.first_only,
            "second_only": self.second_only,
            "neither": self.neither,
            "rate": _round(self.rate.value),
            "low": _round(self.rate.low),
            "high": _round(self.rate.high),
        }
        if self.kappa is not None:
            kappa = self.kappa
            record["kappa"] = {
                "value": _round(kappa.value),
                "low": _round(kappa.low),
                "high": _round(kappa.high),
            }
        record["pictures"] = [
            {
                "id": row.id,
                "task": row.task,
                "round": row.round,
                "original": row.original,
                "edited": row.edited,
                "by": by,
            }
            for row, accepted in self.pictures
            for by in ((self.first if accepted else self.second),)
        ]
        return record


@dataclass(frozen=True, slots=True)
class JudgeTally:
    """One judge over all attempts that were asked about.

    Attributes:
        judged, unjudged, unscored: attempts with a verdict, those without one, and of the judged those left unscored.
        accepted: of the attempts that it decided.
        criteria: of those in which each was scored.
    """

    judge: str
    judged: int
    unjudged: int
    unscored: int
    accepted: Rate
    criteria: Mapping[str, Rate]

    def as_json(self) -> dict[str, object]:
        """As `rejudge --json` prints it: counts, and rates with intervals over pictures."""
        return {
            "judge": self.judge,
            "judged": self.judged,
            "unjudged": self.unjudged,
            "unscored": self.unscored,
            "qualified": self.accepted.successes,
            "rate": rate_json(self.accepted),
            "criteria": {name: rate_json(rate) for name, rate in self.criteria.items()},
        }


def rate_json(rate: Rate) -> dict[str, object]:
    """A rate as scripts read it."""
    return {"n": rate.n, "rate": _round(rate.value), "low": _round(rate.low), "high": _round(rate.high)}


def judged_rows(
    reader: JournalReader, seated: Sequence[SeatedJury], sample: int | None
) -> Iterator[list[JudgedRow]]:
    """For each stored attempt a row of every judge: those asked again, the run's own verdict, and the published one."""
    for one in stored_attempts(reader, sample, reader.header.seed):
        task, attempt = one.task, one.attempt
        image = reader.image(task.image_id)
        verdicts = [v for v in reader.verdicts(task.id, attempt.generation) if v.round == attempt.round]
        published = next(
            (
                s
                for s in reader.scores(task.id, attempt.generation)
                if (s.metric, s.round) == (PUBLISHED, attempt.round)
            ),
            None,
        )
        own = str(published.detail.get("id", "")) if published is not None else ""
        about = _About(
            own or task.id,
            one.key,
            task.modality,
            task.finding,
            task.direction.value,
            image,
            attempt.edited or "",
        )
        rows = []
        for jury in seated:
            mine = next(
                (v for v in verdicts if (v.verdict.judge, v.draw) == (jury.jury.name, jury.draw)), None
            )
            rows.append(about.row(jury.jury.name, mine))
        asked = {(jury.jury.name, jury.draw) for jury in seated}
        decided = next((v for v in verdicts if v.decisive and (v.verdict.judge, v.draw) not in asked), None)
        if decided is not None:
            rows.append(about.row(f"{decided.verdict.judge} {IN_RUN}", decided))
        if published is not None and published.score.value is not None:
            rows.append(about.published(bool(published.score.value)))
        yield rows


@dataclass(frozen=True, slots=True)
class _About:
    """What the rows of one attempt share."""

    id: str
    key: tuple[str, int, int]
    modality: str
    finding: str
    direction: str
    image: SourceImage
    edited: str

    def row(self, judge: str, stored: StoredVerdict | None) -> JudgedRow:
        if stored is None:
            return self._made(judge, None, {}, judged=False)
        verdict = stored.verdict
        criteria = {name: _value_of(result) for name, result in verdict.observations.criteria.items()}
        return self._made(judge, verdict.qualified, criteria)

    def published(self, qualified: bool) -> JudgedRow:
        return self._made(PUBLISHED, qualified, {})

    def _made(
        self,
        judge: str,
        qualified: bool | None,
        criteria: Mapping[str, bool | float | None],
        *,
        judged: bool = True,
    ) -> JudgedRow:
        return JudgedRow(
            self.id, *self.key, judge, qualified, criteria, self.modality, self.finding, self.direction,
            cluster_of(self.image), self.image.prepared_sha256, self.edited, judged,
        )  # fmt: skip


def _value_of(result: CriterionResult) -> bool | float | None:
    return result.passed if result.value is None else result.value


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
