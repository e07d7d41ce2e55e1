"""Draw images for each finding and direction until the required number of edits is accepted.

Images are tried in waves, in the seeded order of the plan. When all tasks of a finding and direction are closed, the
journal alone decides whether and how it continues. So the order in which calls return changes nothing, and a run that
was killed continues with the same images.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

from plantain.journal import DiskFull, Journal
from plantain.journal.account import account_of
from plantain.journal.questions.accepted import (
    META,
    Decisions,
    PartCount,
    count_parts,
    decisions_of,
    ids_of_part,
)
from plantain.journal.rows import to_json
from plantain.metrics.statistics.intervals import wilson
from plantain.pipeline.method import Ready
from plantain.pipeline.plan import chosen_findings, further_tasks
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.shards import Shard

MOST_IN_WAVE = 10_000
"""Tasks of one wave: few enough for one transaction, so that a kill leaves all of them or none."""


def required_of(whole: int, shard: Shard | None) -> int:
    """Return the required number of accepted edits of a run; shards share it equally.

    Example:
        >>> [required_of(200, Shard(number, 3)) for number in (1, 2, 3)]
        [67, 67, 66]
    """
    if shard is None:
        return whole
    return whole // shard.count + (shard.number <= whole % shard.count)


def wave(required: int, tried: int, accepted: int) -> int:
    """Return how many further images to try, above 0.

    As many as the accepted share of the `tried` tasks suggests; at most as many as were tried already, or are missing.

    Example:
        >>> wave(200, 0, 0), wave(200, 200, 114), wave(200, 351, 199), wave(200, 200, 0)
        (200, 151, 2, 200)
    """
    missing = required - accepted
    suggested = math.ceil(missing * tried / max(accepted, 1))
    return min(max(suggested, 1), max(missing, tried), MOST_IN_WAVE) if tried else min(missing, MOST_IN_WAVE)


def ending(required: int, count: PartCount, floor: float) -> str:
    """Return why a finding and direction ends, a key of `WHY`; "" if it needs further images.

    It ends for its yield if the 95 % Wilson interval of its accepted share is below `floor`.
    """
    if count.accepted >= required:
        return "reached"
    return "yield" if wilson(count.accepted, count.closed)[1] < floor else ""


async def extend_plan(recipe: Recipe, ready: Ready, journal: Journal) -> int:
    """Add the next wave of every finding and direction whose tasks are all closed, and record which have ended.

    Returns:
        The number of new tasks; 0 if the recipe has no `accepted_per_finding`, or no finding continues.
    """
    whole, reader = recipe.data.accepted_per_finding, journal.reader
    if whole is None:
        if reader.meta(META):
            await journal.set_meta(META, "")
        return 0
    share = ready.share
    required, counts, gone = (
        required_of(whole, None if share is None else share.shard),
        count_parts(reader),
        account_of(reader.connection),
    )
    added, ended = 0, []
    for finding in chosen_findings(recipe, ready.catalogue, ready.taxonomy):
        for direction in recipe.data.directions:
            part = (finding.modality, finding.name, direction.value)
            count = counts.get(part, PartCount())
            closed, why = count.closed == count.tasks, ""
            if closed and not (why := ending(required, count, recipe.data.yield_floor)):
                known = ids_of_part(reader, part)

                def usable(task: str, known: set[str] = known) -> bool:
                    mine = share is None or share.shard.has(task)
                    return mine and task not in known and not gone.holds(f"task {task}")

                most = wave(required, count.closed, count.accepted)
                tasks = further_tasks(
                    recipe, ready.catalogue, ready.taxonomy, finding, direction, most, usable
                )
                new = await journal.add_tasks(tasks)
                added += new
                why = "" if new else "images"
            ended.append((part, why))
    await journal.set_meta(META, to_json(Decisions(required, tuple(ended))))
    return added


async def record_halt(journal: Journal, halted: str) -> None:
    """Record why the run stopped while findings were open, for its status and report."""
    decisions = decisions_of(journal.reader)
    if decisions is not None:
        with suppress(DiskFull):
            await journal.set_meta(META, to_json(replace(decisions, halted=halted)))
