"""The judge's card: measurements of a judge, and the permitted uses of its verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plantain.records.messages import command_line

MAY_QUALIFY, MAY_RANK, NEITHER = "may qualify", "may rank", "neither"
"""The result of a card: the first includes the second."""

SELF_CONSISTENCY = "self-consistency"
"""The name of a rate of qualified edits whose judge has not passed the gate."""

AUDIT_IMAGES = 30
"""Independent images that an audit needs at least; the gate's threshold and its reason are in `audit/gate.toml`."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a card with its 95 % interval over independent images.

    Attributes:
        n: number of answers.
        value: a share or a coefficient; None for the `reason`.
        low, high: None without an interval.
        images: number of independent images.
        kind: kind of the number, and its key in JSON: "rate", "gap", "kappa", "alpha", "icc".
        reason: why value or interval is missing; "" if both exist.
    """

    n: int
    value: float | None
    low: float | None
    high: float | None
    images: int
    kind: str = "rate"
    reason: str = ""


PASS, FAIL, TOO_FEW = "pass", "fail", "too few images"
"""The results of a check."""


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the gate: its name, PASS, FAIL or TOO_FEW, and the measured and required values in words."""

    name: str
    result: str
    found: str


@dataclass(frozen=True, slots=True)
class Gate:
    """The permitted uses of a judge.

    Attributes:
        qualify, rank: whether its verdicts may say that an edit qualifies, and whether they may rank editors.
        why: the reasons, a line each.
        cells: by modality ("all" for all together) and criterion: "may qualify", "may rank" or "neither".
        verdict: the answer to whether its verdicts can be used, in one sentence.
        checks: the rows that decide.
    """

    qualify: bool
    rank: bool
    why: tuple[str, ...]
    cells: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    verdict: str = ""
    checks: tuple[Check, ...] = ()

    @property
    def standing(self) -> str:
        """ "may qualify", "may rank" or "neither"."""
        return MAY_QUALIFY if self.qualify else MAY_RANK if self.rank else NEITHER

    @property
    def phrase(self) -> str:
        """The standing in words."""
        return "may neither qualify nor rank" if self.standing == NEITHER else self.standing


@dataclass(frozen=True, slots=True)
class JudgeCard:
    """Measurements of a judge.

    Attributes:
        judge: "provider/model"; of a panel its members, separated by commas.
        fingerprint: of judge and prompt, as the run that asked it recorded it.
        rubric: its name.
        images: independent images, by modality.
        set: which images, in words.
        gate: the permitted uses.
        controls: how often an edit of that kind was accepted, by name.
        gaps: right minus wrong of each criterion, by modality ("all" for all together).
        defects: how often a planted defect was caught, by name.
        repeats: agreement of the judge with itself.
        agreement: with other judges, and with people.
        cost_usd, seconds: of one card, and of one verdict; None where unknown.
        verdicts, unanswered: answers, and requests without one.
        left_out: why edits could not be made, with how often.
    """

    judge: str
    fingerprint: str
    rubric: str
    gate: Gate
    images: Mapping[str, int] = field(default_factory=dict)
    set: str = ""
    controls: Mapping[str, Figure] = field(default_factory=dict)
    gaps: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)
    defects: Mapping[str, Figure] = field(default_factory=dict)
    repeats: Mapping[str, Figure] = field(default_factory=dict)
    agreement: Mapping[str, Figure] = field(default_factory=dict)
    cost_usd: float | None = None
    seconds: float | None = None
    verdicts: int = 0
    unanswered: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The card in one line, for every number that comes from the judge."""
        parts = [f"{self.judge}: {self.gate.phrase}"]
        if not self.gate.qualify and self.gate.why:
            parts[0] += f" ({self.gate.why[0]})"
        gap = self.gaps.get("all", {}).get("instruction_compliance") or next(
            iter(self.gaps.get("all", {}).values()), None
        )
        if gap is not None and gap.value is not None:
            parts.append(f"right minus wrong {100 * gap.value:+z.0f} points{_between(gap)}")
        for name in ("clean edit", "blob", "swapped label"):
            rate = self.controls.get(name)
            if rate is not None and rate.value is not None:
                parts.append(f"{name} accepted {100 * rate.value:.0f} %{_between(rate)} of {rate.n}")
        return "; ".join(parts)


def _between(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f" ({100 * figure.low:.0f} to {100 * figure.high:.0f})"


def no_card(judge: str, rubric: str = "med-banana") -> str:
    """Return the line for a judge without a card, and how to make one."""
    words = [] if judge.startswith("offline/") else ["--run", "runs/audit"]  # other judges' answers are kept
    words += [] if rubric == "med-banana" else ["--rubric", rubric]
    how = command_line("judge", "audit", "--judge", judge, *words)
    return f"{judge}: no card; its accuracy has not been measured ({how})"
