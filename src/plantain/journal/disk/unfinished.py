"""New runs of an import or a merge: made in a hidden folder next to their place, and renamed when complete."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from plantain.journal.disk.blobs import sync_folder
from plantain.journal.disk.connect import LOCK_NAME, RunLock, check_filesystem
from plantain.journal.rows import RunLocked
from plantain.records import InputError

_ENDING = ".unfinished"


def check_new_run(run: Path) -> None:
    """Raise InputError unless `run` is missing or an empty folder."""
    if run.is_symlink() or (run.exists() and (not run.is_dir() or any(run.iterdir()))):
        raise InputError(f"{run}: already exists and is not an empty folder; name a new folder for the run")


@contextlib.contextmanager
def new_run(run: Path) -> Iterator[Path]:
    """Yield the path at which to make a run; on success it is durable and renamed to `run`.

    After an error nothing is left. The folder of a killed process is removed by the next command that writes a run in
    the same place.

    Raises:
        InputError: `run` exists and is not an empty folder, or is on a network file system.
        RunLocked: another process is making it.
    """
    check_new_run(run)
    parent = run.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    check_filesystem(parent)
    remove_unfinished(parent)
    folder = run.with_name(f".{run.name}{_ENDING}")
    folder.mkdir(exist_ok=True)
    lock = RunLock(folder)
    try:
        yield folder / "run"
        os.sync()  # one for all files: before the run has its name, none of them need survive
        (folder / "run").replace(run)
        sync_folder(parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def remove_unfinished(parent: Path) -> None:
    """Remove the folders that killed imports and merges left; a running process has locked its own, which stays."""
    for path in parent.glob(f".*{_ENDING}/{LOCK_NAME}"):
        if not path.parent.is_symlink():
            with contextlib.suppress(RunLocked):
                lock = RunLock(path.parent)
                shutil.rmtree(path.parent, ignore_errors=True)
                lock.release()
