"""Every way in which a TOML file can be broken is one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plantain.files.toml import read_toml_table
from plantain.findings import load_taxonomy
from plantain.pipeline.recipe import Recipe
from plantain.records import InputError
from plantain.runs.settings.reading import read_toml

BROKEN = {
    "nested arrays": b"a = " + b"[" * 10_000 + b"]" * 10_000,
    "a long number": b"seed = " + b"9" * 5000,
    "not UTF-8": b'name = "\xff"',
    "a key twice": b"a = 1\na = 2",
    "no end": b'name = "',
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_toml_is_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_bytes(BROKEN[name])
    for read in (read_toml_table, lambda p: read_toml(p, Recipe, "recipe"), lambda p: load_taxonomy([p])):
        with pytest.raises(InputError, match="is not valid TOML") as told:
            read(path)
        assert "\n" not in str(told.value)
        assert len(str(told.value)) < 500


def test_what_is_no_file_is_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path / "none", Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError):
            read_toml_table(path)
