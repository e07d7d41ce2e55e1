"""What can be edited: the findings of each modality as data, the words for places, and where each can be shown."""

from plantain.findings.places import PLACES, SIDES, describe_place, place_of
from plantain.findings.presentation import lines_on
from plantain.findings.taxonomy import Taxonomy, load_taxonomy
from plantain.findings.visibility import (
    out_of_view,
    sequence_of,
    shown_sides,
    sides_on,
    sides_to_name,
    why_not_shown,
    zones_on,
)

__all__ = [
    "PLACES",
    "SIDES",
    "Taxonomy",
    "describe_place",
    "lines_on",
    "load_taxonomy",
    "out_of_view",
    "place_of",
    "sequence_of",
    "shown_sides",
    "sides_on",
    "sides_to_name",
    "why_not_shown",
    "zones_on",
]
