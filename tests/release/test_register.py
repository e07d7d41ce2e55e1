from __future__ import annotations

from pathlib import Path

from plantain.release.register import register, releases_with


def test_a_run_remembers_which_releases_hold_an_image(tmp_path: Path) -> None:
    for name, images in (("one", ["a", "b"]), ("two", ["b"])):
        register(tmp_path, tmp_path / name, "state", images)
    assert releases_with(tmp_path, ["a"]) == [str(tmp_path / "one")]
    assert releases_with(tmp_path, ["b"]) == [str(tmp_path / "one"), str(tmp_path / "two")]
    assert releases_with(tmp_path, ["c"]) == []
