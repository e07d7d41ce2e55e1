from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plantain.findings import PLACES, load_taxonomy
from plantain.offline.language import PHRASINGS, Intent, compose, read_instruction, with_article
from plantain.records import BUILD_DIRECTIONS, Direction, Finding

TAXONOMY = load_taxonomy()
TARGETS = tuple(f for m in TAXONOMY.modalities for f in TAXONOMY.targets(m, optional=True))
EXTENTS = (None, "small", "moderate", "large")
CONSPICUITIES = (None, "subtle", "moderate", "marked")
ADD, REMOVE = Direction.ADD, Direction.REMOVE
CHEST, BRAIN, FUNDUS = "chest_xray", "brain_mri", "fundus"


def read(modality: str, text: str) -> Intent:
    return read_instruction(text, TAXONOMY.of(modality))


@pytest.mark.parametrize("finding", TARGETS, ids=lambda f: f.name)
@pytest.mark.parametrize("direction", list(BUILD_DIRECTIONS))
def test_compose_reads_back_every_place_and_look(finding: Finding, direction: Direction) -> None:
    # every side with every zone, and beside them every value of each look, one look at a time
    looks = (
        *({"extent": value} for value in EXTENTS),
        *({"conspicuity": value} for value in CONSPICUITIES),
    )
    for side in (None, *finding.sides):
        for zone in (None, *finding.zones):
            for number, look in enumerate(looks):
                intent = Intent(finding.name, direction, side, zone, **look)
                text = compose(intent, finding, phrasing=number)
                assert read(finding.modality, text) == intent, text


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


def test_compose_wordings_differ() -> None:
    finding = TAXONOMY.get(CHEST, "Pneumothorax")
    for direction in BUILD_DIRECTIONS:
        intent = Intent("Pneumothorax", direction, side="left")
        assert len({compose(intent, finding, phrasing=p) for p in range(PHRASINGS)}) == PHRASINGS


def test_compose_refuses_what_it_cannot_say() -> None:
    finding = TAXONOMY.get(CHEST, "Pneumothorax")
    for intent in (
        Intent("Pneumothorax", None),
        Intent("Edema", ADD),
    ):
        with pytest.raises(ValueError, match="needs a direction"):
            compose(intent, finding)


def test_zone_words_of_one_finding_do_not_name_two_zones() -> None:
    for finding in TARGETS:
        words = [word for zone in finding.zones for word in PLACES[zone].words]
        shared = {word for word in words if words.count(word) > 1}
        assert not shared, f"{finding.name}: {shared}"


@pytest.mark.parametrize(
    ("modality", "text", "intent"),
    [
        (CHEST, "Add a small left apical pneumothorax, keeping the right lung unchanged.",
         Intent("Pneumothorax", ADD, "left", "apical", "small")),
        (BRAIN, "Remove the tumour from the right frontal lobe", Intent("glioma", REMOVE, "right", "frontal")),
        (FUNDUS, "erase all drusen", Intent("AMD", REMOVE)),
        # the example of Med-Banana-50K, 2.2
        (CHEST, "Add signs of pneumothorax in the right lung field, showing a visible visceral pleural line with "
         "absence of lung markings beyond it, while preserving the original image grain and contrast.",
         Intent("Pneumothorax", ADD, "right")),
        (CHEST, "Please insert a hazy opacity in the RLL suggestive of pneumonia",
         Intent("Pneumonia", ADD, "right", "lower")),
        (CHEST, "Show this film with the left effusion removed", Intent("Pleural Effusion", REMOVE, "left")),
        (CHEST, "Take the fluid in the pleural space away on the left", Intent("Pleural Effusion", REMOVE, "left")),
        (CHEST, "I'd like the pneumothorax to be gone", Intent("Pneumothorax", REMOVE)),
        (CHEST, "Make the lungs look free of pneumothorax", Intent("Pneumothorax", REMOVE)),
        (CHEST, "Add pleural effusions on the left and the right", Intent("Pleural Effusion", ADD, "bilateral")),
        (CHEST, "Add a large, marked mass with well-defined margins in the middle of the left lung",
         Intent("Lung Lesion", ADD, "left", "mid", "large", "marked")),
        (CHEST, "Add a pneumothorax. Place it at the left apex. Make it large and marked.",
         Intent("Pneumothorax", ADD, "left", "apical", "large", "marked")),
        (BRAIN, "Remove the tumor (meningioma)", Intent("meningioma", REMOVE)),
        (BRAIN, "Insert a tumour in the sella", Intent("pituitary", ADD, None, "sella")),
        (BRAIN, "remove the tumour", Intent(None, REMOVE)),
        (CHEST, "left apical pneumothorax, small", Intent("Pneumothorax", None, "left", "apical", "small")),
        (CHEST, "make it look normal", Intent(None, REMOVE)),
        (FUNDUS, "Add a mild cataract", Intent("Cataract", ADD, conspicuity="subtle")),
        (FUNDUS, "Add microaneurysms at the posterior pole of the left eye",
         Intent("Diabetes", ADD, None, "posterior pole")),
        (FUNDUS, "Remove glaucoma", Intent("Glaucoma", REMOVE)),
        (CHEST, "Edit this film to show a moderate right-sided pleural effusion: blunt the right costophrenic angle "
         "and add a hazy opacity there, keeping the left lung as it is.",
         Intent("Pleural Effusion", ADD, "right", "basal", "moderate")),
        (CHEST, "Make the heart normal in size (no cardiomegaly).", Intent("Cardiomegaly", REMOVE)),
        (CHEST, "Replace the lesion in the left upper lobe with normal lung",
         Intent("Lung Lesion", REMOVE, "left", "upper")),
        (CHEST, "The left lung shows consolidation; please clear it up.", Intent("Consolidation", REMOVE, "left")),
        (BRAIN, "Add a ring-enhancing mass in the left temporal lobe consistent with high-grade glioma, with "
         "surrounding edema and mild midline shift to the right.", Intent("glioma", ADD, "left", "temporal")),
        (BRAIN, "Modify the scan so that there is a large mass along the right convexity, as in meningioma.",
         Intent("meningioma", ADD, "right", "convexity", "large")),
        (FUNDUS, "Enlarge the optic cup to simulate glaucoma, with thinning of the inferior rim",
         Intent("Glaucoma", ADD, None, "inferior rim")),
        (CHEST, "", Intent(None, None)),
    ],
)  # fmt: skip
def test_read_instruction_of_persons(modality: str, text: str, intent: Intent) -> None:
    assert read(modality, text) == intent


