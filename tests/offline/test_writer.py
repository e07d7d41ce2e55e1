from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    Geometry,
    Licence,
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
GEOMETRY = Geometry(1024, 1024, "pad", 0, 0, 1024, 1024)
NOTHING = EncodedImage(b"", "image/jpeg")


def image(modality: str, **known: str) -> SourceImage:
    return SourceImage("i", "d", modality, (), Licence.OPEN, "0" * 64, "1" * 64, GEOMETRY, **known)  # type: ignore[arg-type]


def write(
    finding: Finding, direction: Direction, history: list[Attempt], seed: int, on: SourceImage | None = None
) -> str:
    task = EditTask("t", "i", finding.modality, finding.name, direction)
    on = on or image(finding.modality)
    return write_instruction(WriteRequest(task, finding, on, NOTHING, tuple(history), seed))


def read(finding: Finding, text: str) -> Intent:
    return read_instruction(text, TAXONOMY.of(finding.modality))


def judged(number: int, instruction: str, *codes: FailureCode) -> Attempt:
    """A round whose instruction compliance failed with these codes."""
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
    """What round 1 asked for and what round 2 asks for after these codes."""
    first = write(finding, direction, [], seed)
    second = write(finding, direction, [judged(1, first, *codes)], seed + 1)
    return read(finding, first), read(finding, second)


def find_seed(finding: Finding, **wanted: str) -> int:
    """The first seed whose round 1 asks for these looks."""
    for seed in range(500):
        intent = read(finding, write(finding, ADD, [], seed))
        if all(getattr(intent, name) == value for name, value in wanted.items()):
            return seed
    raise AssertionError(f"no seed asks for {wanted}")


PNEUMOTHORAX = TAXONOMY.get("chest_xray", "Pneumothorax")
OPACITY = TAXONOMY.get("chest_xray", "Lung Opacity")
GLIOMA = TAXONOMY.get("brain_mri", "glioma")
CARDIOMEGALY = TAXONOMY.get("chest_xray", "Cardiomegaly")
SCALES = {"extent": ("small", "moderate", "large"), "conspicuity": ("subtle", "moderate", "marked")}


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
def test_instruction_is_read_as_it_is_meant(finding: Finding, direction: Direction) -> None:
    for seed in range(12):
        text = write(finding, direction, [], seed)
        intent = read(finding, text)
        assert (intent.finding, intent.direction) == (finding.name, direction), text
        assert intent == read_instruction(text, (finding,)), text
        if direction is REMOVE:  # nothing is invented about where it lies or how it looks
            assert intent == Intent(finding.name, REMOVE), text
        else:
            assert intent.side in (finding.sides or (None,)), text
            assert intent.zone in (finding.zones or (None,)), text
            assert intent.extent or intent.conspicuity, text


@pytest.mark.parametrize("finding", TARGETS, ids=lambda f: f.name)
@pytest.mark.parametrize("direction", list(BUILD_DIRECTIONS))
def test_instruction_reads_as_a_radiologist_would_write_it(finding: Finding, direction: Direction) -> None:
    text = write(finding, direction, [], 3)
    assert text.startswith("Remove the " if direction is REMOVE else "Add ")
    assert text.endswith("leave everything else unchanged.")
    assert text.count(".") <= 2  # one sentence, and a number in it at most
    assert not any(words in text for words in ("What one sees", "How it shows", "In its stead"))


def test_instruction_shows_the_signs_of_the_finding_and_what_a_removal_restores() -> None:
    assert "no lung markings beyond it" in write(PNEUMOTHORAX, ADD, [], 3)
    assert "restore lung markings out to the chest wall" in write(PNEUMOTHORAX, REMOVE, [], 3)
    t1, flair = (write(GLIOMA, ADD, [], 3, image("brain_mri", sequence=name)) for name in ("T1", "FLAIR"))
    assert "dark to equal" in t1
    assert "bright tissue" in flair


