"""Semantic versions of a benchmark, kept in `benchmark.json` with the hash of the content that each was given to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import OWN
from plantain.bench.edition.differing import Differing, VersionStep, differences
from plantain.files.opening import read_inside
from plantain.files.writing import replace_file
from plantain.records import InputError

EDITION: Final = "edition"
"""Key of `benchmark.json`: version and digest of the newest edition, and `changes`, all of them, oldest first."""

_SEMANTIC = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})")


@dataclass(frozen=True, slots=True)
class Edition:
    """One version of a benchmark: what it is called, the hash of its content, and what it brought."""

    version: str
    digest: str
    note: str


def editions(bench: Benchmark) -> list[Edition]:
    """The versions that a benchmark says it had, oldest first."""
    recorded = _file(bench.root).get(EDITION)
    changes = recorded.get("changes") if isinstance(recorded, dict) else None
    rows = changes if isinstance(changes, list) else []
    return [Edition(*(str(row.get(key, "")) for key in ("version", "digest", "note"))) for row in rows]


def name_edition(bench: Benchmark, version: str, note: str, before: Benchmark | None = None) -> Edition:
    """Gives a benchmark's content a version.

    Args:
        bench: in our own format.
        version: e.g. "1.2.0": the first number grows where scores can no longer be compared sample by sample, the
            second where samples were added, the third where nothing that is scored changed.
        note: what changed, a line for the changelog.
        before: the benchmark as it was at its newest version, to check which number has to grow.

    Raises:
        InputError: no such version, not above the newest, or the wrong number grew.
    """
    known = editions(bench)
    number = _numbers(version)
    if not " ".join(note.split()):
        raise InputError("--note: say in a line what this version changes")
    if known:
        newest = known[-1]
        if number <= _numbers(newest.version):
            raise InputError(f"--set {version}: the newest version is {newest.version}; choose a higher one")
        least = _least(newest, bench, before)
        if _grown(_numbers(newest.version), number).rank < least.rank:
            raise InputError(
                f"--set {version}: {_WHY[least]}, so the {least.value} number has to grow from {newest.version}"
            )
    edition = Edition(version, bench.digest, " ".join(note.split())[:1000])
    data = _file(bench.root)
    rows = [{"version": e.version, "digest": e.digest, "note": e.note} for e in (*known, edition)]
    data[EDITION] = {"version": version, "digest": bench.digest, "changes": rows}
    samples = data.pop("samples")
    replace_file(
        bench.root / OWN, orjson.dumps({**data, "samples": samples}, option=orjson.OPT_INDENT_2) + b"\n"
    )
    return edition


_WHY = {
    VersionStep.PATCH: "nothing that is scored changed",
    VersionStep.MINOR: "samples were added",
    VersionStep.MAJOR: "samples were changed or taken out, or nobody knows which (--from names the older copy)",
}


def _least(newest: Edition, bench: Benchmark, before: Benchmark | None) -> VersionStep:
    """Which number has to grow at least."""
    if newest.digest == bench.digest:
        return VersionStep.PATCH
    if before is None:
        return VersionStep.MAJOR
    if before.digest != newest.digest:
        raise InputError(f"--from {before.root}: is not version {newest.version}: its content differs")
    found: Differing = differences(before, bench)
    return found.step


def _grown(old: tuple[int, ...], new: tuple[int, ...]) -> VersionStep:
    if new[0] > old[0]:
        return VersionStep.MAJOR
    return VersionStep.MINOR if new[1] > old[1] else VersionStep.PATCH


def _numbers(version: str) -> tuple[int, ...]:
    match = _SEMANTIC.fullmatch(version)
    if match is None:
        raise InputError(f"version {version[:40]!r}: expected MAJOR.MINOR.PATCH, e.g. 1.0.0")
    return tuple(map(int, match.groups()))


def _file(root: Path) -> dict[str, object]:
    if not (root / OWN).is_file():
        raise InputError(f"{root}: versions are kept in {OWN}; this benchmark is as others published it")
    data = orjson.loads(read_inside(root, root / OWN))
    assert isinstance(data, dict)
    return data
