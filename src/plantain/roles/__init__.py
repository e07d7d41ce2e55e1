"""The roles that a model can fill, with their requests and replies.

Journal, retries, limits and costs are handled by `plantain.calls`. A role does not raise for errors of a model or
provider: it returns the outcome, with the usage.

Every role has a `name`, "provider/model", and a `fingerprint`: a short text that changes whenever its answers could
(version of an offline model; prompt hash, sampling and thinking of a hosted one). Both enter the request hash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, ParamSpec, Protocol, TypeVar, cast, runtime_checkable

from plantain.records import (
    OK,
    Attempt,
    Direction,
    EditTask,
    Finding,
    Observations,
    Outcome,
    OutcomeKind,
    Rubric,
    SourceImage,
    Usage,
)

if TYPE_CHECKING:  # naming models loads no arrays
    from plantain.engines.contract import WorkEngine
    from plantain.pixels.arrays import Pixels

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An image file: its bytes and media type, "image/jpeg" or "image/png"; an edit may be of another type."""

    data: bytes = field(repr=False)
    media_type: str


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """The reply of a model in a role: a value if the outcome is ok, and the usage in any case.

    Attributes:
        value: the result; None unless `outcome.ok`.
        outcome: how the call ended.
        usage: tokens, served model, finish reason; an unknown count is None.
        raw: the model's answer as text, without image bytes, for the journal; "" if it has none.
    """

    value: T | None
    outcome: Outcome = OK
    usage: Usage = field(default_factory=Usage)
    raw: str = ""


def failed(outcome: Outcome, usage: Usage | None = None, raw: str = "") -> Reply[T]:
    """Return a reply without a value: `outcome` states why; `usage` is None if unknown; `raw` as in `Reply`."""
    return Reply(None, outcome, usage or Usage(), raw)


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The request to a writer: write the instruction of the next round of a task.

    Attributes:
        task, finding: the task with its direction, and the finding to add or remove.
        image, original: metadata of the original, and its JPEG file.
        history: all earlier rounds since the last retry, with instructions and verdicts, oldest first.
        seed: seed of the writer's random choices.
    """

    task: EditTask
    finding: Finding
    image: SourceImage
    original: EncodedImage
    history: tuple[Attempt, ...]
    seed: int

    @property
    def round(self) -> int:
        """The number of the round to write for, from 1."""
        return len(self.history) + 1


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A worked example that an editor may learn from in its prompt: image, instruction, edited image."""

    before: EncodedImage
    instruction: str
    after: EncodedImage


@dataclass(frozen=True, slots=True)
class EditRequest:
    """The request to an editor: edit the original, never the result of an earlier round.

    Attributes:
        image: metadata of the original.
        original: the original's file: a square JPEG in a build, a PNG of any shape in a benchmark.
        instruction: the text for the editor.
        seed: seed of the editor's random choices.
        demonstrations: worked examples in order; an editor that accepts none returns "not applicable".
        region: PNG, one channel, 255 where the change belongs; None in a build, and if the editor requires none.
        parameters: settings for this request only, instead of the editor's, e.g. {"guidance": 7.5}; only names
            in the editor's `adjustable`.
        concept: subject of the edit in a word or two, for editors that do not read sentences; "" if unknown.
        direction: add or remove; None for any other change.
        round: round of the task, from 1: a deterministic editor can edit differently in a later one.
        task_seed: seed shared by all rounds of a task, so that a refinement can keep its place; None outside a build.
    """

    image: SourceImage
    original: EncodedImage
    instruction: str
    seed: int
    demonstrations: tuple[Demonstration, ...] = ()
    region: EncodedImage | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    concept: str = ""
    direction: Direction | None = None
    round: int = 1
    task_seed: int | None = None


@dataclass(frozen=True, slots=True)
class NormalForm:
    """An edit in the form in which it is judged and released: the bytes of its file, and the SHA-256 of its pixels."""

    data: bytes = field(repr=False)
    pixel_sha256: str

    @classmethod
    def of(cls, data: bytes) -> NormalForm | None:
        """Convert an editor's image file; return None if it is not a readable square image."""
        from plantain.pixels.decode import BadImage, pixel_sha256
        from plantain.pixels.encode import normalise

        try:
            normal = normalise(data)
        except BadImage:
            return None
        return cls(normal, pixel_sha256(normal))


@dataclass(frozen=True, slots=True)
class EditedImage:
    """The output of an editor.

    Attributes:
        image: the file as the model returned it, unchanged; it may be of another type than JPEG or PNG.
        mask: PNG, one channel, 255 where the editor meant to change pixels; None if unknown.
        support: extent of the change: "local", "diffuse" or "warp" (pixels move); "" if unknown.
        note: remark on how it was made, in one line; "" for none.
        pixels: `image` decoded, uint8 (H, W, 3) RGB; if None, it is decoded when needed.
        normal: `image` as it is judged and released; if None, it is made when needed.
    """

    image: EncodedImage
    mask: EncodedImage | None = None
    support: str = ""
    note: str = ""
    pixels: Pixels | None = field(default=None, repr=False, compare=False)
    normal: NormalForm | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """The request to a judge: report on one edit. It never contains the editor's mask.

    Attributes:
        image: metadata of the original.
        original, edited: the files before and after the edit.
        instruction: the instruction of the edit; for a benchmark's variant "D" the expected change.
        finding: the finding to add or remove; None in a benchmark without findings.
        direction: add, remove or change.
        rubric: the criteria to report on.
        seed: seed of the judge's random choices.
        truth: the real image after the procedure; None unless a benchmark has one and shows it to the judge.
        variant: kind of `instruction` in a benchmark: "P" (the prompt) or "D" (a description of the change).
        task: id of the task in its run, by which stored verdicts of human readers are found; "" if none.
    """

    image: SourceImage
    original: EncodedImage
    edited: EncodedImage
    instruction: str
    finding: Finding | None
    direction: Direction
    rubric: Rubric
    seed: int
    truth: EncodedImage | None = None
    variant: str = "P"
    task: str = ""


