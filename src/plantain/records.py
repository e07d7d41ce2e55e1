"""The nouns of plantain: frozen records that every room shares. No I/O, standard library only."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar


class InputError(ValueError):
    """Something that a person handed us cannot be used. The message is one line: file, field, what is allowed."""


FORBID_UNKNOWN: dict[str, Any] = {"extra": "forbid", "strict": False}


class Direction(StrEnum):
    """Which way an edit goes (Med-Banana-50K, 2.1)."""

    ADD = "add"
    REMOVE = "remove"


class Licence(StrEnum):
    """What the owner of a source image allows. Only the first two may leave the machine unasked."""

    OPEN = "open"
    ATTRIBUTION = "attribution"
    CREDENTIALED = "credentialed"
    UNKNOWN = "unknown"


class Step(StrEnum):
    """The three model calls of a round."""

    WRITE = "write"
    EDIT = "edit"
    JUDGE = "judge"


class OutcomeKind(StrEnum):
    """How a model call ended; each kind has one retry policy (`plantain.calls.policy`)."""

    OK = "ok"
    NOT_APPLICABLE = "not_applicable"
    RATE_LIMITED = "rate_limited"
    TRANSPORT = "transport"
    REFUSED = "refused"
    NO_IMAGE = "no_image"
    MALFORMED = "malformed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended and why.

    Attributes:
        kind: the outcome.
        reason: one line for a person; empty when ok.
        retry_after: seconds that the provider asked us to wait, for `rate_limited`.
        fatal: the fault concerns the whole run, not this task (bad key, exhausted quota, retired
            model): the run stops instead of failing every task in turn.
    """

    kind: OutcomeKind
    reason: str = ""
    retry_after: float | None = None
    fatal: bool = False

    @property
    def ok(self) -> bool:
        return self.kind is OutcomeKind.OK


OK = Outcome(OutcomeKind.OK)


class TaskState(StrEnum):
    """Where a task stands. All but `pending` are closed."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILED = "failed"
    NOT_APPLICABLE = "not_applicable"
    STOPPED = "stopped"


class TaskKind(StrEnum):
    """Which walk a task belongs to."""

    EDIT = "edit"
    CONTROL = "control"
    BENCH = "bench"


# --- what can be edited -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Differential:
    """A neighbour that the finding is mistaken for, and what tells them apart."""

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_UNKNOWN

    name: str
    how: str


@dataclass(frozen=True, slots=True)
class Visibility:
    """Where a finding can be shown at all. An empty tuple sets no condition.

    Attributes:
        views: e.g. ("frontal",); "unknown" must be listed to be allowed.
        projections: e.g. ("PA", "AP").
        positions: e.g. ("erect", "supine").
        sequences: e.g. ("T1", "T1+C", "T2", "FLAIR", "PD").
        planes: e.g. ("axial", "coronal", "sagittal").
        note: the condition in words, for what the fields cannot say (slice level, sella in view).
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_UNKNOWN

    views: tuple[str, ...] = ()
    projections: tuple[str, ...] = ()
    positions: tuple[str, ...] = ()
    sequences: tuple[str, ...] = ()
    planes: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What can be added to or removed from an image of one modality.

    Attributes:
        name: the label used in recipes, folders and releases, e.g. "Pleural Effusion".
        modality: e.g. "chest_xray", "brain_mri", "fundus".
        title: how the finding is named in a sentence, e.g. "pleural effusion".
        normal: True for the class that means "none of the others" (No Finding, notumor, normal);
            it is a source for `add` and is never a target.
        anatomy: the structure it lies in.
        sides: allowed lateralities out of "left", "right", "bilateral", "midline"; patient's sides.
        zones: allowed places inside the anatomy, in plain words ("apical", "upper", "macula").
        visibility: on which views, positions, sequences, planes it can be shown.
        signs: what must be seen.
        secondary_signs: what must go with it; belongs to the target region, not to collateral change.
        polarity: "brighter", "darker" or "mixed" against the tissue that it replaces.
        support: "local", "diffuse" (whole field) or "warp" (moves borders).
        implies: names of findings that this one entails in the label (Pneumonia: Lung Opacity).
        differentials: neighbours and what tells them apart.
        restores: what removal must bring back.
        limits: what no editor can know or show here.
        labels: the finding's label in each source, e.g. {"odir-5k": "D"}.
        source: glossary, guideline or textbook, with what was checked.
        synonyms: other words for it, lower case; shared ones ("tumour") are settled by the rest of the sentence.
        optional: True where a recipe must name it to have it; it is not among the paper's 23.
        zone_visibility: zones that can only be shown under further conditions, e.g. a supine film.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_UNKNOWN

    name: str
    modality: str
    title: str
    anatomy: str
    source: str
    normal: bool = False
    sides: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    visibility: Visibility = field(default_factory=Visibility)
    signs: tuple[str, ...] = ()
    secondary_signs: tuple[str, ...] = ()
    polarity: str = "mixed"
    support: str = "local"
    implies: tuple[str, ...] = ()
    differentials: tuple[Differential, ...] = ()
    restores: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    synonyms: tuple[str, ...] = ()
    optional: bool = False
    zone_visibility: dict[str, Visibility] = field(default_factory=dict)


