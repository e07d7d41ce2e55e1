from __future__ import annotations

from pathlib import Path

import pytest

from plantain.records import InputError
from plantain.release.register import REGISTER, register, releases_with


def test_a_run_remembers_which_releases_hold_an_image(tmp_path: Path) -> None:
    for name, images in (("one", ["a", "b"]), ("two", ["b"])):
        register(tmp_path, tmp_path / name, "state", images)
    assert releases_with(tmp_path, ["a"]) == [str(tmp_path / "one")]
    assert releases_with(tmp_path, ["b"]) == [str(tmp_path / "one"), str(tmp_path / "two")]
    assert releases_with(tmp_path, ["c"]) == []


def test_a_run_that_cannot_be_written_is_named_and_not_the_release(tmp_path: Path) -> None:
    (tmp_path / REGISTER).mkdir()
    with pytest.raises(
        InputError, match=r"releases\.sqlite: cannot be written .*; a run remembers its releases"
    ):
        register(tmp_path, tmp_path / "release", "state", ["a"])
