from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.requests import source_image
from plantain.findings import load_taxonomy, zones_on
from plantain.offline.language import Intent, read_instruction
from plantain.offline.writer import TemplateWriter, write_instruction
from plantain.records import (
    BUILD_DIRECTIONS,
    OK,
    Attempt,
    Criterion,
    CriterionResult,
    Direction,
    EditTask,
    FailureCode,
    Finding,
    Observations,
    Outcome,
    OutcomeKind,
    SourceImage,
    Verdict,
    derive_seed,
)
from plantain.roles import EncodedImage, Writer, WriteRequest

TAXONOMY = load_taxonomy()
TARGETS = tuple(f for m in TAXONOMY.modalities for f in TAXONOMY.targets(m, optional=True))
ADD, REMOVE = Direction.ADD, Direction.REMOVE
NOTHING = EncodedImage(b"", "image/jpeg")


def image(modality: str, **known: str) -> SourceImage:
    return source_image(**{"modality": modality, "view": "unknown", "projection": "unknown", **known})


def write(
    finding: Finding, direction: Direction, history: list[Attempt], seed: int, on: SourceImage | None = None
) -> str:
    task = EditTask("t", "i", finding.modality, finding.name, direction)
    on = on or image(finding.modality)
    return write_instruction(WriteRequest(task, finding, on, NOTHING, tuple(history), seed))


def read(finding: Finding, text: str) -> Intent:
    return read_instruction(text, TAXONOMY.of(finding.modality))


def judged(number: int, instruction: str, *codes: FailureCode) -> Attempt:
    """Return a round whose instruction compliance failed with these codes."""
    criteria = {criterion: CriterionResult(True) for criterion in Criterion}
    criteria[Criterion.INSTRUCTION_COMPLIANCE] = CriterionResult(False, None, codes)
    observations = Observations(criteria)
    verdict = Verdict("j", observations, False, False, 0.6, False)
    return Attempt("t", 0, number, instruction, OK, "blob", judge_outcome=OK, verdict=verdict)


def imageless(number: int, instruction: str, kind: OutcomeKind) -> Attempt:
    return Attempt("t", 0, number, instruction, Outcome(kind, "cannot"))


def refined(
    finding: Finding, direction: Direction, *codes: FailureCode, seed: int = 5
) -> tuple[Intent, Intent]:
    """Return the requests of round 1 and of round 2 after these codes."""
    first = write(finding, direction, [], seed)
    second = write(finding, direction, [judged(1, first, *codes)], seed + 1)
    return read(finding, first), read(finding, second)


def find_seed(finding: Finding, **wanted: str) -> int:
    """Return the first seed whose round 1 requests these properties."""
    for seed in range(500):
        intent = read(finding, write(finding, ADD, [], seed))
        if all(getattr(intent, name) == value for name, value in wanted.items()):
            return seed
    raise AssertionError(f"no seed asks for {wanted}")


PNEUMOTHORAX = TAXONOMY.get("chest_xray", "Pneumothorax")
OPACITY = TAXONOMY.get("chest_xray", "Lung Opacity")
GLIOMA = TAXONOMY.get("brain_mri", "glioma")


def test_template_writer_fills_the_role() -> None:
    writer = TemplateWriter()
    assert isinstance(writer, Writer)
    task = EditTask("t", "i", "chest_xray", "Pneumothorax", ADD)
    request = WriteRequest(task, PNEUMOTHORAX, image("chest_xray"), NOTHING, (), 1)
    reply = asyncio.run(writer.write(request))
    assert reply.outcome.ok
    assert reply.value == write(PNEUMOTHORAX, ADD, [], 1)
    assert reply.usage.served_model == f"offline/templates@{writer.fingerprint}"


@pytest.mark.parametrize("finding", TARGETS, ids=lambda f: f.name)
@pytest.mark.parametrize("direction", list(BUILD_DIRECTIONS))
def test_an_instruction_is_read_as_written(finding: Finding, direction: Direction) -> None:
    for seed in range(12):
        text = write(finding, direction, [], seed)
        intent = read(finding, text)
        assert (intent.finding, intent.direction) == (finding.name, direction), text
        assert intent == read_instruction(text, (finding,)), text
        if direction is REMOVE:  # place and look are not invented
            assert intent == Intent(finding.name, REMOVE), text
        else:
            assert intent.side in (finding.sides or (None,)), text
            assert intent.zone in (finding.zones or (None,)), text
            assert intent.extent or intent.conspicuity, text


def test_place_follows_view_and_plane() -> None:
    supine = image("chest_xray", position="supine")
    sagittal = image("brain_mri", plane="sagittal")
    for seed in range(20):
        assert read(PNEUMOTHORAX, write(PNEUMOTHORAX, ADD, [], seed, supine)).zone == "basal"
        intent = read(GLIOMA, write(GLIOMA, ADD, [], seed, sagittal))
        assert intent.side is None
        assert intent.zone in zones_on(GLIOMA, sagittal)


@pytest.mark.parametrize("finding", [OPACITY, GLIOMA, PNEUMOTHORAX], ids=lambda f: f.name)
def test_too_subtle_asks_for_more(finding: Finding) -> None:
    seed = find_seed(finding, extent="small", conspicuity="subtle")
    before, after = refined(finding, ADD, FailureCode.TOO_SUBTLE, seed=seed)
    assert after.conspicuity == "moderate"
    assert (after.side, after.zone) == (before.side, before.zone)
    seed = find_seed(finding, extent="small", conspicuity="marked")
    _, after = refined(finding, ADD, FailureCode.TOO_SUBTLE, seed=seed)
    assert (after.extent, after.conspicuity) == ("moderate", "marked")


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(TARGETS),
    st.sampled_from(BUILD_DIRECTIONS),
    st.lists(
        st.one_of(
            st.lists(st.sampled_from(FailureCode), max_size=3, unique=True),
            st.sampled_from((OutcomeKind.NOT_APPLICABLE, OutcomeKind.NO_IMAGE, OutcomeKind.REFUSED)),
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 2**62),
    st.sampled_from(("unknown", "sagittal", "axial")),
)
def test_no_instruction_is_repeated_after_any_outcome(
    finding: Finding,
    direction: Direction,
    fates: list[list[FailureCode] | OutcomeKind],
    seed: int,
    plane: str,
) -> None:
    history: list[Attempt] = []
    on = image(finding.modality, plane=plane)
    for number, fate in enumerate(fates, 1):
        text = write(finding, direction, history, derive_seed(seed, number), on)
        assert text not in {attempt.instruction for attempt in history}
        intent = read(finding, text)
        assert (intent.finding, intent.direction) == (finding.name, direction)
        assert intent.zone in (None, *finding.zones)
        if isinstance(fate, OutcomeKind):
            history.append(imageless(number, text, fate))
        else:
            history.append(judged(number, text, *fate))
