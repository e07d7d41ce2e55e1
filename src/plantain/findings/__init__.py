"""The findings of each modality as data, the words for places, and the images on which each can be shown.

A finding's `signs` and `restores` are noun phrases that an instruction can join to "with" and "Restore". Chest terms
follow the Fleischner Society's glossary (Hansell et al. 2008, doi:10.1148/radiol.2462070712; Bankier et al. 2024,
doi:10.1148/radiol.232558); the `source` of each finding names the references of the others.
"""

from plantain.findings.places import PLACES, SIDES, describe_place, place_of
from plantain.findings.taxonomy import (
    Taxonomy,
    lines_on,
    load_taxonomy,
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