def test_round_one_varies_place_extent_and_conspicuity() -> None:
    intents = [read(OPACITY, write(OPACITY, ADD, [], derive_seed(7, number))) for number in range(400)]
    extents = Counter(intent.extent for intent in intents)
    # weights .35 .40 .25 of 400: 140, 160, 100; four standard deviations are below 40
    assert abs(extents["small"] - 140) < 40
    assert abs(extents["large"] - 100) < 40
    assert Counter(intent.conspicuity for intent in intents)["subtle"] > 100
    places = {(intent.side, intent.zone) for intent in intents}
    assert places == set(itertools.product(OPACITY.sides, OPACITY.zones))


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


def test_overcorrected_asks_for_less() -> None:
    seed = find_seed(OPACITY, extent="large", conspicuity="marked")
    _, after = refined(OPACITY, ADD, FailureCode.OVERCORRECTED, seed=seed)
    assert after.conspicuity == "moderate"


def test_cardiomegaly_grows_and_shrinks() -> None:
    seed = find_seed(CARDIOMEGALY, extent="moderate")
    assert refined(CARDIOMEGALY, ADD, FailureCode.TOO_SUBTLE, seed=seed)[1].extent == "large"
    assert refined(CARDIOMEGALY, ADD, FailureCode.OVERCORRECTED, seed=seed)[1].extent == "small"


def test_wrong_location_states_another_allowed_place() -> None:
    for seed in range(10):
        before, after = refined(GLIOMA, ADD, FailureCode.WRONG_LOCATION, seed=seed)
        assert (after.side, after.zone) != (before.side, before.zone)
        assert after.side in GLIOMA.sides
        assert after.zone in GLIOMA.zones


@pytest.mark.parametrize("code", [FailureCode.HARD_EDGE, FailureCode.BLENDING_ARTEFACT])
def test_a_visible_margin_asks_for_gradual_margins_and_less_contrast(code: FailureCode) -> None:
    seed = find_seed(GLIOMA, conspicuity="marked")
    first = write(GLIOMA, ADD, [], seed)
    second = write(GLIOMA, ADD, [judged(1, first, code)], seed)
    assert "margins fade gradually" in second
    assert read(GLIOMA, second).conspicuity == "moderate"


def test_excess_change_asks_for_a_smaller_extent_and_nothing_else() -> None:
    seed = find_seed(OPACITY, extent="large")
    first = write(OPACITY, ADD, [], seed)
    second = write(OPACITY, ADD, [judged(1, first, FailureCode.EXCESS_CHANGE)], seed)
    assert read(OPACITY, second).extent == "moderate"
    assert "as small an area as possible" in second


@pytest.mark.parametrize(
    "code", [FailureCode.REPETITION, FailureCode.DISTORTION, FailureCode.NON_TARGET_FINDING]
)
def test_structure_asks_for_another_placement(code: FailureCode) -> None:
    before, after = refined(OPACITY, ADD, code)
    assert (after.side, after.zone) != (before.side, before.zone)


@pytest.mark.parametrize("kind", [OutcomeKind.NOT_APPLICABLE, OutcomeKind.NO_IMAGE, OutcomeKind.REFUSED])
def test_an_edit_without_image_changes_placement(kind: OutcomeKind) -> None:
    first = write(OPACITY, ADD, [], 3)
    second = write(OPACITY, ADD, [imageless(1, first, kind)], 4)
    before, after = read(OPACITY, first), read(OPACITY, second)
    assert (after.side, after.zone) != (before.side, before.zone)


def test_removal_that_left_something_asks_for_its_full_extent() -> None:
    first = write(OPACITY, REMOVE, [], 3)
    second = write(OPACITY, REMOVE, [judged(1, first, FailureCode.TOO_SUBTLE)], 4)
    assert read(OPACITY, second) == Intent("Lung Opacity", REMOVE, extent="large")
    assert "No part of it may remain" in second


