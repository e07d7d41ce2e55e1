"""The shapes of the JSON that commands print with `--json`, measured after the pages have run.

`make shapes` runs the pages and every command below and stores the shapes; the reference's page is generated from that
file, and a test compares the file with another run.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import sys
import tempfile
from pathlib import Path

from docs.blocks import ROOT, inside, run_pages
from plantain.cli import main as plantain

KEPT = ROOT / "docs/reference_from_code/json_shapes.json"
COMMANDS = """
ingest folder scans --modality brain_mri --licence open --to catalogue
run quarantine films-catalogue
findings --modality brain_mri
init catalogue --to other.toml
plan pilot.toml
status runs/pilot
show runs/pilot
report runs/pilot
run retry runs/pilot --outcome refused
run consent runs/pilot
build pilot.toml --run runs/small --pilot 4
judge rejudge runs/again --judge offline/instruments
judge audit runs/pilot --judge offline/instruments --dry-run
models
export runs/pilot --to releases/json --licence CC-BY-4.0
verify releases/pilot
import releases/pilot --run runs/json
run merge runs/part-1 runs/part-2 --run runs/whole
run withdraw runs/whole --group nilearn:mni152 --dry-run
bench check my-bench
bench describe my-bench
bench from-build runs/pilot --to other-bench
bench generate my-bench --run runs/bench
bench score runs/bench --judge none
bench table runs/bench --to leaderboard
bench leakage my-bench catalogue
review plan --readers 5 --cases 100 --effect 0.15
review results studies/pilot
""".strip().splitlines()
BY_NAME = frozenset(
    {"by_label", "by_split", "by_modality", "rounds", "outcomes", "images", "directions"}
    | {"licences", "left_out", "without_image", "reasons", "metrics"}
    | {"criteria", "unjudged", "prices", "limits", "failed_criteria"}
)
"""Keys whose objects have data as keys, not fixed names."""
_FIXED = re.compile(r"[a-z][a-z0-9_]*")


def shape_of(document: object, path: str = "") -> dict[str, set[str]]:
    """Return the types under each path of a document; `[]` is any item of a list, `NAME` any key."""
    found: dict[str, set[str]] = {}
    if isinstance(document, dict):
        name = path.rpartition(".")[2].removesuffix("[]")
        by_name = name in BY_NAME or not all(_FIXED.fullmatch(key) for key in document)
        for key, value in document.items():
            below = "NAME" if by_name else key
            _join(found, shape_of(value, f"{path}.{below}" if path else below))
        return found or {path: {"object"}}
    if isinstance(document, list):
        for item in document:
            _join(found, shape_of(item, f"{path}[]"))
        return found or {path: {"list"}}
    kinds = {bool: "true or false", int: "number", float: "number", str: "text", type(None): "null"}
    return {path: {kinds[type(document)]}}


def _join(found: dict[str, set[str]], more: dict[str, set[str]]) -> None:
    for path, kinds in more.items():
        found.setdefault(path, set()).update(kinds)


def shapes() -> dict[str, dict[str, str]]:
    """Return the shape of every command's document, in a folder in which the pages have run.

    Raises:
        ValueError: a command failed, or printed no JSON.
    """
    found = {}
    for command in COMMANDS:
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = plantain([*shlex.split(command), "--json"])
        if code != 0:
            raise ValueError(f"plantain {command} --json: exit code {code}: {errors.getvalue()[-300:]}")
        document = json.loads(output.getvalue())
        found[command] = {path: ", ".join(sorted(kinds)) for path, kinds in shape_of(document).items()}
    return found


def differences(found: dict[str, str], kept: dict[str, str]) -> list[str]:
    """Return paths that only one shape has, or that have another type.

    Below an empty or null value any shape is accepted, on either side: the shape does not depend on how full a disk
    is, or on the keys of a user.
    """
    either = found.keys() ^ kept.keys()
    odd = [path for path in either if not _open_above(path, found) and not _open_above(path, kept)]
    odd = [path for path in odd if not _is_open((found | kept)[path])]
    known = [
        path for path in found.keys() & kept.keys() if not _is_open(found[path]) and not _is_open(kept[path])
    ]
    return sorted(odd + [path for path in known if _kinds(found[path]) != _kinds(kept[path])])


def _open_above(path: str, shape: dict[str, str]) -> bool:
    return any(_is_open(kinds) and re.match(rf"{re.escape(one)}[.\[]", path) for one, kinds in shape.items())


def _is_open(kinds: str) -> bool:
    return bool({"list", "object", "null"} & _kinds(kinds))


def _kinds(kinds: str) -> set[str]:
    return set(kinds.split(", "))


def main() -> None:
    """Run the pages in a fresh folder, and store the shapes."""
    from docs.test_blocks import OTHERS, TUTORIAL

    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)):
        problems = [problem for found in run_pages((*TUTORIAL, *OTHERS)).values() for problem in found]
        if problems:
            sys.exit("\n".join(problems))
        KEPT.write_text(json.dumps(shapes(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
