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
    "nested tables": b"a = " + b"{b = " * 10_000 + b"1" + b"}" * 10_000,
    "nested, but read": b"a = " + b"[" * 300 + b"]" * 300,
    "dotted": b".".join([b"a"] * 3_000) + b" = 1",
    "a header of dots": b"[" + b".".join([b"a"] * 3_000) + b"]",
    "a long number": b"seed = " + b"9" * 5000,
    "a long number in hex": b"seed = 0x" + b"f" * 5000,
    "a number of 65 bits": b"seed = 18446744073709551616",
    "a long date": b"seed = 99999-99-99",
    "not UTF-8": b'name = "\xff"',
    "nothing but zeros": b"\x00" * 1000,
    "a key twice": b"a = 1\na = 2",
    "no end": b'name = "',
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_toml_is_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_bytes(BROKEN[name])
    for read in (read_toml_table, lambda p: read_toml(p, Recipe, "recipe"), lambda p: load_taxonomy([p])):
        with pytest.raises(InputError, match=r"is not valid TOML|is not UTF-8") as told:
            read(path)
        assert "\n" not in str(told.value)
        assert len(str(told.value)) < 500


def test_what_is_no_file_is_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path / "none", Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError):
            read_toml_table(path)