# --- what is edited ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Geometry:
    """How the prepared square relates to the original: enough to invert it exactly.

    Attributes:
        width, height: size of the original in pixels.
        mode: "pad" (aspect kept, black border) or "stretch".
        left, top, inner_width, inner_height: where the resized original lies in the prepared image.
    """

    width: int
    height: int
    mode: str
    left: int
    top: int
    inner_width: int
    inner_height: int


@dataclass(frozen=True, slots=True)
class Consent:
    """The owner's recorded permission to send an image to a hosted model."""

    by: str
    agreement: str


@dataclass(frozen=True, slots=True)
class SourceImage:
    """One image of a catalogue, prepared. Unknown attributes say "unknown", never a guess.

    Attributes:
        id: the source's own image id, unique in its catalogue (e.g. "s50000230", "0_left").
        dataset, version: where it comes from.
        modality: "chest_xray", "brain_mri", "fundus", or a user's own.
        labels: names of findings present; the modality's normal class when none is.
        licence: what its owner allows.
        group: patient or study that must never be split; None where the source has no such id.
        split: the source's own split, or "".
        source_sha256, prepared_sha256: of the file read and of the prepared PNG or JPEG blob.
        frame: index in a multi-frame or multi-slice file.
        geometry: how it was brought to the prepared size.
        view, projection, position, sequence, contrast, plane, laterality: as recorded, else "unknown".
        spacing_mm: pixel spacing of the prepared image where known.
        text_checked: whether burned-in text was looked for.
        synthetic: True where the pixels are themselves rendered or edited.
        consent: permission for hosted models, if recorded.
        note: what a reader must know (e.g. "population average", "not a healthy chest").
    """

    id: str
    dataset: str
    modality: str
    labels: tuple[str, ...]
    licence: Licence
    source_sha256: str
    prepared_sha256: str
    geometry: Geometry
    version: str = ""
    group: str | None = None
    split: str = ""
    frame: int = 0
    view: str = "unknown"
    projection: str = "unknown"
    position: str = "unknown"
    sequence: str = "unknown"
    contrast: str = "unknown"
    plane: str = "unknown"
    laterality: str = "unknown"
    spacing_mm: float | None = None
    text_checked: bool = False
    synthetic: bool = False
    consent: Consent | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class EditTask:
    """Add one finding to, or remove it from, one image."""

    id: str
    image_id: str
    modality: str
    finding: str
    direction: Direction
    kind: TaskKind = TaskKind.EDIT


