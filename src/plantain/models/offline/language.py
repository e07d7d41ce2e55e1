"""The plain-language instruction: what the offline writer composes and what editor and judge read back.

One vocabulary for both directions, so that a word that the writer uses is a word that the others know. Sides are the
patient's. Reading is tolerant (an instruction may come from a person or a hosted writer); what is not said is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plantain.records import Direction, Finding


@dataclass(frozen=True, slots=True)
class Intent:
    """What an instruction asks for.

    Attributes:
        finding: name of the finding, or None when no known finding is named.
        direction: add or remove, or None when the words do not say.
        side: "left", "right", "bilateral", "midline" (the patient's), or None.
        zone: one of the finding's zones, or None.
        extent: "small", "moderate", "large", or None.
        conspicuity: "subtle", "moderate", "marked", or None.
        softness: "soft", "medium", "crisp": how the border should look, or None.
        variant: a small integer, from words that ask for another placement ("slightly more lateral"), else 0.
    """

    finding: str | None
    direction: Direction | None
    side: str | None = None
    zone: str | None = None
    extent: str | None = None
    conspicuity: str | None = None
    softness: str | None = None
    variant: int = 0


def read_instruction(instruction: str, findings: Sequence[Finding]) -> Intent:
    """Reads an instruction in plain language.

    Args:
        instruction: free text in English.
        findings: the findings of the image's modality; the longest matching title, name or synonym wins.
    """
    raise NotImplementedError


def compose(intent: Intent, finding: Finding, *, phrasing: int = 0) -> str:
    """An instruction that `read_instruction` reads back to the same intent; `phrasing` picks among wordings."""
    raise NotImplementedError
