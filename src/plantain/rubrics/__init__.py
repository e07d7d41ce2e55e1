"""What an edit is judged by, as data, and the policies that turn observations into a decision."""

from plantain.rubrics.med_banana import MED_BANANA
from plantain.rubrics.policies import POLICIES, decide, majority

__all__ = ["MED_BANANA", "POLICIES", "decide", "majority"]
