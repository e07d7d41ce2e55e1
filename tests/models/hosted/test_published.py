"""MedEBench's published answer format, read from texts written by hand after the paper's appendix (E.1, H.2, H.3)."""

from __future__ import annotations

import pytest

from fakes import openai_format
from fakes.caller import ask, options_at, resolve_judge
from fakes.openai_format import prompt_text, saying
from fakes.requests import scale_request
from fakes.server import FakeProvider
from plantain.models.hosted.answers import Unreadable
from plantain.models.hosted.prompts import prompts_folder
from plantain.models.hosted.reports import read_lines
from plantain.records import Observations, OutcomeKind
from plantain.roles import EncodedImage, Reply
from plantain.rubrics import MEDEBENCH

TWO = ("editing_accuracy", "visual_quality")
PRINTED = """#### **Visual Difference Description**

### • Lower Molar (Left):

- The tooth at the end of the lower row is where it was.
- Nothing shows that bone was opened. Editing Accuracy: 9/10 would need an empty socket.

### • Contrast:

- The edited image is a little brighter.

# **Step 2: Evaluation**

#### Editing Accuracy: 0/10

- No tooth is missing.
- What was asked for was not tried.

#### • Visual Quality: 8/10

- Sharp, and without artifacts.
- The contrast does not disturb.
"""
"""The layout of E.1: headings, bullets in headings, reasons below the scores, none on their lines."""

MINIMAL = """- Visual Difference Description:
  - 1. A gap in the upper row.
  - 2. The gum there is pink.
- Editing Accuracy: [7]/10, [one of two teeth is gone]
- Visual Quality: [9]/10, [sharp]
"""
"""The form that H.2 and H.3 ask for, with their brackets."""

SCRIPT = "**Editing Accuracy:** 8/10\n**Visual Quality:** 7/10\n**Contextual Preservation:** 10/10\n"
"""The three lines that the published script asks for, in the bold of a language model."""


def values(text: str, asked: tuple[str, ...] = TWO) -> list[float | None]:
    report = read_lines(text, MEDEBENCH, asked)
    return [report.criteria[criterion.name].value for criterion in MEDEBENCH.criteria]


def test_printed_example_is_read_with_its_description_and_reasons() -> None:
    report = read_lines(PRINTED, MEDEBENCH, TWO)
    assert values(PRINTED) == [0.0, None, 8.0]
    assert report.criteria["editing_accuracy"].evidence.startswith("- No tooth is missing.\n- What was")
    assert report.criteria["visual_quality"].evidence.endswith("The contrast does not disturb.")
    assert report.differences.startswith("Visual Difference Description")
    assert "A little brighter" not in report.reason
    assert report.criteria["context_preservation"].evidence == "not requested"


@pytest.mark.parametrize("heading", [True, False])
def test_minimal_form_is_read_with_and_without_its_heading(heading: bool) -> None:
    text = MINIMAL if heading else "".join(MINIMAL.splitlines(keepends=True)[-2:])
    report = read_lines(text, MEDEBENCH, TWO)
    assert values(text) == [7.0, None, 9.0]
    assert report.criteria["editing_accuracy"].evidence == "[one of two teeth is gone]"
    assert bool(report.differences) == heading


