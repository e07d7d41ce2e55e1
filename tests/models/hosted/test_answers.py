from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.content import CRITERIA, report
from plantain.models.hosted.answers import Unreadable, read_instruction
from plantain.models.hosted.reports import read_report, report_schema
from plantain.records import Criterion, FailureCode
from plantain.rubrics import MED_BANANA


def a_report(**changes: Any) -> dict[str, Any]:
    return {**report("x"), **changes}


def test_report_as_asked_is_read_in_full() -> None:
    given_report = a_report(
        realism={"evidence": "a seam", "codes": ["hard_edge"], "passed": False, "confidence": 0.9},
        has_disease=True,
        qualified=False,
        reason="seam",
    )
    seen = read_report(json.dumps(given_report), MED_BANANA)
    assert set(seen.criteria) == set(Criterion)
    realism = seen.criteria[Criterion.REALISM]
    assert (realism.passed, realism.confidence, realism.codes) == (False, 0.9, (FailureCode.HARD_EDGE,))
    assert (seen.facts["has_disease"], seen.facts["other_disease"], seen.opinion, seen.reason) == (
        True,
        False,
        False,
        "seam",
    )


@pytest.mark.parametrize(
    "wrap",
    ["{}", "```json\n{}\n```", "Here you are:\n{}\nDone {{}}.", '<think>{{"a": 1}} hm</think>\n{}', "{}\n{}"],
)
def test_report_is_found_in_its_wrapping(wrap: str) -> None:
    said = json.dumps(a_report())
    text = wrap.replace("{}", said).replace("{{", "{").replace("}}", "}")
    assert read_report(text, MED_BANANA) == read_report(said, MED_BANANA)


@pytest.mark.parametrize("value", ["true", "True", " TRUE "])
def test_true_as_text_is_true(value: str) -> None:
    assert read_report(json.dumps(a_report(has_disease=value)), MED_BANANA).facts["has_disease"] is True


@pytest.mark.parametrize("value", [None, 1, 0, "yes", "no", "probably", "", [], {}, 0.9])
@pytest.mark.parametrize("key", ["has_disease", "other_disease"])
def test_nothing_else_is_taken_for_a_decision(key: str, value: object) -> None:
    with pytest.raises(Unreadable, match=key):
        read_report(json.dumps(a_report(**{key: value})), MED_BANANA)


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("value", [None, True, {}, {"passed": None}, {"passed": "maybe"}, []])
def test_every_criterion_must_be_answered(name: str, value: object) -> None:
    with pytest.raises(Unreadable, match=name):
        read_report(json.dumps(a_report(**{name: value})), MED_BANANA)


def test_all_problems_are_told_at_once() -> None:
    said = a_report(has_disease=None)
    del said["realism"]
    with pytest.raises(Unreadable, match=r"realism is missing; has_disease is missing"):
        read_report(json.dumps(said), MED_BANANA)


@pytest.mark.parametrize("value", [85, -0.1, "0.8", True, None, 1e400])
def test_confidence_that_is_no_share_is_dropped(value: object) -> None:
    said = a_report(realism={"evidence": "", "codes": [], "passed": True, "confidence": value})
    text = json.dumps(said).replace("Infinity", "1e999")
    assert read_report(text, MED_BANANA).criteria[Criterion.REALISM].confidence is None


def test_unknown_code_is_kept_in_the_evidence() -> None:
    said = a_report(realism={"evidence": "odd", "codes": ["hard_edge", "halo", 3], "passed": False})
    result = read_report(json.dumps(said), MED_BANANA).criteria[Criterion.REALISM]
    assert result.codes == (FailureCode.HARD_EDGE,)
    assert result.evidence == "odd [other codes: halo]"


def test_two_different_reports_are_not_chosen_between() -> None:
    text = json.dumps(a_report()) + json.dumps(a_report(has_disease=not a_report()["has_disease"]))
    with pytest.raises(Unreadable, match="2 different reports"):
        read_report(text, MED_BANANA)


def test_a_key_given_twice_and_differently_is_not_chosen_between() -> None:
    text = json.dumps(a_report())[:-1] + ', "other_disease": true}'
    with pytest.raises(Unreadable, match="answered twice"):
        read_report(text, MED_BANANA)


