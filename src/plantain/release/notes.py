"""Release notes: what a reader of the newer release has to know who has the older one, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from plantain.privacy.licence_texts import PARTS
from plantain.release.cards.datasheet import cell
from plantain.release.diff import ReleaseChange, ReleaseDifference, diff_releases
from plantain.release.proof.recorded import FACTS

SHOWN = 20
"""Changes of one kind that are named; all are counted."""

_TITLES = {
    "tasks": "Tasks",
    "images": "Edited images",
    "licences": "Licences",
    "run": "What is said of the run",
    "files": "Files",
}
_WITHOUT = frozenset(
    {"tasks", "splits", "pairs", "without_pair", "frozen", "canary", "terms", "original_terms"}
)
"""Facts of a run that follow from its tasks, or that nobody reads as a line."""


def release_notes(old: Path, new: Path) -> str:
    """The text. Raises InputError as `diff_releases`."""
    difference = diff_releases(old, new)
    before, after = _facts(old), _facts(new)
    lines = [
        f"# {cell(after['name'])}: release notes",
        "",
        f"From run `{before['run_id']}` to run `{after['run_id']}`.",
        "",
    ]
    if difference.same:
        return "\n".join([*lines, "Nothing changed.", ""])
    lines += _totals(before, after)
    for name, title in _TITLES.items():
        changes: Sequence[ReleaseChange] = getattr(difference, name)
        if name == "run":
            changes = [change for change in changes if change.name not in _WITHOUT]
        if name == "licences":
            changes = [*_licences(old, new)]
        if changes:
            lines += [f"## {title}", "", _counted(difference, name, changes), ""]
            lines += [*_named(changes), ""] if name != "files" else []
    return "\n".join(lines)


def _totals(before: dict[str, object], after: dict[str, object]) -> Iterator[str]:
    yield from ("| | before | now |", "|---|--:|--:|")
    for name in ("tasks", "splits", "pairs"):
        one, other = _counts(before, name), _counts(after, name)
        for key in sorted(one.keys() | other.keys()):
            yield f"| {name}: {cell(key)} | {one.get(key, 0):,} | {other.get(key, 0):,} |"
    yield ""


def _counted(difference: ReleaseDifference, name: str, changes: Sequence[ReleaseChange]) -> str:
    counts = difference.counts[name]
    if name in ("run", "licences"):
        counts = dict(Counter(change.how for change in changes))
    return ", ".join(f"{n:,} {how}" for how, n in counts.items()) + "."


def _named(changes: Sequence[ReleaseChange]) -> Iterator[str]:
    for change in changes[:SHOWN]:
        detail = f": {cell(change.detail)}" if change.detail else ""
        yield f"- {change.how}: {cell(change.name)}{detail}"
    if len(changes) > SHOWN:
        yield f"- and {len(changes) - SHOWN:,} more (`plantain release diff --json` names them)"


def _licences(old: Path, new: Path) -> Iterator[ReleaseChange]:
    """Parts whose licence is another one now, or whom it was decided by."""
    one, other = _parts(old), _parts(new)
    for part in sorted(one.keys() | other.keys()):
        if part not in other:
            yield ReleaseChange("removed", part, one[part])
        elif part not in one:
            yield ReleaseChange("added", part, other[part])
        elif one[part] != other[part]:
            yield ReleaseChange("changed", part, f"{one[part]}, now {other[part]}")


def _parts(out: Path) -> dict[str, str]:
    recorded = orjson.loads((out / PARTS).read_bytes())
    return {part["part"]: f"{part['licence']} (decided by: {part['decided']})" for part in recorded}


def _counts(facts: dict[str, object], name: str) -> dict[str, int]:
    recorded = facts.get(name)
    return {str(key): int(n) for key, n in recorded.items()} if isinstance(recorded, dict) else {}


def _facts(out: Path) -> dict[str, object]:
    facts: dict[str, object] = orjson.loads((out / FACTS).read_bytes())["facts"]
    return facts