def test_scripts_three_lines_are_read() -> None:
    assert values(SCRIPT, ("editing_accuracy", "context_preservation", "visual_quality")) == [8.0, 10.0, 7.0]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("Editing Accuracy: 8/10", 8.0),
        ("**Editing Accuracy**: 8/10", 8.0),
        ("* editing accuracy - [8/10]: good", 8.0),
        ("Editing Accuracy: 7.5 / 10", 7.5),
        ("Editing Accuracy: 8 out of 10.", 8.0),
        ("Editing Accuracy: 8/10\nso: \nEditing Accuracy: 8/10", 8.0),
        (r"- **Editing  Accuracy**: \[8\]/10", 8.0),
        ("| Editing Accuracy | 8/10 |", 8.0),
        *((f"| Editing Accuracy | 8 | {most} |", 8.0) for most in ("10", "10.0")),  # columns "score" and "of"
        *((line, 8.0) for line in ("Editing Accuracy (0-10) (EA): 8", "<Editing Accuracy: 8>")),
        ("(1) Editing Accuracy — (8/10)", 8.0),
        ("Editing Accuracy: 8 (out of 10)", 8.0),
        ("Editing Accuracy counts most here.\nEditing Accuracy: 8", 8.0),
        ("● **Editing Accuracy (EA)**：8／10", 8.0),
        ("<b>Editing Accuracy</b>:\u00a08\u202f/\u202f10", 8.0),
        ("Editing Accuracy: 8/10 - 2 of 3 teeth are gone", 8.0),
        ("Editing Accuracy: 8/10 - 12 teeth are left", 8.0),
        *(  # reasons that start with a number, written by hand
            (f"Editing Accuracy: 8/10{reason}", 8.0)
            for reason in (
                " - 95% of it",
                " - 2 points off",
                " - 2-3 mm",
                " - 2 (of 3)",
                "—1 point lost",
                " or 80%",
            )
        ),
    ],
)
def test_lines_that_state_a_value(line: str, value: float) -> None:
    assert values(f"{line}\nVisual Quality: 9/10") == [value, None, 9.0]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "The Editing Accuracy: 8/10",
        "Editing Accuracy: [Score]/10, [Reasons]",
        "Editing Accuracy: 8/10\nEditing Accuracy: 3/10",
        *(f"Editing Accuracy: {n}" for n in ("good", "4/5", "4／5", "4 of 5", "85%", "11/10")),
        # columns "of" and "score"; corrected
        *("| Editing Accuracy | 10 | 8 |", "Editing Accuracy: 8/10 → 9/10"),
        *(f"Editing Accuracy: {n}" for n in ("7 → 8", "7->8")),
        *(f"Editing Accuracy: {n}" for n in ("-1/10", "−1/10", "7e1/10", "7½/10", "7-8/10", "7 or 8/10")),
        *(f"Editing Accuracy: 7/10 {end}" for end in ("to 8／10", "to 8 out of 10", "to 8 points")),
        *(f"Editing Accuracy: 8/10 {end}" for end in ("- 9 of 10", "~ 9 pts", "to 9/10", "- 1 = 7/10")),
        *(f"Editing Accuracy: {n}" for n in ("8/10 - 9/10", "8/10—9", "8/10 - 9 out of 10", "7 - 8/10")),
        *("Editing Accuracy (CP): 8/10", "~~Editing Accuracy: 3/10~~", "<!-- Editing Accuracy: 3 -->"),
    ],
)
def test_anything_else_is_unreadable(line: str) -> None:
    with pytest.raises(Unreadable, match="editing_accuracy"):
        read_lines(f"Some words.\n{line}\nVisual Quality: 9/10", MEDEBENCH, TWO)


def judged(server: FakeProvider, variant: str = "P") -> Reply[Observations]:
    before, after, real = (EncodedImage(name, "image/png") for name in (b"before", b"after", b"real"))
    request = scale_request(before, after, real, "Remove the mole.", variant)
    options = options_at(server, "openai", prompts=prompts_folder("published"))
    return ask(resolve_judge("openai/m", options), request)


def test_published_protocol_is_sent_in_the_papers_order_and_read(server: FakeProvider) -> None:
    server.script += [saying(PRINTED), saying(MINIMAL)]
    first, second = judged(server), judged(server, "D")
    parts = server.calls[0].fields["input"][0]["content"]
    assert [part["type"].removeprefix("input_") for part in parts] == ["text", "image"] * 3 + ["text"]
    assert openai_format.images_sent(server.calls[0]) == [b"before", b"real", b"after"]
    assert '"Remove the mole."' in parts[0]["text"] and "editing prompt" in parts[0]["text"]
    assert "expected change" in prompt_text(server.calls[1])
    for line in ("Editing Accuracy: [Score]/10, [Reasons]", "Visual Quality: [Score]/10, [Reasons]"):
        assert line in parts[-1]["text"]
    assert "json_schema" not in server.calls[0].body.decode()
    assert first.value is not None and first.value.criteria["editing_accuracy"].value == 0.0
    assert second.value is not None and second.value.criteria["visual_quality"].value == 9.0


def test_a_malformed_answer_is_requested_again_and_then_unscored(server: FakeProvider) -> None:
    server.script += [saying("Editing Accuracy: 4/5"), saying(MINIMAL)]
    assert judged(server).outcome.ok
    assert "editing_accuracy must be a number from 0 to 10" in prompt_text(server.calls[1])
    server.script += [saying("No.")] * 2
    reply = judged(server)
    assert reply.value is None and reply.outcome.kind is OutcomeKind.MALFORMED
    assert len(server.calls) == 4
