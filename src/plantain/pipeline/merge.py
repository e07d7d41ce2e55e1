"""Merging shards: the runs of all parts of one plan become one run, equal to a run of the whole plan.

The merged run is made in a folder next to its own and renamed when complete. An interrupted merge starts again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import orjson

from plantain.calls.client import CHANGES, SERVED
from plantain.journal import JournalReader
from plantain.journal.blobs import BlobStore
from plantain.journal.cards import FOLDER as CARDS
from plantain.journal.connect import JOURNAL_NAME, check_new_run, held, new_run
from plantain.journal.merging import (
    JOINED,
    answered_by,
    begin_joined,
    blobs_of,
    images_of,
    join,
    meta_of,
    open_jobs,
    put_meta,
)
from plantain.journal.questions.accepted import META as ACCEPTED
from plantain.journal.questions.accepted import joined as joined_decisions
from plantain.journal.reader import WITHDRAWN, account_of, joined_accounts
from plantain.journal.rows import from_json, to_json
from plantain.journal.sending import CONNECTIONS
from plantain.journal.verify import verify
from plantain.journal.withdrawal import NOTE
from plantain.pipeline.plan import SHARD, Share
from plantain.records import InputError, TaskState
from plantain.records.messages import COMMANDS, command_line
from plantain.runs.engine import CLUSTERS, joined_clusters

_OWN = frozenset(
    {
        "run_id",
        SHARD,
        ACCEPTED,
        SERVED,
        CHANGES,
        WITHDRAWN,
        CONNECTIONS,
        "consent",
        "audit.juries",
        COMMANDS,
        CLUSTERS,
    }
)
"""Meta entries that may differ between shards."""


@dataclass(frozen=True, slots=True)
class Part:
    """The run of one shard, opened and locked so that no other process writes to it.

    Attributes:
        database: its journal; `meta`: the journal's meta by key.
        share: the shard, and its share of the plan.
    """

    run: Path
    database: sqlite3.Connection
    meta: dict[str, str]
    share: Share


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge.

    Attributes:
        shards: number of merged runs.
        tasks: number of tasks by state.
        blobs: number of stored images, as hard links to a shard's files where the disk has them.
        spent_usd: cost of all calls in US dollars.
    """

    shards: int
    tasks: Mapping[str, int] = field(default_factory=dict)
    blobs: int = 0
    spent_usd: float = 0.0


def merge(runs: Sequence[Path], run: Path, *, accept_model_change: bool = False) -> Merged:
    """Join the runs of all shards of a plan into a new run, and verify it.

    Args:
        runs: folders of the shards' runs, in any order; they are not changed.
        run: folder of the merged run; it must not exist yet, or be empty.
        accept_model_change: continue, and record it, if a provider served other models to some shards.

    Returns:
        The counts of the merged run. `plantain build` on it, without a shard, continues its pending tasks.

    Raises:
        InputError: a run is not a shard, shards are missing, named twice or of different plans or methods, one is being
            written to, waits for a batch job or contains images withdrawn from another, an image is missing or
            changed; `run` does not exist then.
    """
    check_new_run(run)
    folders = [path.resolve() for path in runs]
    for path in runs:
        if folders.count(path.resolve()) > 1:
            raise InputError(f"{path}: is named twice; name each shard's run once")
    with ExitStack() as kept:
        parts = [_held(kept, path) for path in runs]
        parts.sort(key=lambda part: part.share.shard.number)
        _check_complete(parts)
        _check_alike(parts)
        _check_withdrawn(parts)
        meta = _merged_meta(parts, accept_model_change=accept_model_change)
        making = kept.enter_context(new_run(run))
        making.mkdir()
        with closing(begin_joined(making / JOURNAL_NAME)) as joined:
            for part in parts:
                join(joined, part.run)
            put_meta(joined, meta)
        store = BlobStore(making / "blobs")
        for part in parts:
            _take_blobs(part, store)
            if (part.run / CARDS).is_dir():
                shutil.copytree(part.run / CARDS, making / CARDS, symlinks=True, dirs_exist_ok=True)
        return _checked(making, run, len(parts))


def _held(kept: ExitStack, run: Path) -> Part:
    database = kept.enter_context(held(run))
    meta = meta_of(database)
    if SHARD not in meta:
        raise InputError(f"{run}: not a shard of a plan; shards are made by `plantain build --shard K/N`")
    if waiting := open_jobs(database):
        raise InputError(
            f"{run}: {waiting} batch jobs have not answered yet; resume its build until they have"
        )
    if NOTE in meta:
        raise InputError(
            f"{run}: a withdrawal was interrupted here; withdraw the same images from it again first"
        )
    return Part(run, database, meta, from_json(Share, meta[SHARD]))


def _check_complete(parts: Sequence[Part]) -> None:
    """Raise InputError unless each shard of one plan is there once."""
    if not parts:
        raise InputError("no run was named; name the runs of all shards")
    first = parts[0]
    there: dict[int, Path] = {}
    for part in parts:
        shard = part.share.shard
        if shard.count != first.share.shard.count:
            raise InputError(
                f"{part.run}: is shard {shard}, and {first.run} is shard {first.share.shard}: parts of one plan only"
            )
        if shard.number in there:
            raise InputError(
                f"{part.run}: is shard {shard}, as is {there[shard.number]}; name each shard once"
            )
        there[shard.number] = part.run
    count = first.share.shard.count
    if missing := [f"{number}/{count}" for number in range(1, count + 1) if number not in there]:
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        raise InputError(f"missing shards: {', '.join(missing[:8])}{more}; name all runs")


