"""Print the lines of every package against its budget, and fail when the sum is above the ceiling.

Budgets and ceilings are `[tool.plantain.size]` in `pyproject.toml`. Code, docstrings and blank lines all count;
TOML, Jinja, JavaScript, CSS, HTML and Markdown under `src/` are counted beside, in lines and bytes.
"""

from __future__ import annotations

import statistics
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/plantain"
FOLDERS = {
    "api": ["api"],
    "cli": ["cli"],
    "pipeline": ["pipeline"],
    "bench": ["bench"],
    "audit": ["audit"],
    "train": ["train"],
    "release": ["release"],
    "report": ["report"],
    "review": ["review"],
    "runs": ["runs"],
    "calls": ["calls"],
    "models": ["models"],
    "offline": ["offline"],
    "engines": ["engines"],
    "catalogue, sources": ["catalogue", "sources"],
    "journal": ["journal"],
    "privacy": ["privacy"],
    "metrics": ["metrics"],
    "pixels": ["pixels"],
}
"""The rows of the table; what no row names is counted as `other`."""


def lines(path: Path) -> int:
    return len(path.read_bytes().splitlines())


def main() -> int:
    limits = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["plantain"]["size"]
    modules = {path: lines(path) for path in sorted(PACKAGE.rglob("*.py"))}
    row_of = {folder: row for row, folders in FOLDERS.items() for folder in folders}
    found = dict.fromkeys([*FOLDERS, "other"], 0)
    for path, count in modules.items():
        found[row_of.get(path.relative_to(PACKAGE).parts[0], "other")] += count
    print(f"{'package':<20}{'lines':>8}{'budget':>8}")
    for row, count in found.items():
        print(f"{row:<20}{count:>8,}{limits['budgets'][row]:>8,}")
    others = [
        path
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".py"
    ]
    tests, benchmarks = (
        sum(lines(path) for path in (ROOT / folder).rglob("*.py")) for folder in ("tests", "benchmarks")
    )
    words = sum(
        len(path.read_text().split())
        for path in (ROOT / "docs").rglob("*.md")
        if "generated" not in path.parts
    )
    measured = {
        "src": sum(modules.values()),
        "src_other": sum(map(lines, others)),
        "src_other_bytes": sum(path.stat().st_size for path in others),
        "modules": len(modules),
        "longest_module": max(modules.values()),
        "tests": tests,
        "benchmarks": benchmarks,
        "words_of_docs": words,
    }
    print()
    over = []
    for name, count in measured.items():
        limit = limits["ceilings"][name]
        print(f"{name:<20}{count:>8,}{limit:>8,}{'  above' if count > limit else ''}")
        over += [name] if count > limit else []
    print(f"{'median module':<20}{statistics.median(modules.values()):>8,.0f}")
    if over:
        print(
            f"Above the ceiling: {', '.join(over)}. Remove lines, or raise the ceiling in pyproject.toml with a reason."
        )
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
