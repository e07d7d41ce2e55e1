"""The plan: which tasks a recipe and a catalogue make, and the shards into which several runs divide it.

A task belongs to a shard by its id alone, so every machine finds the same ones without asking another. A shard takes
the share of budget and limits that its tasks have of all tasks. Finished shards are merged (`pipeline/merge.py`).
"""

from __future__ import annotations

import hashlib
import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy, out_of_view
from plantain.journal import Journal, JournalReader
from plantain.journal.connect import JOURNAL_NAME
from plantain.journal.rows import from_json, to_json
from plantain.pipeline.recipe import Recipe
from plantain.records import (
    Direction,
    EditTask,
    Finding,
    InputError,
    SourceImage,
    derive_seed,
    task_id,
)
from plantain.records.messages import suggest
from plantain.roles.options import ProviderSettings


def enumerate_tasks(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> Iterator[EditTask]:
    """Yield every task of the recipe, ordered by finding and direction.

    Raises:
        InputError: a finding of the recipe does not belong to any modality of the catalogue.
    """
    findings = chosen_findings(recipe, catalogue, taxonomy)
    for finding in findings:
        for direction in recipe.data.directions:
            for image in _capped(recipe, catalogue, taxonomy, finding, direction):
                yield _task(image, finding, direction)


def further_tasks(
    recipe: Recipe,
    catalogue: Catalogue,
    taxonomy: Taxonomy,
    finding: Finding,
    direction: Direction,
    most: int,
    usable: Callable[[str], bool],
) -> list[EditTask]:
    """Return up to `most` further tasks of a finding and direction, in the order given by the recipe's seed.

    Args:
        usable: returns False for the id of a task to skip, e.g. one that the run already has.
    """
    capped = _capped(recipe, catalogue, taxonomy, finding, direction)
    images = (image for image in capped if usable(_task(image, finding, direction).id))
    drawn = _drawn(most, images, recipe.seed, "cap", finding.name)
    return [_task(image, finding, direction) for image in drawn]


def _capped(
    recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, finding: Finding, direction: Direction
) -> Iterable[SourceImage]:
    """The images of a finding and direction, at most `per_finding`."""
    images = candidates(recipe, catalogue, taxonomy, finding, direction)
    most = recipe.data.per_finding
    return images if most is None else _drawn(most, images, recipe.seed, "cap", finding.name)


def _task(image: SourceImage, finding: Finding, direction: Direction) -> EditTask:
    task = task_id(image.source_sha256, image.frame, finding.name, direction)
    return EditTask(task, image.id, finding.modality, finding.name, direction)


def _drawn(most: int, images: Iterable[SourceImage], seed: int, *what: str) -> list[SourceImage]:
    """Up to `most` images by a seeded hash, drawn for each finding by itself: the same few for all were a poor set."""

    def place(image: SourceImage) -> tuple[int, str]:
        return derive_seed(seed, *what, image.id, image.source_sha256), image.id

    return heapq.nsmallest(most, images, key=place)


def planned_images(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> Iterator[SourceImage]:
    """Yield the record of each image that the recipe's tasks use, once."""
    seen: set[str] = set()
    for task in enumerate_tasks(recipe, catalogue, taxonomy):
        if task.image_id not in seen:
            seen.add(task.image_id)
            yield catalogue.get(task.image_id)


def chosen_findings(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> list[Finding]:
    """Return the findings that a recipe names, else all of the catalogue's modalities. Raise InputError if unknown."""
    present = set(catalogue.count_by("modality"))
    modalities = [m for m in taxonomy.modalities if m in present]
    if not recipe.data.findings:
        return [f for m in modalities for f in taxonomy.targets(m)]
    everything = [f for m in modalities for f in taxonomy.targets(m, optional=True)]
    names = {f.name for f in everything}
    for name in recipe.data.findings:
        if name not in names:
            hint = suggest(name, sorted(names))
            raise InputError(
                f"data.findings: {name!r} is not a finding of the catalogue's modalities "
                f"({', '.join(sorted(present)) or 'none'}); {hint}"
            )
    return [f for f in everything if f.name in recipe.data.findings]


def candidates(
    recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, finding: Finding, direction: Direction
) -> Iterator[SourceImage]:
    """Yield the images to which a finding can be added, or from which it can be removed, in order of id.

    A finding is added only to real images without it whose view shows its place, and with `add_to` "normal" only to
    healthy ones.
    """
    if direction is Direction.REMOVE:
        yield from catalogue.images(modality=finding.modality, label=finding.name)
        return
    normal = taxonomy.normal(finding.modality).name
    label = normal if recipe.data.add_to == "normal" else None
    for image in catalogue.images(modality=finding.modality, label=label):
        if finding.name not in image.labels and not image.synthetic and not out_of_view(finding, image):
            yield image


def plan_digest(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> str:
    """Return a SHA-256 (hex) of all that determines a recipe's tasks; if unchanged, a resume skips listing them."""
    text = "\x1f".join(
        (
            catalogue.digest(),
            ",".join(
                f"{f.modality}/{f.name}/{f.optional}/{'/'.join(f.visibility.never)}"
                for f in taxonomy.findings
            ),
            recipe.data.model_dump_json(exclude={"catalogue", "finding_files"}),
            str(recipe.seed),
        )
    )
    return hashlib.sha256(text.encode()).hexdigest()


SHARD = "shard"
"""Meta key of a run's share."""

PER_MINUTE = ("requests_per_minute", "tokens_per_minute")
MOST_SHARDS = 10_000


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of a plan that several runs divide: the `number`-th of `count`, from 1.

    Example:
        >>> Shard.parse("3/16")
        Shard(number=3, count=16)
        >>> str(Shard(3, 16))
        '3/16'
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse "3/16". Raise InputError for another form, or a number that is not from 1 to the count."""
        found = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", text.strip())
        number, count = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= count <= MOST_SHARDS:
            raise InputError(
                f"--shard {text!r}: write NUMBER/COUNT, from 1/COUNT to COUNT/COUNT, such as 3/16"
            )
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def has(self, task_id: str) -> bool:
        """Return True if the task with this id belongs to this shard."""
        drawn = int.from_bytes(hashlib.sha256(task_id.encode()).digest()[:8], "big")
        return drawn % self.count == self.number - 1


@dataclass(frozen=True, slots=True)
class Share:
    """The size of a shard relative to the plan, as its run records it.

    Attributes:
        shard: the shard.
        tasks: number of its tasks.
        of: number of all tasks of the plan.
        plan: digest of the plan.
    """

    shard: Shard
    tasks: int
    of: int
    plan: str

    @property
    def fraction(self) -> float:
        """The shard's share of the plan's tasks, budget and limits, in [0, 1]; 0 without tasks."""
        return self.tasks / self.of if self.of else 0.0


def share_of(reader: JournalReader) -> Share | None:
    """Return a run's recorded share; None for a run of the whole plan."""
    record = reader.meta(SHARD)
    return None if record is None else from_json(Share, record)


def share_of_run(run: Path | None, asked: Shard | None) -> Share | None:
    """Return the share that a run records, or for a new run that of the requested shard.

    Returns:
        The share, without counts of tasks if the run is new; None for the whole plan.

    Raises:
        InputError: the requested shard is not the one that the run records.
    """
    share, planned = None, False
    if run is not None and (run / JOURNAL_NAME).exists():
        with JournalReader.open(run) as reader:
            share, planned = share_of(reader), reader.meta("plan_digest") is not None
    if asked is None or (share is not None and share.shard == asked):
        return share
    if share is None and not planned:
        return Share(asked, 0, 0, "")
    what = "a run of the whole plan" if share is None else f"shard {share.shard}"
    raise InputError(f"{run}: this run is {what}, not shard {asked}: give each shard a --run of its own")


def counted_share(tasks: Iterable[EditTask], shard: Shard, plan: str) -> Share:
    """Count a shard's tasks and all tasks of a plan, and return the shard's share."""
    mine = total = 0
    for task in tasks:
        total += 1
        mine += shard.has(task.id)
    return Share(shard, mine, total, plan)


def within(share: Share | None, tasks: Iterable[EditTask]) -> Iterator[EditTask]:
    """Iterate over the tasks that belong to a shard's share; over all tasks for None."""
    return (task for task in tasks if share is None or share.shard.has(task.id))


def scaled_recipe(recipe: Recipe, share: Share) -> Recipe:
    """Scale a recipe's budget, calls and rates per minute by the shard's fraction of the tasks.

    The limit in hours is unchanged, because shards run at the same time.
    """
    part, limits = share.fraction, recipe.limits
    update: dict[str, object] = {}
    if limits.budget_usd is not None:
        update["budget_usd"] = limits.budget_usd * part
    if limits.max_calls is not None:
        update["max_calls"] = int(limits.max_calls * part)

    def provider(section: ProviderSettings) -> ProviderSettings:
        stated = {name: limit for name in PER_MINUTE if (limit := getattr(section, name)) is not None}
        return section.but(**{name: limit * part for name, limit in stated.items()})

    providers = {name: provider(section) for name, section in recipe.providers.items()}
    return recipe.model_copy(update={"limits": limits.model_copy(update=update), "providers": providers})


def in_words(share: Share) -> str:
    """Describe a shard in one line, e.g. "shard 3/16: 120 of 1,920 tasks, and this share of the limits"."""
    return f"shard {share.shard}: {share.tasks:,} of {share.of:,} tasks, and this share of budget, calls and rates"


async def store_share(journal: Journal, share: Share) -> None:
    """Record the share in the run unless it is already recorded; call it before the first task."""
    if share_of(journal.reader) != share:
        await journal.set_meta(SHARD, to_json(share))
