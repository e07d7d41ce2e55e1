"""Tampering: `verify` names every changed file of a release."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from plantain.records import InputError
from plantain.release.proof.manifest import MANIFEST, SUMS
from plantain.release.proof.verify import verify_release
from release.proofs import SEED, kinds, named


def tamper(out: Path, name: str, rng: random.Random) -> set[str]:
    """Change a file of a release; return the paths that `verify` must name."""
    path = out / name
    change = rng.choice(("flip", "flip", "delete", "add", "rename"))
    new = path.with_name(f"{change}-{rng.randrange(10**9)}{path.suffix}")
    if change == "flip":
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    elif change == "delete":
        path.unlink()
    elif change == "add":
        new.write_bytes(path.read_bytes())
        return {new.relative_to(out).as_posix()}
    else:
        path.rename(new)
        return {name, new.relative_to(out).as_posix()}
    return {name}


def test_verify_names_every_one_of_180_changes_to_files(release: Path, tmp_path: Path) -> None:
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    files = [
        path.relative_to(release).as_posix()
        for path in sorted(release.rglob("*"))
        if path.is_file() and path.name not in (SUMS, MANIFEST) and path.stat().st_size
    ]
    for trial in range(10):
        out = Path(shutil.copytree(release, tmp_path / str(trial)))
        expected = set[str]().union(*(tamper(out, name, rng) for name in rng.sample(files, 18)))
        missed = expected - named(verify_release(out))
        assert not missed, f"seed {SEED}, trial {trial}"
        shutil.rmtree(out)


def test_verify_names_every_one_of_20_changes_to_sums_and_manifest(release: Path, copy: Path) -> None:
    print(f"seed {SEED}")
    rng = random.Random(SEED + 1)
    for trial in range(20):
        name = (SUMS, MANIFEST)[trial % 2]
        expected = tamper(copy, name, rng)
        missed = expected - named(verify_release(copy))
        assert not missed, f"seed {SEED}, trial {trial}"
        for path in expected:
            (copy / path).unlink(missing_ok=True)
        shutil.copy2(release / name, copy / name)
    assert verify_release(copy).ok


def test_verify_names_links_and_empty_folders_and_follows_nothing(copy: Path) -> None:
    (copy / "README.md").unlink()
    (copy / "README.md").symlink_to("/etc/hostname")
    (copy / "data" / "nothing").mkdir()
    (copy / "pipe").mkdir()
    os.mkfifo(copy / "pipe" / "fifo")
    found = kinds(verify_release(copy))
    assert {("README.md", "link"), ("data/nothing", "extra"), ("pipe/fifo", "extra")} <= found


def test_verify_reports_a_release_that_consists_of_links(release: Path, tmp_path: Path) -> None:
    """The cache of the Hub's client keeps the files in `blobs`, and links to them in `snapshots`."""
    snapshot = tmp_path / "snapshots" / "abc"
    for path in release.rglob("*"):
        if path.is_file():
            place = snapshot / path.relative_to(release)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path)
    with pytest.raises(InputError, match="its files are links"):
        verify_release(snapshot)