@pytest.mark.parametrize(
    "text", ["", "  ", "fine", "{", "[]", "null", "{}", '{"a": NaN}', "{" * 5000, '{"a":' * 5000]
)
def test_what_is_no_report_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read_report(text, MED_BANANA)


def test_far_too_long_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="too long"):
        read_report(json.dumps(a_report(reason="x" * 300_000)), MED_BANANA)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from([*CRITERIA, "has_disease", "other_disease", "reason", "qualified"]), JSON)
)
def test_any_change_gives_a_report_with_the_same_decisions_or_none(changes: dict[str, Any]) -> None:
    """No value outside true and false ever becomes a decision."""
    said = a_report(**changes)
    try:
        seen = read_report(json.dumps(said), MED_BANANA)
    except Unreadable:
        return
    for name in ("has_disease", "other_disease"):
        assert str(said[name]).strip().casefold() == str(seen.facts[name]).casefold()
    for criterion, result in seen.criteria.items():
        assert str(said[criterion]["passed"]).strip().casefold() == str(result.passed).casefold()


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read_report(text, MED_BANANA)


@given(st.text(alphabet='{}[]":,truefals \\n0', max_size=200))
def test_any_nearly_json_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read_report(text, MED_BANANA)


def test_schema_is_strict_and_looks_before_it_decides() -> None:
    schema: dict[str, Any] = report_schema(MED_BANANA)
    assert schema["required"] == list(schema["properties"])
    realism = schema["properties"]["realism"]
    assert list(realism["properties"]) == ["evidence", "codes", "passed", "confidence"]
    assert schema["additionalProperties"] is realism["additionalProperties"] is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Add air.", "Add air."),
        ("```\nAdd air.\n```", "Add air."),
        ('"Add air."', "Add air."),
        ("“Add air.”", "Add air."),
        ('"Add" it and "mean" it', '"Add" it and "mean" it'),
        ("<think>what {now}</think>Add air.", "Add air."),
        # DeepSeek-R1's chat template opens the block, so that only its end is in the reply
        ("Okay, some air.\n</think>\n\nAdd air.", "Add air."),
        ("<think>a</think>Add air.<think>done?</think>", "Add air."),
        ("[THINK]Some air.[/THINK]Add air.", "Add air."),  # Magistral
        ("◁think▷Some air.◁/think▷Add air.", "Add air."),  # Kimi-VL
        ("<think>Some air.</think><answer>Add air.</answer>", "Add air."),  # the R1 paper's template
        # OpenAI's harmony format: channels analysis, commentary and final
        (
            "<|channel|>analysis<|message|>Some air.<|end|><|start|>assistant<|channel|>final<|message|>Add air.",
            "Add air.",
        ),
        (
            '<|channel|>final <|constrain|>json<|message|>{"instruction": "Add air."}',
            "Add air.",
        ),
        ("<|begin_of_box|>Add air.<|end_of_box|>", "Add air."),  # GLM-4.1V
        ("So: $\\boxed{Add air.}$", "Add air."),  # Qwen's prompts for reasoning
        ("\\boxed{\\text{Add air.}}", "Add air."),
        ("Add air.<|im_end|>", "Add air."),
        ("Here is the instruction:\n\nAdd air.", "Add air."),
        ("Sure! Here's a refined edit instruction:\n```text\nAdd air.\n```\nGood luck.", "Add air."),
        ("**Instruction:** Add air.", "Add air."),
        ("### Edit Instruction\n**Add air.**", "Add air."),
        ('```json\n{"instruction": "Add air.", "reason": "It is missing."}\n```', "Add air."),
        ('[{"text": "Add \\"free\\" air."}]', 'Add "free" air.'),
        ("**Here is the instruction:**\n\nAdd air.", "Add air."),
        ("Add air: a thin line.", "Add air: a thin line."),
        ("Here the lung is dense: add air.", "Here the lung is dense: add air."),
    ],
)
def test_instruction_without_its_wrapping(text: str, expected: str) -> None:
    assert read_instruction(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "```\n\n```",
        "<think>hm</think>",
        "<think>Add air, or",
        "<|channel|>analysis<|message|>Add air, or<|end|>",
        '{"a": "Add air.", "b": "Remove air."}',
        '{"passed": true}',
        "x" * 5000,
    ],
)
def test_no_instruction_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read_instruction(text)
