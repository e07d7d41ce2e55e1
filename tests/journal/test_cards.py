"""A judge's card as a file: a written card is read back, and anything else is refused in one line."""

from __future__ import annotations

import orjson
import pytest

from plantain.journal.cards import as_json, card_for, cards_of, from_json, keep_card, standing_of
from plantain.records import Figure, Gate, InputError, JudgeCard

CARD = JudgeCard(
    "some/judge",
    "2",
    "med-banana",
    Gate(False, True, ("blobs are accepted",)),
    images={"fundus": 40},
    controls={"blob": Figure(40, 0.5, 0.35, 0.65, 40)},
    gaps={"all": {"instruction_compliance": Figure(40, 0.25, 0.125, 0.375, 40, "gap")}},
    repeats={"realism": Figure(0, None, None, None, 0, "kappa", "one category only")},
)


def test_a_card_round_trips(tmp_path):
    keep_card(tmp_path, CARD)
    assert cards_of(tmp_path) == [CARD]
    assert card_for([CARD], "some/judge", "med-banana", "2") is CARD
    assert card_for([CARD], "some/judge", "med-banana", "3") is None
    assert card_for([CARD], "some/judge", "medebench") is None
    assert standing_of([CARD], "some/judge", "medebench").line.endswith(
        "(plantain judge audit RUN --judge some/judge --run runs/audit --rubric medebench); "
        "there is one by another rubric, med-banana"
    )
    assert standing_of([CARD], "some/judge", "med-banana", "3").line.endswith("of another prompt or version")


def test_the_card_has_the_published_shape_and_its_line_states_the_evidence():
    document = as_json(CARD)
    assert {"judge", "gate", "controls", "defects", "repeats", "agreement", "cost_usd"} <= document.keys()
    figure = {"n": 40, "rate": 0.5, "low": 0.35, "high": 0.65, "images": 40}
    assert figure.items() <= document["controls"]["blob"].items()
    assert document["line"] == (
        "some/judge: may rank (blobs are accepted); passes right edits more often than wrong ones by "
        "25 points (12 to 38); accepts 50 % (35 to 65) of 40 edits that only draw a blob"
    )


@pytest.mark.parametrize("spoilt", [b"", orjson.dumps({**as_json(CARD), "controls": {"blob": {"n": 1}}})])
def test_an_invalid_card_is_refused_with_its_path(spoilt):
    with pytest.raises(InputError, match=r"^here: ") as refused:
        from_json(spoilt, "here")
    assert "\n" not in str(refused.value)
