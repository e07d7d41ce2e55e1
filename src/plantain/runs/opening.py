"""Opening a run: its journal, held to what it was begun with, and the client through which its calls go."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import shorten

import orjson

from plantain.calls import AdmissionController, ModelClient, ModelDrift
from plantain.journal import Journal, JournalReader, JsonValue, RunHeader
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.models.hosted.batch.client import BatchClient
from plantain.records import InputError
from plantain.runs.money.pricing import model_limits
from plantain.runs.money.spending import budget_of
from plantain.runs.settings.terms import Terms
from plantain.version import __version__


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a new run begins with: its name and seed, and what a resumed one must repeat."""

    name: str
    seed: int
    frozen: dict[str, JsonValue]


async def open_journal(run: Path, beginning: Beginning) -> Journal:
    """The run's journal, made when the folder has none.

    Args:
        run: its folder.
        beginning: of a new run, or of the one that is resumed.

    Raises:
        InputError: what is frozen differs; another process holds the run; the folder is something else.
    """
    frozen = beginning.frozen
    if not (run / JOURNAL_NAME).exists():
        header = RunHeader(os.urandom(8).hex(), beginning.name, beginning.seed, frozen, __version__)
        return Journal.create(run, header)
    journal = Journal.open(run)
    for key in {**frozen, **journal.header.frozen}:
        value, recorded = frozen.get(key), journal.header.frozen.get(key)
        if recorded != value:
            await journal.close()
            where, now, was = _difference(value, recorded, key)
            raise InputError(
                f"{run}: the {where} is now {_shown(now)}, but this run was begun with {_shown(was)}; models, "
                "sampling, loop and seed are frozen in a run: use a new --run folder, or go back to what it was"
            )
    return journal


def _difference(now: JsonValue, was: JsonValue, where: str) -> tuple[str, JsonValue, JsonValue]:
    """The first place in which two settings differ, as "rubric.criteria.unhurt.weight", and what stands there."""
    now, was = _opened(now), _opened(was)
    if isinstance(now, dict) and isinstance(was, dict):
        for key in was | now:
            if key != "sha256" and now.get(key) != was.get(key):
                return _difference(now.get(key), was.get(key), where if key == "text" else f"{where}.{key}")
    return where, now, was


def _opened(value: JsonValue) -> JsonValue:
    """A rubric's text as the settings in it, and a list of named things by their names."""
    if isinstance(value, str) and value.startswith("{"):
        return dict(orjson.loads(value))
    if isinstance(value, list) and value and all(isinstance(one, dict) and "name" in one for one in value):
        return {str(one["name"]): one for one in value if isinstance(one, dict)}
    return value


def _shown(value: JsonValue) -> str:
    if value is None:
        return "not given"
    if isinstance(value, dict) and "name" in value:
        return str(value["name"])
    return shorten(str(value), 160, placeholder=" …")


async def open_client(
    terms: Terms, journal: Journal, jobs: BatchClient, *, accept_model_change: bool | None = None
) -> tuple[ModelClient, AdmissionController]:
    """The client for all calls of a run, and the controller that admits them.

    Args:
        terms: under which they are made.
        journal: the run's.
        jobs: the batch client that the run's models were made with; opened here, closed by the caller.
        accept_model_change: go on, and record it, when a provider serves another model than before; None: stop,
            and name no option.
    """
    in_jobs = await jobs.open(journal)
    gate = AdmissionController(partial(model_limits, terms), budget_of(terms.limits, journal.reader))
    served = ModelDrift(journal, accept_changes=accept_model_change)
    client = ModelClient(
        journal,
        gate,
        served,
        jobs.models,
        in_jobs,
        leave_jobs=jobs.leave,
    )
    gate.on_outage = client.outage
    return client, gate


def begun_with(run: Path, key: str) -> dict[str, str]:
    """What a run remembers of how it was begun, by role or model; empty where there is no run yet.

    Args:
        run: its folder.
        key: the meta entry that remembers.
    """
    if not (run / JOURNAL_NAME).exists():
        return {}
    with JournalReader.open(run) as reader:
        recorded = reader.meta(key)
    begun: dict[str, str] = orjson.loads(recorded) if recorded is not None else {}
    return begun


def edition_begun(fingerprint: str, folder: Path | None) -> int:
    """The edition of our prompts that a fingerprint was made with; 0, the latest, for a new run or other models."""
    if "prompts=" not in fingerprint:
        return 0
    from plantain.models.hosted.prompts import edition_of  # templates are for hosted models alone

    return edition_of(fingerprint, folder)


async def changed_since(journal: Journal, key: str, today: dict[str, str]) -> str | None:
    """What differs from how this run was begun, in a sentence; None when nothing does.

    Prompts, versions of offline models and the rubric are in no recipe; the run remembers them itself. What the run
    has not met before is added to what it remembers.

    Args:
        journal: the run's.
        key: the meta entry that remembers.
        today: role -> what fills it, with its fingerprint.
    """
    recorded = journal.reader.meta(key)
    begun: dict[str, str] = orjson.loads(recorded) if recorded is not None else {}
    for role, fingerprint in today.items():
        if role in begun and begun[role] != fingerprint:
            return (
                f"the {role} is now {fingerprint}, and this run was begun with {begun[role]}: another prompt, model "
                "version or image setting; resume with the version that began this run, or start a new run folder"
            )
    if not today.keys() <= begun.keys():
        await journal.set_meta(key, orjson.dumps({**begun, **today}).decode())
    return None
