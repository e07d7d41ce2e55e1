"""Rubrics, a judge's observations of an edit, the verdict that follows from them, scores, and the judge's card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from plantain.records.findings import FORBID_UNKNOWN
from plantain.records.messages import command_line


class Criterion(StrEnum):
    """The four criteria of Med-Banana-50K, 4.1."""

    INSTRUCTION_COMPLIANCE = "instruction_compliance"
    STRUCTURAL_PLAUSIBILITY = "structural_plausibility"
    REALISM = "realism"
    FIDELITY_PRESERVATION = "fidelity_preservation"


class FailureCode(StrEnum):
    """Why a criterion failed, coded (Med-Banana-50K, Table 2)."""

    TOO_SUBTLE = "too_subtle"
    OVERCORRECTED = "overcorrected"
    WRONG_LOCATION = "wrong_location"
    DISTORTION = "distortion"
    NON_TARGET_FINDING = "non_target_finding"
    BLENDING_ARTEFACT = "blending_artefact"
    REPETITION = "repetition"
    HARD_EDGE = "hard_edge"
    LOST_GRAIN = "lost_grain"
    EXCESS_CHANGE = "excess_change"


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """A judge's answer to one criterion of a rubric.

    Attributes:
        passed: True if the edit meets it, False if not; None if the judge cannot tell or gave no usable answer.
        confidence: the judge's confidence in [0, 1]; None if not given.
        codes: reasons for which it failed, out of `Rubric.codes`.
        evidence: the visible signs in words, or the reason why `passed` is None.
        value: the number given, on the criterion's scale; None without a scale or answer.
    """

    passed: bool | None
    confidence: float | None = None
    codes: tuple[str, ...] = ()
    evidence: str = ""
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Observations:
    """A judge's observations of one edit; they contain no decision.

    Attributes:
        criteria: every criterion of the rubric, by its name.
        facts: further yes/no answers by name; for Med-Banana `has_disease` (the target finding is visible in the
            edited image: right for `add`, wrong for `remove`) and `other_disease` (another finding appeared).
        opinion: the judge's own overall yes or no; None if not given.
        reason: the judge's reasons in its own words; "" if not given.
        differences: its description of the differences between the images, made before judging; "" if not requested.
    """

    criteria: Mapping[str, CriterionResult]
    facts: Mapping[str, bool] = field(default_factory=dict)
    opinion: bool | None = None
    reason: str = ""
    differences: str = ""


@dataclass(frozen=True, slots=True)
class RubricCriterion:
    """One criterion of a rubric.

    Attributes:
        name: name in judges' answers and in the journal.
        weight: weight in the score, 0 or more. A rubric's weights sum to 1, or all are 0: then it has no score.
        question: the question to the judge.
        scale: lowest and highest whole number of the answer, e.g. (0, 10); None for pass or fail.
        pass_at: lowest number that passes; None for the rubric's threshold as a share of the scale.
        short: abbreviation in tables and in the names of stored scores; "" for `name`.
        marks: (number, its meaning) for some numbers of the scale, in ascending order.
        key: key in the judge's JSON if its answer is a bare true or false; "" for an object under `name`. A key that
            is also one of `Rubric.facts` states that the finding is visible: a removal passes if it is false.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_UNKNOWN

    name: str
    weight: float
    question: str
    scale: tuple[int, int] | None = None
    pass_at: float | None = None
    short: str = ""
    marks: tuple[tuple[int, str], ...] = ()
    key: str = ""

    def share(self, result: CriterionResult) -> float | None:
        """Return a result in [0, 1]: 1 for pass, 0 for fail, or the place of a number on `scale`; None if unscored."""
        if self.scale is None:
            return None if result.passed is None else float(result.passed)
        least, most = self.scale
        return None if result.value is None else (result.value - least) / (most - least)


