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


class Tampering:
    """Change one file of a release and return the paths that `verify` must name."""

    def __init__(self, out: Path, rng: random.Random, left: list[str]) -> None:
        self.out, self.rng, self.left = out, rng, left

    def take(self) -> Path:
        return self.out / self.left.pop()

    def flip(self) -> set[str]:
        path = self.take()
        data = bytearray(path.read_bytes())
        place = self.rng.randrange(len(data))
        data[place] ^= 1 << self.rng.randrange(8)
        path.write_bytes(data)
        return {self.name(path)}

    def delete(self) -> set[str]:
        path = self.take()
        path.unlink()
        return {self.name(path)}

    def swap(self) -> set[str]:
        one = self.take()
        other = next(
            self.out / name for name in self.left if (self.out / name).read_bytes() != one.read_bytes()
        )
        self.left.remove(self.name(other))
        held = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(held)
        return {self.name(one), self.name(other)}

    def add(self) -> set[str]:
        path = self.take()
        new = path.with_name(f"added-{self.rng.randrange(10**9)}{path.suffix}")
        new.write_bytes(path.read_bytes() if self.rng.random() < 0.5 else b"")
        return {self.name(new)}

    def rename(self) -> set[str]:
        path = self.take()
        new = path.with_name(f"renamed-{self.rng.randrange(10**9)}{path.suffix}")
        path.rename(new)
        return {self.name(path), self.name(new)}

    def any(self) -> set[str]:
        return self.rng.choice(
            [self.flip, self.flip, self.flip, self.delete, self.swap, self.add, self.rename]
        )()

    def name(self, path: Path) -> str:
        return path.relative_to(self.out).as_posix()


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
        left = rng.sample(files, len(files))
        tampering = Tampering(out, rng, left)
        expected = set[str]().union(*(tampering.any() for _ in range(18)))
        missed = expected - named(verify_release(out))
        assert not missed, f"seed {SEED}, trial {trial}"
        shutil.rmtree(out)


def test_verify_names_every_one_of_20_changes_to_sums_and_manifest(release: Path, copy: Path) -> None:
    print(f"seed {SEED}")
    rng = random.Random(SEED + 1)
    for trial in range(20):
        name = (SUMS, MANIFEST)[trial % 2]
        tampering = Tampering(copy, rng, [name])
        expected = rng.choice([tampering.flip, tampering.flip, tampering.delete, tampering.rename])()
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
