"""Tasks that a running build adds: further images until enough edits are accepted, and further turns.

With `accepted_per_finding`, images are added in waves, in the seeded order of the plan. When all tasks of a finding and
direction are closed, the journal alone decides whether and how it continues. So the order in which calls return changes
nothing, and a run that was killed continues with the same images.

With `[loop] turns`, an accepted edit is the source image of a task of the next turn. The image and its task are derived
from the journal and the seed alone. The image has the licence, consent and group of its original, and is withdrawn with
it; it can be withdrawn alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy, out_of_view, why_not_shown
from plantain.journal import BlobRef, DiskFull, Journal, JournalReader
from plantain.journal.questions.accepted import META as ACCEPTED
from plantain.journal.questions.accepted import (
    Decisions,
    PartCount,
    accepted_edits,
    count_parts,
    decisions_of,
    ids_of_part,
)
from plantain.journal.reader import account_of
from plantain.journal.rows import to_json
from plantain.metrics.statistics.intervals import wilson
from plantain.pipeline.plan import Shard, Share, chosen_findings, further_tasks
from plantain.pipeline.recipe import Recipe
from plantain.records import (
    Direction,
    EditTask,
    Finding,
    SourceImage,
    TaskState,
    derive_seed,
    task_id,
)

MOST_IN_WAVE = 10_000
"""Tasks of one wave: few enough for one transaction, so that a kill leaves all of them or none."""


def required_of(whole: int, shard: Shard | None) -> int:
    """Return how many accepted edits a run must make, if all shards together must make `whole`.

    Example:
        >>> [required_of(200, Shard(number, 3)) for number in (1, 2, 3)]
        [67, 67, 66]
    """
    if shard is None:
        return whole
    return whole // shard.count + (shard.number <= whole % shard.count)


def wave(required: int, tried: int, accepted: int) -> int:
    """Return how many further images to try for a finding and direction.

    Before any trial it is the number of missing edits; then the number that gives them at the accepted share of the
    `tried` tasks, at least 1 and at most the larger of `tried` and the missing edits. `MOST_IN_WAVE` limits both.

    Example:
        >>> wave(200, 0, 0), wave(200, 200, 114), wave(200, 351, 199), wave(200, 200, 0)
        (200, 151, 2, 200)
    """
    missing = required - accepted
    suggested = math.ceil(missing * tried / max(accepted, 1))
    return min(max(suggested, 1), max(missing, tried), MOST_IN_WAVE) if tried else min(missing, MOST_IN_WAVE)


def ending(required: int, count: PartCount, floor: float) -> str:
    """Return why to stop making edits of a finding and direction, as a key of `WHY`; "" to continue.

    It is "reached" with `required` accepted edits, and "yield" if the upper end of the 95 % Wilson interval of the
    accepted share is below `floor`.
    """
    if count.accepted >= required:
        return "reached"
    return "yield" if wilson(count.accepted, count.closed)[1] < floor else ""


async def extend_plan(
    recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, share: Share | None, journal: Journal
) -> int:
    """Add tasks to a running build: next turns, and with `accepted_per_finding` further images per finding.

    A finding and direction gets further images once all its tasks are closed; those that have ended are recorded. Of a
    shard's share only its own tasks are added.

    Returns:
        The number of new tasks; 0 if the build is complete.
    """
    whole, reader = recipe.data.accepted_per_finding, journal.reader
    added = 0
    if recipe.loop.turns > 1:
        added = await add_turns(recipe, catalogue, taxonomy, journal)
    if whole is None:
        if reader.meta(ACCEPTED):
            await journal.set_meta(ACCEPTED, "")
        return added
    required, counts, gone = (
        required_of(whole, None if share is None else share.shard),
        count_parts(reader),
        account_of(reader.connection),
    )
    ended = []
    for finding in chosen_findings(recipe, catalogue, taxonomy):
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
                tasks = further_tasks(recipe, catalogue, taxonomy, finding, direction, most, usable)
                new = await journal.add_tasks(tasks)
                added += new
                why = "" if new else "images"
            ended.append((part, why))
    await journal.set_meta(ACCEPTED, to_json(Decisions(required, tuple(ended))))
    return added


async def record_halt(journal: Journal, halted: str) -> None:
    """Record why a run with `accepted_per_finding` stopped; a full disk is ignored."""
    decisions = decisions_of(journal.reader)
    if decisions is not None:
        with suppress(DiskFull):
            await journal.set_meta(ACCEPTED, to_json(replace(decisions, halted=halted)))


Chain = list[tuple[EditTask, SourceImage]]
"""The task of each turn with the image that it edits."""


async def add_turns(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, journal: Journal) -> int:
    """Add the next turn, up to `loop.turns`, of each accepted edit that has none; return the number of new tasks."""
    reader, withdrawn = journal.reader, account_of(journal.reader.connection)
    accepted, edited = accepted_edits(reader), {row.task.image_id for row in reader.tasks()}
    findings = chosen_findings(recipe, catalogue, taxonomy)
    images: list[tuple[SourceImage, BlobRef]] = []
    tasks: list[EditTask] = []
    for row in reader.tasks(TaskState.SUCCESS):
        chain = chain_of(reader, row.task)
        results = [accepted.get(task.id) for task, _ in chain]
        blob, started = results[-1], [image.prepared_sha256 for _, image in chain]
        if blob is None or len(chain) >= recipe.loop.turns:
            continue
        if [one and one.sha256 for one in results[:-1]] != started[1:]:
            continue  # a turn before is no longer accepted, or another edit of it is
        image = edited_image(chain, blob.sha256, taxonomy.normal(row.task.modality).name)
        further = [finding for finding in findings if finding.name not in {task.finding for task, _ in chain}]
        chosen = None if image.id in edited else next_edit(recipe, further, image)
        if chosen is not None:
            finding, direction = chosen
            key = task_id(image.source_sha256, image.frame, finding.name, direction)
            if not withdrawn.holds(f"task {key}"):
                images.append((image, blob))
                tasks.append(EditTask(key, image.id, image.modality, finding.name, direction))
    await journal.add_images(images)  # first: a task needs its image
    return await journal.add_tasks(tasks)


def edited_image(chain: Chain, sha256: str, normal: str) -> SourceImage:
    """Make the record of an accepted edit (SHA-256 in hex) as the next turn's source image.

    `chain` has the turns so far; `normal` is the modality's normal class.
    """
    (task, source), turn = chain[-1], len(chain) + 1
    if task.direction is Direction.ADD:
        labels = (*(label for label in source.labels if label != normal), task.finding)
    else:
        labels = tuple(label for label in source.labels if label != task.finding) or (normal,)
    return replace(
        source,
        id=f"{chain[0][1].id}+turn{turn}-{task.id}-{sha256[:8]}",
        labels=labels,
        source_sha256=sha256,
        prepared_sha256=sha256,
        frame=0,
        synthetic=True,
        note=f"turn {turn}: the accepted edit of task {task.id} ({task.direction.value} {task.finding})",
    )


def next_edit(
    recipe: Recipe, findings: Sequence[Finding], image: SourceImage
) -> tuple[Finding, Direction] | None:
    """Choose the next turn's finding and direction at random by seed; return None if the image allows none."""
    possible = [
        (finding, direction)
        for finding in findings
        if not why_not_shown(finding, image) and not out_of_view(finding, image)
        for direction in recipe.data.directions
        if (finding.name in image.labels) is (direction is Direction.REMOVE)
    ]

    def place(one: tuple[Finding, Direction]) -> int:
        return derive_seed(recipe.seed, "turn", image.id, one[0].name, one[1].value)

    return min(possible, key=place, default=None)


def chain_of(reader: JournalReader, task: EditTask) -> Chain:
    """Return (task, source image) of each turn up to and including `task`, the first turn first."""
    image = reader.image(task.image_id)
    before = chain_of(reader, reader.task(image.parent).task) if image.parent else []
    return [*before, (task, image)]
