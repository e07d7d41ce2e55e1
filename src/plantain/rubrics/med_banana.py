"""The rubric of Med-Banana-50K."""

from __future__ import annotations

from plantain.records import Criterion, Rubric, RubricCriterion

MED_BANANA = Rubric(
    name="med-banana",
    version=1,
    criteria=(
        RubricCriterion(
            Criterion.INSTRUCTION_COMPLIANCE,
            0.40,
            "Was the requested change made: right finding, right side and place, right extent, and for a "
            "removal nothing of the finding left?",
        ),
        RubricCriterion(
            Criterion.STRUCTURAL_PLAUSIBILITY,
            0.25,
            "Is all anatomy intact and possible, and does the finding present the way that it presents in "
            "patients, with no finding that nobody asked for?",
        ),
        RubricCriterion(
            Criterion.REALISM,
            0.20,
            "Could it have come from a scanner: no visible blending, no odd colour or intensity, no repeated "
            "patches, no checkerboard, no local distortion?",
        ),
        RubricCriterion(
            Criterion.FIDELITY_PRESERVATION,
            0.15,
            "Are grain, markers, devices and borders kept, are edges of the edit soft, and is everything "
            "that was not asked for unchanged?",
        ),
    ),
)
"""The rubric of Med-Banana-50K, 4.1: 40, 25, 20 and 15 per cent. The questions are in our words."""
