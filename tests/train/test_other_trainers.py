"""The how-to page on other trainers: its script writes files that they read.

Column names: the defaults and options of diffusers' train_instruct_pix2pix.py. Folders: the comments of ai-toolkit's
example configurations of Kontext and Qwen-Image-Edit. CSV: DiffSynth-Studio's documentation and its script of Qwen.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from PIL import Image

from docs.blocks import ROOT, blocks
from plantain.records import InputError
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions
from plantain.train.finished import DONE, trainings
from plantain.train.releases import ReleasePreferences, StoredOriginals
from release.runs import make_run

PAGE = ROOT / "docs/how-to/train-with-other-tools.md"

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, and the files written from it by the page's script."""
    folder = tmp_path_factory.mktemp("other")
    make_run(folder / "run", images=12)
    licences = ("CC-BY-4.0",)
    export_run(folder / "run", folder / "releases/pilot", ExportOptions(("parquet",), licences=licences))
    (script,) = (block.text for block in blocks(PAGE) if block.language == "python")
    here = Path.cwd()
    os.chdir(folder)
    try:
        exec(compile(script, str(PAGE), "exec"), {"__name__": "__main__"})
    finally:
        os.chdir(here)
    return folder


def test_diffusers_finds_the_columns_that_the_page_names(folder: Path) -> None:
    from datasets import load_dataset

    named = dict(re.findall(r"`--(\w+)`.*\| `([\w/]+)` \|", PAGE.read_text(encoding="utf-8")))
    rows = load_dataset(str(folder / named["dataset_name"]), named["dataset_config_name"])["train"]
    row = rows[0]
    before, after = row[named["original_image_column"]], row[named["edited_image_column"]]
    assert before.size == after.size and row[named["edit_prompt_column"]]


def test_ai_toolkit_finds_a_caption_and_a_control_image_for_each_image(folder: Path) -> None:
    images = sorted((folder / "pairs/edited").glob("*.png"))
    assert len(images) > 3
    assert [path.name for path in images] == [p.name for p in sorted((folder / "pairs/original").iterdir())]
    for path in images:
        assert path.with_suffix(".txt").read_text(encoding="utf-8")
        with Image.open(path) as after, Image.open(folder / "pairs/original" / path.name) as before:
            assert before.size == after.size and before.tobytes() != after.tobytes()


def test_diffsynth_finds_the_images_of_its_metadata(folder: Path) -> None:
    with (folder / "pairs/metadata.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(list((folder / "pairs/edited").glob("*.png")))
    for row in rows:
        assert set(row) == {"image", "prompt", "edit_image"} and row["prompt"]
        assert (folder / "pairs" / row["image"]).is_file() and (
            folder / "pairs" / row["edit_image"]
        ).is_file()


RECORD = {"source": {"name": "s"}, "trained_on": ["a"]}


def a_list_of_trainings(folder: Path) -> tuple[Path, Callable[[], object]]:
    (folder / "one").mkdir()
    return folder / "one" / DONE, lambda: trainings(folder)


def a_releases_table(folder: Path) -> tuple[Path, Callable[[], object]]:
    table = folder / "data" / "train" / "x.parquet"
    table.parent.mkdir(parents=True)
    return table, lambda: ReleasePreferences(folder, cast(StoredOriginals, None))


@pytest.mark.parametrize("make", [a_list_of_trainings, a_releases_table])
def test_link_to_outside_the_folder_gives_one_line(
    make: Callable[[Path], tuple[Path, Callable[[], object]]], tmp_path: Path
) -> None:
    outside, received = tmp_path / "outside", tmp_path / "received"
    outside.write_text(json.dumps(RECORD), encoding="utf-8")
    received.mkdir()
    path, read = make(received)
    path.unlink(missing_ok=True)
    path.symlink_to(outside)
    with pytest.raises(InputError, match="a link that leads out of"):
        read()
