"""Runs are not written where locks lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from plantain.journal.disk.lock import check_filesystem, filesystem_type
from plantain.records import InputError

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
31 30 0:27 / /home/local\\040disk rw - xfs /dev/sdb rw
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTS)
    return path


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/data/run", "ext4"),
        ("/home/ann/run", "nfs4"),
        ("/home/local disk/run", "xfs"),
        ("/homework", "ext4"),
    ],
)
def test_type_by_longest_mount_point(mounts: Path, folder: str, kind: str) -> None:
    assert filesystem_type(Path(folder), mounts) == kind


def test_network_folder_is_refused(mounts: Path) -> None:
    check_filesystem(Path("/data/run"), mounts)
    with pytest.raises(InputError, match="nfs4"):
        check_filesystem(Path("/home/ann/run"), mounts)


def test_nothing_known_is_nothing_said(tmp_path: Path) -> None:
    check_filesystem(tmp_path, tmp_path / "no such file")


def test_this_machine(tmp_path: Path) -> None:
    if not Path("/proc/self/mountinfo").exists():
        pytest.skip("needs /proc")
    assert filesystem_type(tmp_path) != ""
