"""A leaderboard's site is the same bytes wherever it is made: two environments, time zones, locales, hash seeds, paths.

Submissions are packed from a benchmark of real pictures with offline editors (`plantain bench demo`); both environments
are installed anew by one lockfile, hash by hash (simulated/elsewhere.py), and have no network afterwards. Every file of
both sites is hashed.

Usage: python benchmarks/same_site.py     about 4 minutes; exit code 1 where a byte differs
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from simulated.elsewhere import REPOSITORY, Elsewhere, lock, step

MACHINES = {
    "one": {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "1"},
    "a second, quite elsewhere": {"TZ": "Asia/Kolkata", "LC_ALL": "de_DE.UTF-8", "PYTHONHASHSEED": "77"},
}


def packed(scratch: Path) -> list[Path]:
    """Two submissions of one run: all arms, and the first alone."""

    def plantain(*words: str) -> str:
        command = [sys.executable, "-m", "plantain", "bench", *words]
        return subprocess.run(command, cwd=scratch, check=True, capture_output=True, text=True).stdout

    made = json.loads(plantain("demo", "demo", "--json"))
    run = made["run"]
    plantain("pack", run, "--to", "all", "--name", "all arms")
    arms = json.loads((scratch / "all" / "bundle.json").read_bytes())["arms"]
    plantain("pack", run, "--to", "first", "--name", "the first alone", "--arm", next(iter(arms)))
    return [scratch / "all", scratch / "first"]


def sums(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def whole(found: dict[str, str]) -> str:
    """One hash for all files and their names."""
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        bundles = packed(Path(name))
        lockfile = Path(name) / "lock.txt"
        step("lockfile", lambda: lock(lockfile, str(REPOSITORY)))
        sites = []
        for number, (called, settings) in enumerate(MACHINES.items()):
            machine = Elsewhere(Path(name) / called, settings, lockfile)
            step(
                f"environment of {called}",
                machine.make,
            )
            words = [str(shutil.copytree(path, machine.work / f"{number} {path.name}")) for path in bundles]
            words = words[::-1] if number else words
            step(
                "bench site",
                lambda m=machine, w=words: m.plantain("bench", "site", *w, "--to", "site").strip(),
            )
            sites.append(sums(machine.work / "site"))
            print(f"| sha256 of {len(sites[-1])} files | | {whole(sites[-1])} |", flush=True)
        one, other = sites
        differ = sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))
        print(f"| the same bytes | | {'yes' if not differ else 'NO: ' + ', '.join(differ)} |")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
