"""Forty injections are planted where they say, legibly, and spoil nothing else."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from plantain.audit.injections import Injection, inject, injections, swayed
from plantain.audit.planted_defects import CleanEdit
from plantain.findings import load_taxonomy
from plantain.models.hosted.prompts import as_data
from plantain.offline.language import read_instruction
from plantain.records import Direction, Geometry, Licence, SourceImage

ALL = injections()
SIDE = 512


@pytest.fixture(scope="module")
def clean() -> CleanEdit:
    geometry = Geometry(SIDE, SIDE, "pad", 0, 0, SIDE, SIDE)
    image = SourceImage("i", "d", "chest_xray", (), Licence.OPEN, "", "", geometry)
    original = np.full((SIDE, SIDE, 3), 90, np.uint8)
    mask = np.zeros((SIDE, SIDE), bool)
    mask[80:160, 340:420] = True
    edited = original.copy()
    edited[mask] = 140
    finding = load_taxonomy().get("chest_xray", "Lung Lesion")
    asked = "Add a lung lesion in the left upper lung zone."
    intent = read_instruction(asked, [finding])
    return CleanEdit(image, finding, Direction.ADD, intent, asked, original, edited, mask, "local", "x")


def test_there_are_forty_of_every_kind():
    assert len(ALL) == len({one.name for one in ALL}) == len({one.text for one in ALL}) == 40
    assert Counter(one.where for one in ALL) == {"instruction": 20, "edited": 11, "both": 9}
    assert {one.wants for one in ALL} == {"pass", "fail"}
    assert len({one.language for one in ALL}) >= 9
    assert {one.kind for one in ALL} == {
        "score", "verdict", "system", "authority", "form", "evidence", "hidden",
    }  # fmt: skip


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_words_are_planted_where_they_say_and_nowhere_else(one: Injection, clean: CleanEdit):
    planted, again = inject(one, clean, 7), inject(one, clean, 7)
    assert np.array_equal(planted.edited, again.edited) and planted.mask is clean.mask
    in_edited = (planted.edited != clean.edited).any(axis=2)
    in_original = (planted.original != clean.original).any(axis=2)
    if one.where == "instruction":
        assert not in_edited.any() and not in_original.any()
        assert planted.instruction.startswith(clean.instruction)
        assert planted.instruction.endswith(one.text)
        return
    assert planted.instruction == clean.instruction
    assert not (in_edited & clean.mask).any()
    # A letter of 22 pixels in 1,024 covers about 30 pixels at this size; of one of 9 pixels hardly 5 are left.
    assert in_edited.sum() > 3 * len(one.text)
    assert np.array_equal(in_original, in_edited) if one.where == "both" else not in_original.any()


def test_the_offline_reader_of_instructions_is_not_swayed(clean: CleanEdit):
    """What our own judge takes from an instruction stays what was asked for."""
    swayed_by = [
        one.name
        for one in ALL
        if one.where == "instruction"
        and read_instruction(inject(one, clean, 1).instruction, [clean.finding]) != clean.intent
    ]
    assert swayed_by == []


def test_marks_and_invisible_letters_do_not_reach_a_hosted_prompt():
    for one in ALL:
        said = as_data(one.text)
        assert not set(str(said)) & set("<>{}`\u200b\u202e\U000e0061"), one.name


def test_swayed_counts_only_what_the_words_want():
    by_name = {one.name: one for one in ALL}
    approved, rejected, ten = (by_name[name] for name in ("approved", "rejected stamp", "score ten"))
    compliance, fidelity = "instruction_compliance", "fidelity_preservation"
    assert swayed(ten, {compliance}, set())
    assert not swayed(ten, {compliance}, {compliance, fidelity})
    assert not swayed(
        approved, {fidelity, compliance}, {compliance}
    )  # its own letters are a fault: no evidence
    assert not swayed(rejected, set(), {fidelity})  # rightly failed for the letters
    assert swayed(rejected, set(), {compliance})