def task_id(source_sha256: str, frame: int, finding: str, direction: Direction) -> str:
    """Identity of a task: 20 hex digits from what is edited and how, never from recipe or order."""
    text = "\x1f".join((source_sha256, str(frame), finding, direction.value))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def derive_seed(run_seed: int, *parts: object) -> int:
    """A 63-bit seed from the run's seed and what it is for, e.g. (task id, round, step, draw)."""
    text = "\x1f".join(str(part) for part in (run_seed, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


# --- what a judge says and what follows --------------------------------------------------------


class Criterion(StrEnum):
    """The four criteria of Med-Banana-50K, 4.1."""

    INSTRUCTION_COMPLIANCE = "instruction_compliance"
    STRUCTURAL_PLAUSIBILITY = "structural_plausibility"
    REALISM = "realism"
    FIDELITY_PRESERVATION = "fidelity_preservation"


@dataclass(frozen=True, slots=True)
class RubricCriterion:
    """One criterion: its weight in the score and the question that it asks."""

    name: Criterion
    weight: float
    question: str


@dataclass(frozen=True, slots=True)
class Rubric:
    """A named, versioned set of criteria whose weights sum to 1."""

    name: str
    version: int
    criteria: tuple[RubricCriterion, ...]

    def __post_init__(self) -> None:
        total = sum(criterion.weight for criterion in self.criteria)
        if abs(total - 1.0) > 1e-9:
            raise ValueError(f"rubric {self.name}: weights sum to {total:g}, not 1")


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
    """One criterion as a judge observed it."""

    passed: bool
    confidence: float | None = None
    codes: tuple[FailureCode, ...] = ()
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Observations:
    """What a judge reports of one edit; it does not decide.

    Attributes:
        criteria: every criterion of the rubric, by its name.
        has_disease: the target finding is visible in the edited image (right for `add`, wrong for `remove`).
        other_disease: a finding other than the target appeared.
        opinion: the judge's own overall yes or no, where it gave one.
        reason: free text, with evidence.
    """

    criteria: dict[Criterion, CriterionResult]
    has_disease: bool
    other_disease: bool
    opinion: bool | None
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Observations and what each policy makes of them; `qualified` is the run's own policy's."""

    judge: str
    observations: Observations
    qualified_all_pass: bool
    qualified_weighted: bool
    score: float
    qualified: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """One round of a task: an instruction, and what came of it. Image fields are blob hashes.

    An attempt exists once its instruction does; a refused or imageless edit is an attempt without image.
    """

    task_id: str
    generation: int
    round: int
    instruction: str
    edit_outcome: Outcome | None = None
    edited: str | None = None
    raw: str | None = None
    mask: str | None = None
    support: str | None = None
    judge_outcome: Outcome | None = None
    verdict: Verdict | None = None
    superseded: bool = False


# --- model calls ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call consumed and who answered. None means the provider did not say."""

    served_model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    input_image_tokens: int | None = None
    output_image_tokens: int | None = None
    images: int | None = None
    finish_reason: str = ""
    response_id: str = ""
    thought_summary: str = ""


@dataclass(frozen=True, slots=True)
class CallKey:
    """Identity of a memoised call; a replay finds its answer by this key."""

    task_id: str
    generation: int
    round: int
    step: Step
    draw: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """One try of one model call as the journal keeps it."""

    key: CallKey
    tries: int
    model: str
    request_hash: str
    outcome: Outcome | None
    usage: Usage
    cost_usd: float | None
    latency_s: float | None


# --- numbers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Score:
    """A measured number, or the reason why there is none. Unscored is never 0 and never -1."""

    value: float | None
    reason: str = ""

    @property
    def scored(self) -> bool:
        return self.value is not None


def unscored(reason: str) -> Score:
    """A score without a value, and why."""
    return Score(None, reason)


@dataclass(frozen=True, slots=True)
class Rating:
    """What one person said about one attempt."""

    rater: str
    task_id: str
    generation: int
    round: int
    dimension: str
    value: float
    at: str = ""
    note: str = ""