@pytest.mark.parametrize(
    "text",
    [
        "Keep the right lung unchanged and add an effusion on the left.",
        "Without changing the right lung, add a left effusion.",
        "The right lung must stay as it is. Introduce a left-sided effusion.",
        "Add an effusion right at the left base, no shift of the heart to the right",
        "Add a left pleural effusion but do not touch the right lung",
        "Add a left effusion; avoid anything on the right.",
        "Add a left effusion with the right lung left intact.",
        "Leave the right side alone, then add an effusion to the left lung.",
        "Add an effusion on the right of the image.",  # radiological display: image right is the patient's left
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
        ("Remove the pleural effusion until nothing is left", None),
        ("Remove what is left of the right pleural effusion", "right"),
        ("Remove the pleural effusion, everything else is left as it is.", None),
        ("Remove the pleural effusion right away", None),
    ],
)
def test_left_and_right_that_are_no_sides(text: str, side: str | None) -> None:
    intent = read(CHEST, text)
    assert (intent.finding, intent.direction, intent.side) == ("Pleural Effusion", REMOVE, side)


@pytest.mark.parametrize(
    "text",
    [
        "Do not add a pneumothorax.",
        "Never add a pneumothorax, and avoid adding an effusion.",
        "Don't remove the effusion.",
        "Keep the effusion.",
    ],
)
def test_a_forbidden_edit_is_not_commanded(text: str) -> None:
    intent = read(CHEST, text)
    assert intent.finding is None
    assert intent.direction is None


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("Add consolidation without adding effusion", "Consolidation"),
        ("Add a nodule, not a pneumothorax", "Lung Lesion"),
        ("Without adding an effusion, add a pneumothorax", "Pneumothorax"),
        ("Remove the pneumothorax but do not remove the effusion", "Pneumothorax"),
        ("Do not add an effusion but add a pneumothorax instead", "Pneumothorax"),
    ],
)
def test_negated_findings_are_not_meant(text: str, finding: str) -> None:
    assert read(CHEST, text).finding == finding


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    for modality in TAXONOMY.modalities:
        assert isinstance(read(modality, text), Intent)


WORDS = (
    *(
        "add",
        "remove",
        "no",
        "not",
        "without",
        "keep",
        "left",
        "right",
        "bilateral",
        "what",
        "is",
        "and",
        "but",
        "do",
    ),
    *(
        ",",
        ".",
        ";",
        "(",
        ")",
        ":",
        "\n",
        "pneumothorax",
        "effusion",
        "pleural",
        "lung",
        "opacity",
        "tumour",
        "small",
    ),
    *(
        "large",
        "subtle",
        "soft",
        "edges",
        "apex",
        "base",
        "upper",
        "the",
        "a",
        "of",
        "in",
        "on",
        "image",
        "unchanged",
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_any_words_in_any_order_are_read(words: list[str]) -> None:
    intent = read(CHEST, " ".join(words))
    known = {finding.name for finding in TAXONOMY.of(CHEST)}
    assert intent.finding is None or intent.finding in known
    assert intent.side in (None, "left", "right", "bilateral", "midline")


def test_a_very_long_text_is_read() -> None:
    assert read(CHEST, "add a left pneumothorax. " + "keep the right lung, and " * 20_000).side == "left"


@pytest.mark.parametrize(
    ("noun", "title", "said"),
    [
        ("small pneumothorax", "pneumothorax", "a small pneumothorax"),
        ("atelectasis", "atelectasis", "atelectasis"),
        ("rib fracture", "rib fracture", "a rib fracture"),
        ("extensive glioma", "glioma", "an extensive glioma"),
        ("myopic fundus changes", "myopic fundus changes", "myopic fundus changes"),
    ],
)
def test_with_article(noun: str, title: str, said: str) -> None:
    assert with_article(noun, title) == said