@dataclass(frozen=True, slots=True)
class Asked:
    """How a rubric is presented to a hosted judge.

    Attributes:
        templates: templates of the prompt; if there are two, the second asks about removals.
        system: template of the system prompt.
        captions: the captions of the original, the edited image and the real result.
        differences: the judge first describes the differences that it sees.
        opinion: it ends with its reason and its own overall yes or no.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_UNKNOWN

    templates: tuple[str, ...] = ("rubric",)
    system: str = "system"
    captions: tuple[str, str, str] = ("Original:", "Edited:", "The real result:")
    differences: bool = False
    opinion: bool = True


@dataclass(frozen=True, slots=True)
class Rubric:
    """The criteria and rules for judging an edit, as data.

    Attributes:
        name: name in pages and stored verdicts.
        version: number that is raised with every change.
        criteria: the questions whose answers decide. ValueError unless their weights sum to 1, or all are 0.
        facts: yes/no questions by name, whose answers do not decide.
        codes: names of the reasons for which a criterion can fail.
        policy: "all-pass" or "weighted", unless a recipe sets it; see `plantain.rubrics.decide`.
        threshold: lowest weighted score, in [0, 1], that qualifies, unless a recipe sets it; the default of `pass_at`.
        asked: how it is presented to a hosted judge.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_UNKNOWN

    name: str
    version: int
    criteria: tuple[RubricCriterion, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    codes: tuple[str, ...] = ()
    policy: str = "all-pass"
    threshold: float = 0.7
    asked: Asked = Asked()

    def __post_init__(self) -> None:
        total = sum(criterion.weight for criterion in self.criteria)
        if self.weighted and abs(total - 1.0) > 1e-9:
            raise ValueError(f"rubric {self.name}: weights sum to {total:g}, not 1")

    @property
    def weighted(self) -> bool:
        """True if the rubric's criteria have weights, so that verdicts have a weighted score."""
        return any(criterion.weight for criterion in self.criteria)

    def criterion(self, name: str) -> RubricCriterion:
        """Return the criterion of that name. Raise KeyError if there is none."""
        return {criterion.name: criterion for criterion in self.criteria}[name]

    def passes(self, name: str, value: float) -> bool:
        """Return True if `value`, on the scale of the criterion `name`, passes it. Raise KeyError if unknown."""
        criterion = self.criterion(name)
        if criterion.pass_at is not None:
            return value >= criterion.pass_at
        least, most = criterion.scale or (0, 1)
        return (value - least) / (most - least) >= self.threshold


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's observations of an edit, and the decision that each policy makes from them.

    Attributes:
        judge: name of the judge, "panel", or "person/CODE" for a human reader.
        observations: the report that the decisions follow from.
        qualified_all_pass, qualified_weighted: the decision of each policy; None if undecided: no criterion settles it
            and at least one is unscored.
        score: weighted share of the criteria that pass, in [0, 1]; None if one is unscored, or without weights.
        qualified: the decision of the run's own policy, which counts.
    """

    judge: str
    observations: Observations
    qualified_all_pass: bool | None
    qualified_weighted: bool | None
    score: float | None
    qualified: bool | None

    @property
    def why_not(self) -> str:
        """In one line why the edit does not qualify; "" if it does.

        It names the failed criteria with their codes; for an undecided edit, the unscored ones with their evidence.
        """
        if self.qualified:
            return ""
        found = []
        for name, result in self.observations.criteria.items():
            if result.passed is self.qualified:
                why = f": {result.evidence}" if self.qualified is None else f" ({', '.join(result.codes)})"
                found.append(f"{name}{why}".removesuffix(" ()").removesuffix(": ").replace("_", " "))
        return "; ".join(found)


@dataclass(frozen=True, slots=True)
class Score:
    """A measured number; if there is none, `value` is None (never 0 or -1) and `reason` states why."""

    value: float | None
    reason: str = ""

    @property
    def scored(self) -> bool:
        """True if the score has a value."""
        return self.value is not None


def unscored(reason: str) -> Score:
    """Return a score without a value; `reason` states why it has none."""
    return Score(None, reason)


MAY_QUALIFY, MAY_RANK, NEITHER = "may qualify", "may rank", "neither"
"""The result of a card: the first includes the second."""

NOT_VALIDATED = "judge not validated"
"""The remark on a rate of qualified edits whose judge has not passed the gate."""

_CONTROLS = {
    "clean edit": "correct edits",
    "blob": "edits that only draw a blob",
    "swapped label": "edits under a wrong label",
}
"""Controls that a card's line names."""

AUDIT_IMAGES = 30
"""Least number of independent images in an audit; the gate's threshold and its reason are in `audit/gate.toml`."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a card with its 95 % interval over independent images.

    Attributes:
        n: number of answers.
        value: a share or a coefficient; None if it could not be computed: see `reason`.
        low, high: None without an interval.
        images: number of independent images.
        kind: kind of the number, and its key in JSON: "rate", "gap", "kappa", "alpha".
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
    """One test that a judge must pass.

    Attributes:
        result: `PASS`, `FAIL` or `TOO_FEW`.
        found: the measured and the required value, in words.
    """

    name: str
    result: str
    found: str


@dataclass(frozen=True, slots=True)
class Gate:
    """The uses of a judge's verdicts that its measured reliability permits.

    Attributes:
        qualify, rank: True if its verdicts may decide that an edit qualifies, and if they may rank editors.
        why: the reasons, a line each.
        verdict: one sentence on whether its verdicts can be used.
        checks: the tests that decide.
    """

    qualify: bool
    rank: bool
    why: tuple[str, ...]
    verdict: str = ""
    checks: tuple[Check, ...] = ()

    @property
    def standing(self) -> str:
        """ "may qualify", "may rank" or "neither"."""
        return MAY_QUALIFY if self.qualify else MAY_RANK if self.rank else NEITHER

    @property
    def phrase(self) -> str:
        """`standing` in words for readers: "not shown to be reliable" instead of "neither"."""
        return "not shown to be reliable" if self.standing == NEITHER else self.standing


@dataclass(frozen=True, slots=True)
class JudgeCard:
    """How reliable a judge was found to be in an audit: the judge's card.

    Attributes:
        judge: "provider/model"; of a panel its members, separated by commas.
        fingerprint: hash of judge and prompt, as recorded by the run that asked the judge.
        rubric: the rubric's name.
        images: number of independent images, by modality.
        set: description of the images used.
        gate: the permitted uses.
        controls: how often each kind of control edit was accepted, by name.
        gaps: right minus wrong of each criterion, by modality ("all" for all together).
        defects: how often a planted defect was caught, by name.
        repeats: agreement of the judge with itself.
        agreement: with other judges, and with people.
        cost_usd, seconds: cost of the whole audit, and time for one verdict; None where unknown.
        verdicts, unanswered: number of answers, and of requests without one.
        left_out: number of edits that could not be made, by reason.
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
        """The card in one line, to appear with every number that comes from the judge."""
        parts = [f"{self.judge}: {self.gate.phrase}"]
        if not self.gate.qualify and self.gate.why:
            parts[0] += f" ({self.gate.why[0]})"
        gap = self.gaps.get("all", {}).get("instruction_compliance") or next(
            iter(self.gaps.get("all", {}).values()), None
        )
        if gap is not None and gap.value is not None:
            parts.append(
                f"passes right edits more often than wrong ones by {100 * gap.value:z.0f} points{_between(gap)}"
            )
        for name, words in _CONTROLS.items():
            rate = self.controls.get(name)
            if rate is not None and rate.value is not None:
                parts.append(f"accepts {100 * rate.value:.0f} %{_between(rate)} of {rate.n} {words}")
        return "; ".join(parts)


def _between(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f" ({100 * figure.low:.0f} to {100 * figure.high:.0f})"


def no_card(judge: str, rubric: str = "med-banana") -> str:
    """Return the note that a judge has no card yet, with the command that makes one for a run (RUN)."""
    words = [] if judge.startswith("offline/") else ["--run", "runs/audit"]  # other judges' answers are kept
    words += [] if rubric == "med-banana" else ["--rubric", rubric]
    how = command_line("judge", "audit", "RUN", "--judge", judge, *words)
    how = f" ({how})" if "/" in judge else ""  # a published file does not name the provider
    return f"{judge}: no card; its accuracy has not been measured{how}"
