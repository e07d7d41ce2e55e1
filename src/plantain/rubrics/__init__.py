"""What an edit is judged by, as data, and the policies that turn observations into a decision."""

from plantain.rubrics.med_banana import MED_BANANA
from plantain.rubrics.medebench import MEDEBENCH, Dimension, ScaleRubric
from plantain.rubrics.policies import POLICIES, decide, majority

__all__ = ["MEDEBENCH", "MED_BANANA", "POLICIES", "Dimension", "ScaleRubric", "decide", "majority"]
