"""Verdicts that do not decide: those published with a release, and corrections by human readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plantain.journal.rows import StoredVerdict
from plantain.records import CriterionResult, Observations, Verdict

JUDGED_AGAIN = 10_000
"""Draws of a build's attempts from here on are of judges that were asked after the run; its own judges start at 0."""

PERSON = "person/"
"""Prefix of the code of a human reader who corrected a verdict. The correction is a verdict that never decides; the
latest of each reader counts."""

PUBLISHED = "published"
"""Metric under which an import keeps a published verdict, and its name where it is shown with those of judges."""

PUBLISHED_CRITERIA = {"structure_reasonable": "structural_plausibility", "looks_realistic": "realism"}
"""Med-Banana's names of two criteria (section 5.2), and ours."""


def published_verdict(
    scores: Iterable[tuple[str, float | None, Mapping[str, object]]],
) -> Verdict | None:
    """Return the verdict that an imported release published for an attempt; None if it published none.

    Args:
        scores: (metric, value, detail) of each score of the attempt.
    """
    for metric, value, detail in scores:
        if metric == PUBLISHED:
            answers = {name: one for name, one in detail.items() if isinstance(one, bool)}
            criteria = {
                ours: CriterionResult(answers[name], None, (), "")
                for name, ours in PUBLISHED_CRITERIA.items()
                if name in answers
            }
            facts = {name: answers[name] for name in ("has_disease",) if name in answers}
            seen = Observations(criteria, facts, reason=str(detail.get("reason") or ""))
            decided = None if value is None else bool(value)
            return (
                None
                if decided is None and not answers
                else Verdict(PUBLISHED, seen, None, None, None, decided)
            )
    return None


def corrections_in(verdicts: Iterable[StoredVerdict]) -> list[StoredVerdict]:
    """Return the latest correction of each human reader on each attempt, from a task's verdicts."""
    latest: dict[tuple[int, int, str], StoredVerdict] = {}
    for stored in verdicts:
        if stored.verdict.judge.startswith(PERSON):
            key = (stored.generation, stored.round, stored.verdict.judge)
            if key not in latest or stored.draw > latest[key].draw:
                latest[key] = stored
    return list(latest.values())