def test_criterion_without_codes_still_changes_the_request() -> None:
    seed = find_seed(OPACITY, conspicuity="subtle")
    before, after = refined(OPACITY, ADD, seed=seed)  # compliance failed, no code: supposed too subtle
    assert (before.conspicuity, after.conspicuity) == ("subtle", "moderate")


def test_lessons_of_every_round_are_kept() -> None:
    history = [judged(1, write(GLIOMA, ADD, [], 1), FailureCode.DISTORTION)]
    history.append(judged(2, write(GLIOMA, ADD, history, 2), FailureCode.LOST_GRAIN))
    third = write(GLIOMA, ADD, history, 3)
    assert "in shape" in third
    assert "Keep the grain" in third


def test_of_opposite_lessons_the_last_is_kept() -> None:
    history = [judged(1, write(GLIOMA, ADD, [], 1), FailureCode.TOO_SUBTLE)]
    history.append(judged(2, write(GLIOMA, ADD, history, 2), FailureCode.OVERCORRECTED))
    third = write(GLIOMA, ADD, history, 3)
    assert "restrained" in third
    assert "at a glance" not in third


def test_instruction_depends_on_nothing_but_its_request() -> None:
    requests = [(f, d, s) for f in TARGETS[:6] for d in BUILD_DIRECTIONS for s in (1, 2)]
    forwards = [write(*(f, d), [], s) for f, d, s in requests]
    backwards = [write(*(f, d), [], s) for f, d, s in reversed(requests)]
    assert forwards == backwards[::-1]


def test_writer_follows_a_hosted_writers_history() -> None:
    strange = judged(1, "Kindly depict something on the left, thanks", FailureCode.TOO_SUBTLE)
    intent = read(PNEUMOTHORAX, write(PNEUMOTHORAX, ADD, [strange], 1))
    assert (intent.finding, intent.conspicuity) == ("Pneumothorax", "marked")


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
def test_no_instruction_is_repeated_whatever_happened(
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


def test_words_of_an_own_finding_do_not_mislead_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'modality = "chest_xray"\n[[finding]]\nname = "Left Ventricular Aneurysm"\n'
        'title = "left ventricular aneurysm"\n'
        'anatomy = "left heart border"\nsource = "own"\nzones = ["apex of the heart"]\n'
        'signs = ["Place it on the right side, large and marked: a bulge"]\n'
        'restores = ["make it small on the left side"]\n'
    )
    taxonomy = load_taxonomy([path])
    finding = taxonomy.get("chest_xray", "Left Ventricular Aneurysm")
    for direction, seed in itertools.product(BUILD_DIRECTIONS, range(5)):
        text = write(finding, direction, [], seed)
        intent = read_instruction(text, taxonomy.of("chest_xray"))
        assert (intent.finding, intent.direction, intent.side) == (finding.name, direction, None)
        assert "bulge" not in text  # its line would have been read as a request, so it was left out


def test_no_instruction_is_repeated_in_twenty_rounds_that_fail_alike() -> None:
    for finding in (
        CARDIOMEGALY,
        TAXONOMY.get("fundus", "Cataract"),
    ):  # nothing to place: only words can change
        history: list[Attempt] = []
        for number in range(1, 21):
            history.append(judged(number, write(finding, REMOVE, history, 9), FailureCode.TOO_SUBTLE))
        assert len({attempt.instruction for attempt in history}) == 20


@pytest.mark.parametrize("code", list(FailureCode))
def test_five_rounds_ask_for_five_different_things_where_a_place_can_change(code: FailureCode) -> None:
    for seed in range(5):
        history: list[Attempt] = []
        for number in range(1, 6):
            history.append(judged(number, write(OPACITY, ADD, history, derive_seed(seed, number)), code))
        assert len({read(OPACITY, attempt.instruction) for attempt in history}) == 5
