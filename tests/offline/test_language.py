from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plantain.findings import load_taxonomy
from plantain.offline.language import PHRASINGS, Intent, compose, read_instruction
from plantain.records import BUILD_DIRECTIONS, Direction, Finding

TAXONOMY = load_taxonomy()
TARGETS = tuple(f for m in TAXONOMY.modalities for f in TAXONOMY.targets(m, optional=True))
EXTENTS = (None, "small", "moderate", "large")
CONSPICUITIES = (None, "subtle", "moderate", "marked")
ADD, REMOVE = Direction.ADD, Direction.REMOVE
CHEST, BRAIN, FUNDUS = "chest_xray", "brain_mri", "fundus"


def read(modality: str, text: str) -> Intent:
    return read_instruction(text, TAXONOMY.of(modality))


@st.composite
def intents(draw: st.DrawFn) -> tuple[Finding, Intent]:
    finding = draw(st.sampled_from(TARGETS))
    return finding, Intent(
        finding.name,
        draw(st.sampled_from(BUILD_DIRECTIONS)),
        draw(st.sampled_from((None, *finding.sides))),
        draw(st.sampled_from((None, *finding.zones))),
        draw(st.sampled_from(EXTENTS)),
        draw(st.sampled_from(CONSPICUITIES)),
    )


@settings(max_examples=400, deadline=None)
@given(intents(), st.integers(0, PHRASINGS - 1))
def test_compose_reads_back_any_combination(drawn: tuple[Finding, Intent], phrasing: int) -> None:
    finding, intent = drawn
    text = compose(intent, finding, phrasing=phrasing)
    assert read(finding.modality, text) == intent
    assert text[0].isupper()
    assert text.endswith(".")


@pytest.mark.parametrize(
    ("modality", "text", "intent"),
    [
        (CHEST, "Add a small left apical pneumothorax, keeping the right lung unchanged.",
         Intent("Pneumothorax", ADD, "left", "apical", "small")),
(BRAIN, "Remove the tumour from the right frontal lobe", Intent("glioma", REMOVE, "right", "frontal")),
(FUNDUS, "erase all drusen", Intent("AMD", REMOVE)),
(CHEST, "Add signs of pneumothorax in the right lung field, showing a visible visceral pleural line with "
         "absence of lung markings beyond it, while preserving the original image grain and contrast.",
         Intent("Pneumothorax", ADD, "right")),
(CHEST, "Show this film with the left effusion removed", Intent("Pleural Effusion", REMOVE, "left")),
(CHEST, "Add pleural effusions on the left and the right", Intent("Pleural Effusion", ADD, "bilateral")),
(BRAIN, "Insert a tumour in the sella", Intent("pituitary", ADD, None, "sella")),
(CHEST, "make it look normal", Intent(None, REMOVE)),
(FUNDUS, "Remove glaucoma", Intent("Glaucoma", REMOVE)),
(CHEST, "Edit this film to show a moderate right-sided pleural effusion: blunt the right costophrenic angle "
         "and add a hazy opacity there, keeping the left lung as it is.",
         Intent("Pleural Effusion", ADD, "right", "basal", "moderate")),
(BRAIN, "Add a ring-enhancing mass in the left temporal lobe consistent with high-grade glioma, with "
         "surrounding edema and mild midline shift to the right.", Intent("glioma", ADD, "left", "temporal")),
(CHEST, "", Intent(None, None)),
    ],
)  # fmt: skip
def test_read_instruction_written_by_humans(modality: str, text: str, intent: Intent) -> None:
    assert read(modality, text) == intent


@pytest.mark.parametrize(
    "text",
    [
        "Keep the right lung unchanged and add an effusion on the left.",
        "Without changing the right lung, add a left effusion.",
        "Add a left pleural effusion but do not touch the right lung",
        "Add an effusion on the right of the image.",
        "Do not add a right pneumothorax. Add a left effusion.",
    ],
)
def test_only_the_commanding_clause_names_the_side(text: str) -> None:
    intent = read(CHEST, text)
    assert (intent.finding, intent.direction, intent.side) == ("Pleural Effusion", ADD, "left")


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("Remove the pleural effusion and keep what is left.", None),
        ("Remove what is left of the right pleural effusion", "right"),
        ("Remove the pleural effusion right away", None),
    ],
)
def test_left_and_right_as_ordinary_words_are_not_sides(text: str, side: str | None) -> None:
    intent = read(CHEST, text)
    assert (intent.finding, intent.direction, intent.side) == ("Pleural Effusion", REMOVE, side)


@pytest.mark.parametrize("text", ["Do not add a pneumothorax.", "Keep the effusion."])
def test_a_forbidden_edit_is_not_commanded(text: str) -> None:
    intent = read(CHEST, text)
    assert intent.finding is None
    assert intent.direction is None


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("Add consolidation without adding effusion", "Consolidation"),
        ("Add a nodule, not a pneumothorax", "Lung Lesion"),
        ("Do not add an effusion but add a pneumothorax instead", "Pneumothorax"),
    ],
)
def test_negated_findings_are_ignored(text: str, finding: str) -> None:
    assert read(CHEST, text).finding == finding


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    for modality in TAXONOMY.modalities:
        assert isinstance(read(modality, text), Intent)
