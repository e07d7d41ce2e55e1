"""One judge, or a panel whose majority decides; a panel is named by its members, separated by commas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plantain.records import Direction, InputError, Observations, Rubric
from plantain.roles import Judge, fingerprint_of
from plantain.rubrics import majority
from plantain.runs.setup import RunSetup

MOST_MEMBERS = 100
"""Draws reserved for one request to a jury: one for each member."""


@dataclass(frozen=True, slots=True)
class Jury:
    """A judge, or several that decide together.

    Attributes:
        name: under which verdicts are stored: "provider/model", or a panel's members separated by commas.
        members: the judges that are asked.
        rubric: by which they judge.
    """

    name: str
    members: tuple[Judge, ...]
    rubric: Rubric

    @property
    def fingerprint(self) -> str:
        """Return a text that changes whenever an answer could change."""
        return " + ".join(fingerprint_of(member, self.rubric) for member in self.members)

    def together(self, reports: Sequence[Observations], direction: Direction) -> Observations:
        """Return the joint report of all members, given in their order."""
        if len(self.members) == 1:
            return reports[0]
        names = [member.name for member in self.members]
        return majority(list(zip(names, reports, strict=True)), self.rubric, direction)


def models_of(judge: str) -> tuple[str, ...]:
    """Return the models behind a judge's name. Raise InputError for an empty one."""
    names = tuple(name.strip() for name in judge.split(","))
    if not all(names) or len(names) > MOST_MEMBERS:
        raise InputError(
            f"--judge {judge!r}: expected provider/model, or several separated by commas for a panel"
        )
    return names


def jury_of(
    setup: RunSetup,
    judge: str | Judge,
    rubric: Rubric,
    prompts: Path | None = None,
    label: str = "",
    missing: list[str] | None = None,
) -> Jury:
    """Make a jury ready to be asked.

    Args:
        setup: of the run in which it is asked.
        judge: "provider/model", several separated by commas, or a judge object.
        rubric: by which it judges.
        prompts: folder of prompts that replace ours.
        label: name of its verdicts where that is not its own.
        missing: collects a line for each missing key instead of raising; such a judge cannot be asked.

    Raises:
        InputError: the judge is unknown, or cannot judge by this rubric.
    """
    if isinstance(judge, str):
        members = tuple(
            setup.judge(name, missing=missing, prompts=prompts, named_by="--judge")
            for name in models_of(judge)
        )
    else:
        members = (setup.guarded(judge),)
    found = Jury(label or ",".join(member.name for member in members), members, rubric)
    _ = found.fingerprint  # raises for a rubric by which it cannot judge, before any call
    return found
