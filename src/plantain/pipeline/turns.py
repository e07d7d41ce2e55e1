"""Multi-turn edits, `[loop] turns`: an accepted edit is the source image of a task of the next turn.

The image and its task are derived from the journal and the seed alone, so a resumed run finds the same ones. The
image has the licence, consent and group of its original, and is withdrawn with it; it can be withdrawn alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy, out_of_view, why_not_shown
from plantain.journal import BlobRef, Journal, JournalReader, StoredScore
from plantain.journal.questions.accepted import accepted_edits
from plantain.journal.reader import account_of
from plantain.pipeline.plan import chosen_findings
from plantain.pipeline.recipe import Recipe
from plantain.pixels.decode import decode
from plantain.records import (
    Attempt,
    Direction,
    EditTask,
    Finding,
    Score,
    SourceImage,
    TaskState,
    derive_seed,
    task_id,
    unscored,
)
from plantain.runs.open_run import ImageCache

METRIC = "untouched_kept"

NAME = "original check"
"""A suffix of the judge's name in verdicts that the check changed."""

Chain = list[tuple[EditTask, SourceImage]]
"""The task of each turn with the image that it edits."""


async def add_turns(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, journal: Journal) -> int:
    """Add a task of the next turn for each accepted edit without one, up to `loop.turns`; return their number."""
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


@dataclass(frozen=True, slots=True)
class OriginalCheck:
    """Check that an edit of a later turn equals the original where no turn made a change.

    Its score, the share of unchanged pixels there, is stored before a judge is called.

    Attributes:
        versions: hashes of the original and of the result of each earlier turn.
        findings: finding of each turn, the current one last.
    """

    journal: Journal
    images: ImageCache
    versions: tuple[str, ...]
    findings: tuple[Finding, ...]

    async def objection(self, attempt: Attempt, edited: bytes) -> str:
        """Describe how an encoded edit differs from the original outside all changes; return "" if it does not."""
        for stored in self.journal.reader.scores(attempt.task_id, attempt.generation):
            if stored.metric == METRIC and stored.round == attempt.round:
                return _in_words(stored.score)
        score = await asyncio.to_thread(self._measure, edited)
        key = (attempt.task_id, attempt.generation, attempt.round)
        await self.journal.add_scores([StoredScore(*key, METRIC, score)])
        return _in_words(score)

    def _measure(self, edited: bytes) -> Score:
        from plantain.pixels.restore import changed_untouched  # heavy

        versions = [decode(self.images.read(sha256)) for sha256 in self.versions]
        share, why_not = changed_untouched([*versions, decode(edited)], self.findings)
        return unscored(why_not) if why_not else Score(1.0 - share)


def original_check(journal: Journal, images: ImageCache, taxonomy: Taxonomy, task: EditTask) -> OriginalCheck:
    """Make the check that compares edits of a later turn's task with the original image."""
    chain = chain_of(journal.reader, task)
    findings = tuple(taxonomy.get(one.modality, one.finding) for one, _ in chain)
    return OriginalCheck(journal, images, tuple(image.prepared_sha256 for _, image in chain), findings)


def _in_words(score: Score) -> str:
    if score.value is None or score.value == 1.0:
        return ""
    share = 100 * (1 - score.value)
    amount = f"{share:.1f} %" if share >= 0.1 else "less than 0.1 %"
    return f"{amount} of the pixels that no turn touched differ from the original"
