"""What scores a bench run has: by metric, how many outputs are scored, and why the others are not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from plantain.journal import JournalReader
from plantain.journal.questions.benchmark import score_reasons


@dataclass(slots=True)
class Kept:
    """The scores of one metric over all outputs of a run."""

    metric: str
    scored: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def unscored(self) -> int:
        return sum(self.reasons.values())


def kept_scores(run: Path) -> list[Kept]:
    """Every metric that a run has scores of, by name."""
    found: dict[str, Kept] = {}
    with JournalReader.open(run) as reader:
        rows = score_reasons(reader)
    for metric, missing, reason, n in rows:
        kept = found.setdefault(metric, Kept(metric))
        if missing:
            kept.reasons[reason] += n
        else:
            kept.scored += n
    return list(found.values())