def _check_alike(parts: Sequence[Part]) -> None:
    """Raise InputError unless all were made from one plan by one method."""
    first = parts[0]
    for part in parts[1:]:
        for key in sorted((first.meta.keys() | part.meta.keys()) - _OWN):
            if key not in first.meta or key not in part.meta:
                if key != "method":  # a shard without tasks has met no model
                    raise InputError(f"{part.run}: {key} is set in only one of {first.run} and {part.run}")
            elif first.meta[key] != part.meta[key]:
                raise InputError(f"{part.run}: was made with {_what(key, first, part)} than {first.run}")


def _what(key: str, first: Part, part: Part) -> str:
    """Name what differs where a meta entry does."""
    if key == "plan_digest":
        return "another plan: another catalogue or recipe"
    if key != "frozen":
        return f"another {key}"
    one, other = orjson.loads(first.meta[key]), orjson.loads(part.meta[key])
    names = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    return f"another recipe ({', '.join(names)})"


def _check_withdrawn(parts: Sequence[Part]) -> None:
    """Raise InputError if a part contains an image that was withdrawn from another."""
    for one in parts:
        account = account_of(one.database)
        for part in parts if account.marks else ():
            for image, group in images_of(part.database) if part is not one else ():
                whole = image.partition("+")[0]  # a rendering is withdrawn with the image it was drawn on
                for option, name in (("image", image), ("image", whole), ("group", group)):
                    if account.holds(f"{option} {name}"):
                        raise InputError(
                            f"{part.run}: contains image {image}, which was withdrawn from {one.run}; run "
                            f"`{command_line('run', 'withdraw', part.run, f'--{option}', name)}` first"
                        )


def _merged_meta(parts: Sequence[Part], *, accept_model_change: bool) -> dict[str, str]:
    meta = {key: value for part in reversed(parts) for key, value in part.meta.items()}
    del meta[SHARD]
    meta.pop(COMMANDS, None)
    if clusters := joined_clusters(*(part.meta.get(CLUSTERS) for part in parts)):
        meta[CLUSTERS] = clusters
    if connections := _joined_lists(part.meta.get(CONNECTIONS, "{}") for part in parts):
        meta[CONNECTIONS] = orjson.dumps(connections).decode()
    meta |= joined_decisions([part.meta for part in parts])
    ids = [part.meta["run_id"] for part in parts]
    meta["run_id"] = hashlib.sha256("\n".join(ids).encode()).hexdigest()[:16]
    meta[JOINED] = orjson.dumps(ids).decode()
    served, changes = _served(parts, accept_model_change=accept_model_change)
    if served:
        meta[SERVED] = orjson.dumps(served).decode()
    if changes:
        meta[CHANGES] = orjson.dumps(changes).decode()
    account = joined_accounts(account_of(part.database) for part in parts)
    if account.marks:
        meta[WITHDRAWN] = to_json(account)
    return meta


def _joined_lists(documents: Iterable[str]) -> dict[str, list[str]]:
    """Merge JSON objects of lists by key, each value once."""
    joined: dict[str, list[str]] = {}
    for document in documents:
        for key, values in orjson.loads(document).items():
            joined[key] = list(dict.fromkeys([*joined.get(key, []), *values]))
    return joined


def _served(parts: Sequence[Part], *, accept_model_change: bool) -> tuple[dict[str, list[str]], list[object]]:
    """Which models answered, by the requested one, and the changes that were accepted, by a shard or here.

    A shard that was stopped by a change, or killed at once, has answers whose model it never accepted.
    """
    served: dict[str, list[str]] = {}
    changes: list[object] = []
    for part in parts:
        changes += orjson.loads(part.meta.get(CHANGES, "[]"))
        accepted: dict[str, list[str]] = orjson.loads(part.meta.get(SERVED, "{}"))
        for model, names in accepted.items():
            served.setdefault(model, list(names))
        for model, name in [
            *((m, n) for m, names in accepted.items() for n in names),
            *answered_by(part.database),
        ]:
            known = served.setdefault(model, [])
            if name in known:
                continue
            if known and not accept_model_change:
                raise InputError(
                    f"{part.run}: {model} was served by {name}, and elsewhere by {', '.join(known)}: the answers come "
                    "from different models; continue with --accept-model-change (it is recorded)"
                )
            if known:
                at = datetime.now(UTC).isoformat(timespec="seconds")
                changes.append({"model": model, "from": list(known), "to": name, "at": at})
            known.append(name)
    return served, changes


def _take_blobs(part: Part, store: BlobStore) -> None:
    """Take every blob of a part, by a hard link where the disk has them."""
    theirs = BlobStore(part.run / "blobs")
    for sha256, media_type in blobs_of(part.database):
        source, target = theirs.path(sha256), store.path(sha256)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target, follow_symlinks=False)
        except FileExistsError:
            continue
        except FileNotFoundError as error:
            raise InputError(f"{source}: the image is missing") from error
        except OSError:
            store.put(theirs.read(sha256), media_type)


def _checked(making: Path, run: Path, shards: int) -> Merged:
    with JournalReader.open(making) as reader:
        found = verify(reader)
        if not found.ok:
            raise InputError(f"{run}: the merged run is not complete: {found.problems[0]}")
        tasks = {state.value: n for state, n in reader.counts().items() if n or state is TaskState.PENDING}
        merged = Merged(shards, tasks, found.blobs, reader.spent_usd())
    for left in ("-wal", "-shm"):
        (making / f"{JOURNAL_NAME}{left}").unlink(missing_ok=True)
    return merged
