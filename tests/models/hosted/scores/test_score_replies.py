"""Replies as judges really give them, each read right or left unscored with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nasty_replies import NASTY

from plantain.models.hosted.scores.replies import is_refusal, parse_scores
from plantain.models.hosted.scores.words import DIMENSIONS

EA = "editing_accuracy"

# Each line states editing accuracy 8 in another way.
EIGHT = [
    "- Editing Accuracy: 8/10",
    "**Editing Accuracy**: 8/10",
    "**Editing Accuracy:** 8/10",
    "**Editing Accuracy (0-10):** 8/10",
    "Editing Accuracy (0 to 10): 8",
    "Editing Accuracy: [8]/10",
    "Editing Accuracy: [8/10]",
    "Editing Accuracy: 8 out of 10",
    "Editing Accuracy - 8/10",
    "Editing Accuracy \u2013 8",
    "Editing Accuracy = 8",
    "Editing Accuracy: 8",
    "editing accuracy: 8.0",
    "1. Editing Accuracy: **8**",
    "1) *Editing Accuracy*: _8/10_",
    "### Editing Accuracy: 8/10",
    "Editing Accuracy Score: 8/10",
    "Editing Accuracy (8/10)",
    "Editing Accuracy 8/10",
    "Editing Accuracy:\n8/10",
    "**Editing Accuracy**\n\n8/10",
    "Editing accuracy is 8/10.",
    "| Dimension | Score |\n|---|---|\n| Editing Accuracy | 8 |\n| Visual Quality | 7 |",
    "| Editing Accuracy | 8/10 | the tube is gone |",
    "Editing Accuracy: eight out of ten",
    "Editing Accuracy: Eight",
    "Editing Accuracy: 8 / 10",
    "Editing Accuracy: 8\uff0f10",
    "Editing Accuracy: \uff18/10",
    "<b>Editing Accuracy</b>: 8/10<br>",
    "Editing Accuracy: $\\boxed{8}$",
    "Editing Accuracy: 8/10 - the lesion is gone",
    "Editing Accuracy: 8. The lesion is gone.",
    "EA: 8, CP: 7, VQ: 9",
    "Editing_Accuracy: 8",
    "## Editing Accuracy\nThe catheter is gone, with a trace left.\n**Score:** 8/10\n## Visual Quality\nScore: 6",
    "Editing Accuracy (0-10): how well it was done.\n\nEditing Accuracy: 8",
    "Editing Accuracy: 8/10\nOverall I stay with it.\nEditing Accuracy: 8",
    "Editing Accuracy: 8/10 Contextual Preservation: 7/10 Visual Quality: 9/10",
    '{"editing_accuracy": 8, "context_preservation": 7, "visual_quality": 9}',
    '```json\n{"editing_accuracy": 8}\n```',
    'Here are my scores:\n```\n{"Editing Accuracy": "8/10"}\n```\nHope this helps.',
    '[{"dimension": "Editing Accuracy", "score": 8}, {"dimension": "Visual Quality", "score": 3}]',
    "{'editing_accuracy': 8, 'visual_quality': 9}",
    '{"editing_accuracy_score": 8.0}',
    '{"editing_accuracy": 8, "context_preservation": 7, "visual_qua',
    "I'm sorry that the edit is not better. Editing Accuracy: 8/10",
]

# Replies without an honest score of editing accuracy, and how the reason begins.
NONE = [
    ("", "empty reply"),
    ("   \n", "empty reply"),
    ("I'm sorry, but I can't assist with medical images.", "refusal"),
    ("I\u2019m unable to evaluate this image.", "refusal"),
    ("As an AI, I do not rate medical pictures.", "refusal"),
    ("The edit looks good.", "not mentioned"),
    ("8/10, 7/10, 9/10", "not mentioned"),
    ("8 7 9", "not mentioned"),
    ("Editing Accuracy: 85/100", "on another scale"),
    ("Editing Accuracy: 4/5", "on another scale"),
    ("Editing Accuracy: 4 out of 5", "on another scale"),
    ("Editing Accuracy: 80%", "not one number"),
    ("Editing Accuracy: 80 percent", "not one number"),
    ("Editing Accuracy: 85", "outside 0 to 10"),
    ("Editing Accuracy: 11/10", "outside 0 to 10"),
    ("Editing Accuracy: -1", "below zero"),
    ("Editing Accuracy: 7-8", "not one number"),
    ("Editing Accuracy: 7-8/10", "not one number"),
    ("Editing Accuracy: 7 to 8", "not one number"),
    ("Editing Accuracy: 7 or 8", "not one number"),
    ("Editing Accuracy: ~8/10", "not an exact number"),
    ("Editing Accuracy: about 8/10", "not an exact number"),
    ("Editing Accuracy: 8+/10", "not one number"),
    ("Editing Accuracy: 8/10 \u2192 6/10", "not one number"),
    ("Editing Accuracy: 8/10, no, 6/10", "two numbers in one line"),
    ("Editing Accuracy: 8/10 (it would be 9/10 without the seam)", "two numbers in one line"),
    ("Editing Accuracy: 8,5", "not one number"),
    ("Editing Accuracy: 0.8", "scale unclear"),
    ("Editing Accuracy: X/10", "no score beside"),
    ("Editing Accuracy: [score]/10", "no score beside"),
    ("Editing Accuracy: N/A", "the judge gave N/A"),
    ("Editing Accuracy: high", "no score beside"),
    ("Editing Accuracy: \u2605\u2605\u2605\u2605\u2606", "no score beside"),
    ("Editing Accuracy: 0-10", "not one number"),
    ("Editing Accuracy: 3 of the 4 lesions are gone", "a number in a sentence"),
    ("Editing Accuracy: one lesion is left", "a number in a sentence"),
    ("Editing Accuracy: 8/10\nEditing Accuracy: 6/10", "stated twice: 6 and 8"),
    ("For editing accuracy I would go as high as 8/10", "no score beside"),
    ("The editing accuracy of 2 regions is poor", "no score beside"),
    ('{"editing_accuracy": null}', "not a number"),
    ('{"editing_accuracy": true}', "not a number"),
    ('{"editing_accuracy": 80}', "outside 0 to 10"),
    ('{"editing_accuracy": NaN}', "outside 0 to 10"),
    ('{"editing_accuracy": "good"}', "not a number"),
    ('{"editing_accuracy": "7-8"}', "not one number"),
    ('{"editing_accuracy": [8, 9]}', "not a number"),
    ('{"editing_accuracy": 8} {"editing_accuracy": 5}', "stated twice: 5 and 8"),
    ('{"visual_quality": 7, "note": "Editing Accuracy: 8/10 was asked"}', ""),
    ('{"editing_accuracy": 1', "reply was cut off"),
    (
        '{"scores": {"editingAccuracy": {"score": 8, "reason": "Visual Quality: 2/10 it is not"}}}',
        "said beside",
    ),
    ("## Editing Accuracy\nScore: 7\nScore: 9", "several scores"),
]


@pytest.mark.parametrize("reply", EIGHT)
def test_reply_that_states_eight(reply):
    assert parse_scores(reply)[EA].value == 8.0, parse_scores(reply)[EA]


@pytest.mark.parametrize(("reply", "reason"), NONE)
def test_reply_that_states_no_score(reply, reason):
    score = parse_scores(reply)[EA]
    assert score.value is None
    assert score.reason.startswith(reason) and score.reason, score.reason


@pytest.mark.parametrize(("reply", "stated"), NASTY)
def test_no_nasty_reply_is_misread(reply, stated):
    found = parse_scores(reply)[EA]
    assert found.value == stated, found
    assert found.scored or found.reason


def test_there_are_enough_nasty_replies():
    assert len({reply for reply, _ in NASTY}) == len(NASTY) >= 150


def test_nothing_is_read_where_the_rest_of_the_reply_leaves_a_doubt():
    """Written as judges reply, in seven sheets, most of them after the rules; the last was unseen and none misread."""
    replies = replies_in("doubtful_replies.txt")
    assert len(set(replies)) == len(replies) >= 700
    assert [reply for reply in replies if parse_scores(reply)[EA].scored] == []


def test_plain_replies_are_read_all_the_same():
    """Every one states 8; those left unscored are known and few, and nothing else is read out of any."""
    replies = replies_in("plain_replies.txt")
    found = [parse_scores(reply)[EA].value for reply in replies]
    assert set(found) == {8.0, None}
    assert found.count(None) <= 9 and found.count(8.0) >= 110


def replies_in(name: str) -> list[str]:
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [line.replace("\\n", "\n").replace("\\t", "\t") for line in lines]


def test_other_dimensions_are_read_from_the_same_reply():
    scores = parse_scores(
        "**Editing Accuracy:** 8/10\n**Contextual Preservation:** 7/10\n**Visual Quality:** 85/100"
    )
    assert [scores[name].value for name in DIMENSIONS] == [8.0, 7.0, None]
    table = parse_scores("| Editing Accuracy | 10 |\n| Context Preservation | 0 |\n| Visual Quality | N/A |")
    assert [table[name].value for name in DIMENSIONS] == [10.0, 0.0, None]
    short = parse_scores("EA: 8, CP: 7, VQ: 9")
    assert [short[name].value for name in DIMENSIONS] == [8.0, 7.0, 9.0]


def test_half_points_and_decimal_commas_on_a_stated_scale():
    assert parse_scores("Editing Accuracy: 8.5/10")[EA].value == 8.5
    assert parse_scores("Editing Accuracy: 8,5/10")[EA].value == 8.5
    assert parse_scores("Editing Accuracy: 0.5/10")[EA].value == 0.5


def test_number_at_the_end_of_a_reply_that_was_cut_off():
    assert parse_scores("Editing Accuracy: 1", cut_off=True)[EA].reason == "reply was cut off at the number"
    assert parse_scores("Editing Accuracy: 1\nVisual", cut_off=True)[EA].value == 1.0


def test_refusal_is_told_from_a_bad_score():
    assert is_refusal("I cannot help with that.")
    assert not is_refusal("Editing Accuracy: 0/10. I cannot see any change.")
    assert not is_refusal("Fine work.")


@given(st.text(max_size=200))
@example("{" * 3000)
@example("Editing Accuracy: " + "9" * 400)
@example('{"editing_accuracy": 1e999}')
def test_any_text_gives_a_score_on_the_scale_or_a_reason(text):
    for score in parse_scores(text).values():
        assert score.reason if score.value is None else 0 <= score.value <= 10


@given(
    st.tuples(*[st.integers(0, 10)] * 3),
    st.sampled_from(["{}", "{}/10", "[{}]/10", "{} out of 10", "**{}**"]),
)
def test_every_score_survives_every_layout(values, layout):
    names = ["Editing Accuracy", "Contextual Preservation", "Visual Quality"]
    text = "\n".join(
        f"- **{name}:** {layout.format(value)}" for name, value in zip(names, values, strict=True)
    )
    assert [parse_scores(text)[name].value for name in DIMENSIONS] == list(values)
    reply = json.dumps(dict(zip(DIMENSIONS, values, strict=True)))
    assert [parse_scores(reply)[name].value for name in DIMENSIONS] == list(values)
