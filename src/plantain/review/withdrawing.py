"""Withdraw images from a study: their cases, files and items, and every answer about them."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from plantain.journal.connect import LOCK_NAME, RunLock
from plantain.journal.rows import RunLocked
from plantain.records import InputError
from plantain.review.ratings import Ratings
from plantain.review.study import (
    IMAGES,
    RATINGS,
    SECRET,
    STUDY,
    Case,
    open_study,
    unfinished_folder,
    with_digest,
    write_document,
)

OWN = (STUDY, SECRET, IMAGES, LOCK_NAME)
"""Files that a withdrawal keeps, besides the ratings; pages and exports are removed."""


def is_study(folder: Path) -> bool:
    """Return True if a folder is a study, even an unfinished one that a killed `review new` left."""
    return (folder / STUDY).is_file() or unfinished_folder(folder).is_dir()


def cases_with(folder: Path, names: Collection[str]) -> list[Case]:
    """Return the cases of a study whose task, sample, image, patient or group has one of these names."""
    if not (folder / STUDY).is_file():
        return []
    return [
        case
        for case in open_study(folder).cases
        if not {case.source, case.image, case.cluster}.isdisjoint(names)
    ]


def withdraw_from_study(folder: Path, names: Collection[str]) -> None:
    """Remove the cases that `cases_with` returns, with their answers; if killed, call it again to finish.

    The document is replaced last, so that the same cases are found until then. Other cases keep their group of readers
    and their answers.

    Raises:
        InputError: the study is being served, or was changed since it was frozen.
    """
    shutil.rmtree(unfinished_folder(folder), ignore_errors=True)
    gone = cases_with(folder, names)
    if not gone:
        return
    try:
        lock = RunLock(folder)
    except RunLocked as error:
        raise InputError(f"{folder}: is being served; stop its server first ({error})") from error
    study, taken = open_study(folder), {case.id for case in gone}
    items = [item.id for _, item in study.by_item.values() if item.case in taken]
    kept = with_digest(
        replace(
            study,
            cases=tuple(case for case in study.cases if case.id not in taken),
            blocks=tuple(
                replace(block, items=tuple(item for item in block.items if item.case not in taken))
                for block in study.blocks
            ),
        )
    )
    try:
        for path in folder.iterdir():
            if path.is_dir() and path.name not in OWN:
                shutil.rmtree(path)
            elif path.name not in OWN and not path.name.startswith(RATINGS):
                path.unlink()
        for case in gone:
            for name in (*case.images.values(), case.ground_truth, *case.proposals):
                if name:
                    (folder / IMAGES / name).unlink(missing_ok=True)
        with closing(Ratings(folder / RATINGS)) as ratings:
            ratings.withdraw(items, kept)
        write_document(kept)
    finally:
        lock.release()