@dataclass(frozen=True, slots=True)
class DescribeRequest:
    """The request to a describer: a real pair, and its owner's statements.

    Attributes:
        pair: one image, the image before on the left, the image after on the right.
        organ, task: the treated organ, and the kind of change.
        prompt: the instruction; "" if the describer should write one.
        modality: the owner's name of the imaging modality; "" if unknown.
        image: metadata of the image before.
        seed: seed of the describer's random choices.
    """

    pair: EncodedImage
    organ: str
    task: str
    prompt: str
    modality: str
    image: SourceImage
    seed: int


@dataclass(frozen=True, slots=True)
class ChangeDescription:
    """The description of a pair (MedEBench, 2.1.2 and 2.1.4).

    Attributes:
        prompt: the instruction that leads from the image before to the image after.
        rephrasings: paraphrases of the prompt, without the prompt.
        modality, action, entity, region, context: properties of the change; "" if unknown. `context` must not change.
        description: the expected change in one sentence; "" if unknown.
    """

    prompt: str
    rephrasings: tuple[str, ...] = ()
    modality: str = ""
    action: str = ""
    entity: str = ""
    region: str = ""
    context: str = ""
    description: str = ""


@runtime_checkable
class Describer(Protocol):
    """The interface of describers, which describe a real pair of images for a benchmark."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def describe(self, request: DescribeRequest) -> Reply[ChangeDescription]: ...


@runtime_checkable
class Writer(Protocol):
    """The interface of writers: `write` makes the instruction of a round. A model's fault is an outcome, not raised."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def write(self, request: WriteRequest) -> Reply[str]: ...


@runtime_checkable
class Editor(Protocol):
    """The interface of editors: `edit` edits an image by an instruction. A model's fault is an outcome, not raised."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def edit(self, request: EditRequest) -> Reply[EditedImage]: ...


@runtime_checkable
class Adjustable(Protocol):
    """An editor with settings that `EditRequest.parameters` may replace, by name."""

    @property
    def adjustable(self) -> frozenset[str]: ...


@runtime_checkable
class TakesDemonstrations(Protocol):
    """An editor that accepts worked examples in its prompt, at most `most_demonstrations`."""

    @property
    def most_demonstrations(self) -> int: ...


@runtime_checkable
class TakesRegion(Protocol):
    """An editor that requires a region, so that its edits do not show that it can localise a finding."""

    @property
    def takes_region(self) -> bool: ...


@runtime_checkable
class Judge(Protocol):
    """The interface of judges: `judge` reports on an edit by a rubric. A model's fault is an outcome, not raised."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def judge(self, request: JudgeRequest) -> Reply[Observations]: ...


@runtime_checkable
class KnowsRubrics(Protocol):
    """A judge whose fingerprint depends on the rubric, or that can only judge by some."""

    def fingerprint_by(self, rubric: Rubric) -> str:
        """Return the judge's fingerprint for a rubric. Raise InputError if it cannot judge by the rubric."""
        ...


def fingerprint_of(judge: Judge, rubric: Rubric) -> str:
    """Return a judge's fingerprint for a rubric. Raise InputError if it cannot judge by the rubric."""
    return judge.fingerprint_by(rubric) if isinstance(judge, KnowsRubrics) else judge.fingerprint


NO_REGION = Outcome(OutcomeKind.NOT_APPLICABLE, "this editor requires a region, and none is known")


@dataclass(frozen=True, slots=True)
class AnnouncedLimit:
    """A rate limit that a provider announces with an answer.

    Attributes:
        what: the counted unit.
        per_minute: allowed units per minute.
        left: units left now; None if not stated.
        reset_s: seconds until all units are available again.
    """

    what: Literal["requests", "tokens"]
    per_minute: float
    left: float | None = None
    reset_s: float | None = None


@dataclass(slots=True)
class Exchange:
    """Data that transport and sender of one call share.

    Attributes:
        limits: limits announced by the provider, added by the transport.
        ran_on: the kind of the engine's worker that answered; "" if none did.
    """

    limits: list[AnnouncedLimit] = field(default_factory=list)
    ran_on: str = ""


exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)
"""The call that is being sent; None for requests outside of a run's calls."""


def announce(limits: list[AnnouncedLimit]) -> None:
    """Report a provider's announced limits to the sender of the current call; do nothing outside a call."""
    here = exchange.get()
    if here is not None:
        here.limits.extend(limits)


async def on_worker(
    engine: WorkEngine, role: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T | Outcome:
    """Run a module-level function on a worker of a role ("editor", "judge"), and record the kind of worker.

    Return its result, or a transport outcome if no worker finished it.
    """
    assert not kwargs, "a worker takes positional arguments"
    ran = await engine.run(role, function, args)
    here = exchange.get()
    if here is not None:
        here.ran_on = ran.on
    if ran.broken:
        return Outcome(OutcomeKind.TRANSPORT, ran.broken, fatal=True)
    if ran.lost:
        why = f"worker lost, with its answer if it had one: {ran.lost}"
        return Outcome(OutcomeKind.TRANSPORT, why, lost=True)
    return cast(T, ran.value)
