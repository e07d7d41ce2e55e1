"""Shards: one recipe built by several independent processes, and merged afterwards.

A task belongs to a shard by its id alone, so every machine finds the same ones without asking another. A shard takes
the share of budget and limits that its tasks have of all tasks.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import orjson

from plantain.journal import Journal, JournalReader
from plantain.journal.connect import JOURNAL_NAME
from plantain.pipeline.recipe import Recipe
from plantain.records import EditTask, InputError
from plantain.roles.options import ProviderSettings

META = "shard"
"""Meta key of a run's share."""

PER_MINUTE = ("requests_per_minute", "tokens_per_minute", "images_per_minute")
MOST = 10_000


@dataclass(frozen=True, slots=True)
class Shard:
    """The `number`-th of `count` parts of a plan, from 1.

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
        """Parse "3/16". Raises InputError for anything else."""
        found = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", text.strip())
        number, count = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= count <= MOST:
            raise InputError(
                f"--shard {text!r}: write NUMBER/COUNT, from 1/COUNT to COUNT/COUNT, such as 3/16"
            )
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def has(self, task_id: str) -> bool:
        """Return True if the task of that id is this shard's."""
        drawn = int.from_bytes(hashlib.sha256(task_id.encode()).digest()[:8], "big")
        return drawn % self.count == self.number - 1


@dataclass(frozen=True, slots=True)
class Share:
    """A shard's part of a plan, as its run records it.

    Attributes:
        shard: which one.
        tasks: its tasks.
        of: all tasks of the plan.
        plan: digest of the plan that was counted.
    """

    shard: Shard
    tasks: int
    of: int
    plan: str

    @property
    def fraction(self) -> float:
        """Of budget and limits, in [0, 1]."""
        return self.tasks / self.of if self.of else 0.0

    def to_json(self) -> str:
        record = {"shard": str(self.shard), "tasks": self.tasks, "of": self.of, "plan": self.plan}
        return orjson.dumps(record).decode()

    @classmethod
    def from_json(cls, text: str) -> Self:
        record = orjson.loads(text)
        return cls(Shard.parse(record["shard"]), int(record["tasks"]), int(record["of"]), str(record["plan"]))


def share_of(reader: JournalReader) -> Share | None:
    """Return which shard a run is; None for a run of the whole plan."""
    record = reader.meta(META)
    return None if record is None else Share.from_json(record)


def share_of_run(run: Path | None, asked: Shard | None) -> Share | None:
    """Return the share of an existing run, or of the shard that is requested for a new one.

    Returns:
        The share, not counted yet if the run is new; None for the whole plan.

    Raises:
        InputError: the run is another shard, or one of the whole plan.
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


def counted(tasks: Iterable[EditTask], shard: Shard, plan: str) -> Share:
    """Count a plan's tasks, streaming."""
    mine = total = 0
    for task in tasks:
        total += 1
        mine += shard.has(task.id)
    return Share(shard, mine, total, plan)


def within(share: Share | None, tasks: Iterable[EditTask]) -> Iterator[EditTask]:
    """Return the tasks of a run's share."""
    return (task for task in tasks if share is None or share.shard.has(task.id))


def scaled_recipe(recipe: Recipe, share: Share) -> Recipe:
    """Return the recipe with a shard's part of its budget and limits.

    Hours stay, because shards run at the same time.
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


def in_words(recipe: Recipe, share: Share) -> str:
    """Return the tasks and limits of a shard in one line."""
    taken = [f"{share.tasks:,} of {share.of:,} tasks"]
    mine = scaled_recipe(recipe, share)
    if recipe.limits.budget_usd is not None:
        taken.append(f"${mine.limits.budget_usd or 0.0:,.2f} of ${recipe.limits.budget_usd:,.2f}")
    if recipe.limits.max_calls is not None:
        taken.append(f"{mine.limits.max_calls or 0:,} of {recipe.limits.max_calls:,} calls")
    for name, section in sorted(recipe.providers.items()):
        for limit in PER_MINUTE:
            if (rate := getattr(section, limit)) is not None:
                unit, own = limit.partition("_")[0], getattr(mine.providers[name], limit)
                taken.append(f"{own:,.4g} of {rate:,.4g} {unit} a minute at {name}")
    return f"shard {share.shard}: {', '.join(taken)}"


async def store_share(journal: Journal, share: Share) -> None:
    """Record in the run which shard it is, durable before the first task."""
    if journal.reader.meta(META) != share.to_json():
        await journal.set_meta(META, share.to_json())
