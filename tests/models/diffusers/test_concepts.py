from __future__ import annotations

import pytest

from plantain.models.diffusers.concepts import Concept, NoConcept, concept_of
from plantain.models.diffusers.jobs import Job


@pytest.mark.parametrize(
    ("instruction", "words", "removes"),
    [
        ("Remove the moles on the cheek.", "moles", True),
        ("Please add a small pleural effusion at the left base", "small pleural effusion", False),
        ("Reconstruct the missing ear", "missing ear", False),
        ("Erase all wisdom teeth, then stop", "wisdom teeth", True),
        ("Correct spines", "spines", True),
    ],
)
def test_noun_phrase_after_the_verb(instruction: str, words: str, removes: bool) -> None:
    assert concept_of(Job(b"", instruction, 0)) == Concept(words, removes)


def test_finding_and_direction_of_the_task_come_first() -> None:
    job = Job(b"", "Make the lung look healthy again", 0, concept="Pleural Effusion", removes=True)
    assert concept_of(job) == Concept("pleural effusion", True)


@pytest.mark.parametrize("instruction", ["", "Better, please", "Remove", "Remove the."])
def test_nothing_to_steer_by(instruction: str) -> None:
    with pytest.raises(NoConcept):
        concept_of(Job(b"", instruction, 0))
