"""Folders of trainings and releases that somebody else made: nothing outside them is read or written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import torch

from plantain.records import InputError
from plantain.train import training
from plantain.train.finished import DONE, read_finished, trainings, write_json
from plantain.train.releases import ReleasePairs, StoredOriginals

TOLD = {"identity": "mine", "source": {"name": "s"}, "trained_on": ["a"]}


def a_finished_training(folder: Path) -> tuple[Path, Callable[[], object]]:
    return folder / DONE, lambda: read_finished(folder / DONE, "mine")


def a_list_of_trainings(folder: Path) -> tuple[Path, Callable[[], object]]:
    (folder / "one").mkdir()
    return folder / "one" / DONE, lambda: trainings(folder)


def a_checkpoint(folder: Path) -> tuple[Path, Callable[[], object]]:
    whole = folder / training.CHECKPOINT
    weights = {"w": torch.nn.Parameter(torch.ones(2))}
    moments = torch.optim.AdamW(weights.values())
    training.save_checkpoint(folder, weights, moments, training.Checkpoint(1, "mine", ()))
    return whole / "weights.safetensors", lambda: training.load_checkpoint(folder, weights, moments, "mine")


def a_releases_table(folder: Path) -> tuple[Path, Callable[[], object]]:
    table = folder / "data" / "train" / "x.parquet"
    table.parent.mkdir(parents=True)
    return table, lambda: ReleasePairs(folder, cast(StoredOriginals, None))


@pytest.mark.parametrize("make", [a_finished_training, a_list_of_trainings, a_checkpoint, a_releases_table])
def test_a_link_that_leads_out_is_one_line(
    make: Callable[[Path], tuple[Path, Callable[[], object]]], tmp_path: Path
) -> None:
    outside, received = tmp_path / "outside", tmp_path / "received"
    outside.write_text(json.dumps(TOLD), encoding="utf-8")
    received.mkdir()
    path, read = make(received)
    path.unlink(missing_ok=True)
    path.symlink_to(outside)
    with pytest.raises(InputError, match="a link that leads out of"):
        read()


def test_a_planted_part_file_is_not_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine", encoding="utf-8")
    for planted in (f"{DONE}.part", f".{DONE}.part", DONE):
        (tmp_path / planted).symlink_to(outside)
    write_json(tmp_path / DONE, TOLD)
    assert outside.read_text(encoding="utf-8") == "mine"
    assert read_finished(tmp_path / DONE, "mine") == TOLD
