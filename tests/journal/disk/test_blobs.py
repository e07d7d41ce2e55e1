"""Blobs are whole, durable before they are referred to, and written once."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from plantain.journal import BadBlob, BlobStore


def test_put_then_read(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    reference, is_new = store.put(b"pixels", "image/png")
    assert is_new
    assert reference.sha256 == hashlib.sha256(b"pixels").hexdigest()
    assert (reference.bytes, reference.media_type) == (6, "image/png")
    assert store.path(reference.sha256) == tmp_path / "blobs" / reference.sha256[:2] / reference.sha256
    assert store.read(reference.sha256) == b"pixels"
    assert store.put(b"pixels", "image/png") == (reference, False)


def test_put_of_nothing(tmp_path: Path) -> None:
    reference, _ = BlobStore(tmp_path).put(b"", "image/png")
    assert BlobStore(tmp_path).read(reference.sha256) == b""


@pytest.mark.parametrize("damage", [b"pixelS", b"pix", b"", b"pixels and more"])
def test_damaged_blob_is_reported_and_written_again(tmp_path: Path, damage: bytes) -> None:
    store = BlobStore(tmp_path)
    reference, _ = store.put(b"pixels", "image/png")
    store.path(reference.sha256).write_bytes(damage)
    with pytest.raises(BadBlob, match=reference.sha256):
        store.read(reference.sha256)
    assert store.put(b"pixels", "image/png") == (reference, True)
    assert store.read(reference.sha256) == b"pixels"


def test_missing_blob_and_a_name_that_climbs_out(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    with pytest.raises(BadBlob, match="missing"):
        store.read("0" * 64)
    with pytest.raises(BadBlob, match="not a SHA-256"):
        store.read("../../etc/passwd")


def test_many_threads_put_the_same_and_other_bytes(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    contents = [f"image {number % 7}".encode() for number in range(70)]
    with ThreadPoolExecutor(8) as pool:
        references = list(pool.map(lambda data: store.put(data, "image/png")[0], contents))
    assert [store.read(reference.sha256) for reference in references] == contents
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == 7  # no temporary file is left


def test_sweep_removes_only_temporary_files(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    reference, _ = store.put(b"pixels", "image/png")
    folder = store.path(reference.sha256).parent
    (folder / f".{reference.sha256}.123.0.tmp").write_bytes(b"pix")
    assert store.sweep() == 1
    assert [path.name for path in folder.iterdir()] == [reference.sha256]


def test_order_of_write_sync_rename_sync(tmp_path: Path) -> None:
    """The calls that reach the operating system, seen through Python's audit hook and patched syncs."""
    program = """
import os, sys
from pathlib import Path
from plantain.journal import BlobStore
store = BlobStore(Path(sys.argv[1]))
seen = []
real = os.fsync
def fsync(descriptor):
    name = os.readlink(f"/proc/self/fd/{descriptor}")
    seen.append("sync folder" if os.path.isdir(name) else "sync file")
    real(descriptor)
os.fsync = fsync
def hook(event, arguments):
    if event == "os.rename":
        seen.append("rename")
    if event == "open" and str(arguments[0]).endswith(".tmp"):
        seen.append("write")
    if event == "os.mkdir":
        seen.append("make")
sys.addaudithook(hook)
store.put(b"pixels", "image/png")
print(", ".join(seen))
seen.clear()
store.put(b"pixels", "image/png")
print(", ".join(seen))
"""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc to name an open file")
    (tmp_path / "blobs").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "blobs")], capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    # ab/ is made and its name synced in blobs/; then file, rename, and the name synced in ab/.
    assert first == "make, sync folder, write, sync file, rename, sync folder"
    assert second == "sync folder"


def test_failed_write_leaves_nothing(tmp_path: Path) -> None:
    """A limit on file size stands in for any refusal of the disk."""
    program = """
import resource, signal, sys
from pathlib import Path
from plantain.journal import BlobStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    BlobStore(Path(sys.argv[1])).put(bytes(5000), "image/png")
except OSError as error:
    print(error.strerror)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "too large" in done.stdout
    assert not [name for _, _, names in os.walk(tmp_path) for name in names]
