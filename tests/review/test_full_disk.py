"""A disk that is really full: one clear line, and nothing half."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from plantain.cli import main
from plantain.review.study import open_study


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB of its own."""
    folder, mount, umount = tmp_path / "small", which("mount"), which("umount")
    folder.mkdir()
    if mount is None or umount is None:
        pytest.skip("no mount here")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"no disk of its own here: {made.stderr.strip()}")
    yield folder
    subprocess.run([umount, folder], check=True)


def test_a_study_that_finds_no_room_leaves_nothing_half(small: Path, tmp_path: Path, capsys):
    lines = ["original,edited,modality,finding,direction"]
    for case in range(6):
        for what in ("a", "b"):
            draw_image(tmp_path / f"{what}{case}.png", case)
        lines.append(f"a{case}.png,b{case}.png,chest_xray,Pneumothorax,add")
    (tmp_path / "pairs.csv").write_text("\n".join(lines))
    words = ["review", "new", str(small / "s"), "--from", str(tmp_path / "pairs.csv"), "--task", "accept"]
    assert main(words) == 2
    err = capsys.readouterr().err.strip().splitlines()[-1]
    assert "No space left on device" in err and not list(small.iterdir())
    assert main([*words, "--cases", "1"]) == 0
    assert len(open_study(small / "s").cases) == 1


def draw_image(path: Path, seed: int) -> None:
    import cv2
    import numpy as np

    noise = np.random.default_rng(seed).integers(0, 60, (1024, 1024), dtype=np.uint8)
    cv2.imwrite(str(path), noise)
