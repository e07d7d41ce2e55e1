"""Multi-turn edits, `[loop] turns`: an accepted edit is the source image of a task of the next turn.

The image and its task are derived from the journal and the seed alone, so a resumed run finds the same ones. The
image has the licence, consent and group of its original, and is withdrawn with it; it can be withdrawn alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy, out_of_view, why_not_shown
from plantain.journal import BlobRef, Journal, JournalReader
from plantain.journal.questions.accepted import accepted_edits
from plantain.journal.reader import account_of
from plantain.pipeline.plan import chosen_findings
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
