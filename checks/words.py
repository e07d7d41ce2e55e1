"""Count words of our former dialect in code, pages and templates, each with its replacement; fail above `ALLOWED`.

`python checks/words.py` prints the sums; `python checks/words.py src/plantain/bench docs` prints every place there.
Names of code count too: `picture_of` and `PictureOf` contain `picture`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EVERYWHERE = (
    "src/plantain",
    "tests",
    "benchmarks",
    "docs",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
)
SUFFIXES = {".py", ".md", ".rst", ".toml", ".jinja", ".j2", ".html", ".js", ".ipynb"}

BANNED = {
    r"stands?(?! for| out| alone| ?ard)|stood": "is, appears, waits",
    r"go(es)? on|going on|went on": "resume, continue",
    r"told|untold": "given, passed, inferred, recognised",
    r"tells|tell apart": "states, returns, distinguishes",
    r"lies|lay": "is",
    r"nobody|somebody|anybody|everybody|whoever": "name the actor",
    r"begun|begins|began": "started, starts",
    r"pictures?": "image",
    r'"""what': "imperative: Return the ...",
    r'"""whether': "Return True if ...",
    r"says|said|unsaid": "states, contains, is",
    r"beside(?!s)": "next to, in addition to, besides",
    r"mend(s|ed|ing)?": "fix",
    r"anew|once more": "again",
    r"takes? (no )?part|taken? part": "is skipped, is included",
    r"wish(es|ed)?": "request, option",
    r"put back|puts back": "restore",
    r"brings?|brought": "contains, adds, passes",
    r"house|doors?": "package, entry point, on the premises",
    r"in (its|their) stead": "instead",
    r"is no(?! longer| more| less|t)": "is not a",
    r"handed|hands (on|back|over|it|them)": "passed, returned",
    r"what (is|was|are|were|has|had|it|they|the|a|an|one)": "name the thing",
    r"persons?": "patient, reader",
    r"things?": "name the thing",
    r"lacks?|lacking": "is missing, has no",
    r"held back|kept apart": "quarantined, separated",
    r"is to be|are to be": "must be, will be",
    r"of all(?! )|(as|so) far as": "if, overall",
    r"asked (for|of)": "requested, required",
}
ALLOWED = {
    r"stands?(?! for| out| alone| ?ard)|stood": 1,
    r"told|untold": 3,
    r"tells|tell apart": 1,
    r"lies|lay": 1,
    r"nobody|somebody|anybody|everybody|whoever": 16,
    r"pictures?": 8,
    r"says|said|unsaid": 9,
    r"beside(?!s)": 8,
    r"mend(s|ed|ing)?": 1,
    r"is no(?! longer| more| less|t)": 5,
    r"what (is|was|are|were|has|had|it|they|the|a|an|one)": 10,
    r"persons?": 33,
    r"lacks?|lacking": 1,
    r"of all(?! )|(as|so) far as": 3,
    r"asked (for|of)": 2,
}
"""Legitimate uses: keys of file formats, words of strangers and of test data, regular expressions."""


def places(paths: list[Path]) -> dict[str, list[str]]:
    """Return `file:line: text` for every banned pattern."""
    found: dict[str, list[str]] = {pattern: [] for pattern in BANNED}
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", line)
            for pattern in BANNED:
                if re.search(rf"(?<![A-Za-z])(?:{pattern})(?![a-z])", words, re.IGNORECASE):
                    found[pattern].append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    return found


def main() -> int:
    asked = [ROOT / name for name in (sys.argv[1:] or EVERYWHERE)]
    files = [file for root in asked for file in ([root] if root.is_file() else sorted(root.rglob("*")))]
    found = places(
        [file for file in files if file.suffix in SUFFIXES and not {"generated", "images"} & set(file.parts)]
    )
    failed = False
    for pattern, where in found.items():
        above = len(where) > ALLOWED.get(pattern, 0)
        failed |= above
        if len(sys.argv) > 1:
            print(
                *(f"{place}   -> {BANNED[pattern]}" for place in where), sep="\n", end="\n" if where else ""
            )
        else:
            print(f"{len(where):>6}  {pattern}  -> {BANNED[pattern]}")
            if above:
                print(*where, f"{ALLOWED.get(pattern, 0)} allowed, {len(where)} found", sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
