"""Rubrics as data (plantain's, those of other packages, users' files), and the policies that decide by them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from plantain.files.installed import entry_named, load_entry
from plantain.files.opening import read_toml_table
from plantain.records import (
    Asked,
    CriterionResult,
    Direction,
    InputError,
    Observations,
    Rubric,
    RubricCriterion,
    Verdict,
)
from plantain.records.messages import suggest

GROUP = "plantain.rubrics"
"""Entry point group: name of the rubric -> a `plantain.records.Rubric`, or the path of its TOML file."""

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_RESERVED = frozenset({"criteria", "opinion", "qualified", "reason", "differences"})


@cache
def _adapter() -> TypeAdapter[Rubric]:
    return TypeAdapter(Rubric)


def read_rubric(path: Path) -> Rubric:
    """Read a rubric from a TOML file.

    Raises:
        InputError: the file cannot be read or is invalid; the message names file, field and allowed values.
    """
    document = read_toml_table(path)
    try:
        return rubric_of(json.dumps(document, default=str))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def rubric_of(text: str) -> Rubric:
    """Parse a rubric from the JSON of `as_text`. Raise ValueError, naming the field, if it is invalid."""
    try:
        rubric = _adapter().validate_json(text, strict=True)
    except ValidationError as error:
        problems = sorted(
            error.errors(), key=lambda problem: problem["type"] != "unexpected_keyword_argument"
        )
        raise ValueError(_problem(problems[0])) from None
    _check(rubric)
    return rubric


def rubric_named(name: str) -> Rubric:
    """Return a rubric by its name, plantain's or another package's, or by the path of its file.

    Raises:
        InputError: the rubric is unknown (the message suggests the nearest) or invalid.
    """
    if name.endswith(".toml"):
        return read_rubric(Path(name))
    entry = entry_named(GROUP, name, "rubric", ", or a file.toml")
    loaded = load_entry(entry, "rubric")
    if isinstance(loaded, Path):
        return read_rubric(loaded)
    if not isinstance(loaded, Rubric):
        raise InputError(f"rubric {name!r}: {entry.value} is neither a Rubric nor the path of one")
    return loaded


def _problem(problem: ErrorDetails) -> str:
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] != "unexpected_keyword_argument":
        return ": ".join(filter(None, (where, problem["msg"].removeprefix("Value error, "))))
    section = {"criteria": RubricCriterion, "asked": Asked}.get(str(problem["loc"][0]), Rubric)
    known = [field.name for field in fields(section)]
    return f"unknown key {where!r}; {suggest(str(problem['loc'][-1]), known)}"


def as_text(rubric: Rubric) -> str:
    """Encode a rubric as JSON."""
    return _adapter().dump_json(rubric).decode()


def digest_of(rubric: Rubric) -> str:
    """Return the SHA-256 (hex) of a rubric's `as_text`, which identifies a user's rubric."""
    return hashlib.sha256(as_text(rubric).encode()).hexdigest()


def _check(rubric: Rubric) -> None:
    """Raise ValueError for what types cannot exclude."""
    names = [criterion.name for criterion in rubric.criteria]
    for name in (*names, *rubric.facts, *rubric.codes):
        if not _NAME.match(name) or name in _RESERVED:
            raise ValueError(
                f"{name!r} cannot be a name: small letters, digits and _, and none of {sorted(_RESERVED)}"
            )
    if len({*names, *rubric.facts}) < len(names) + len(rubric.facts):
        raise ValueError("criteria and facts: each needs a name of its own")
    for criterion in rubric.criteria:
        if criterion.weight < 0:
            raise ValueError(f"criteria.{criterion.name}.weight: {criterion.weight:g} is below 0")
        least, most = criterion.scale or (0, 1)
        if least >= most:
            raise ValueError(
                f"criteria.{criterion.name}.scale: [{least}, {most}] must start with the lower number"
            )
        if criterion.key and (criterion.scale or not _NAME.match(criterion.key)):
            raise ValueError(
                f"criteria.{criterion.name}.key: a small-letter name, of a criterion without a scale"
            )
        if criterion.pass_at is not None and not least <= criterion.pass_at <= most:
            raise ValueError(f"criteria.{criterion.name}.pass_at: {criterion.pass_at:g} is not on its scale")
    if rubric.policy not in POLICIES:
        raise ValueError(f"policy: {rubric.policy!r}; choose one of {', '.join(POLICIES)}")
    if rubric.policy == "weighted" and not rubric.weighted:
        raise ValueError("policy: 'weighted' needs weights, and all of them are 0")
    if not 0 <= rubric.threshold <= 1:
        raise ValueError(f"threshold: {rubric.threshold:g}; from 0 to 1")
    if not 1 <= len(rubric.asked.templates) <= 2:
        raise ValueError("asked.templates: name one template, or one for additions and one for removals")


POLICIES = ("all-pass", "weighted")


def decide(
    observations: Observations, rubric: Rubric, *, judge: str, policy: str, threshold: float
) -> Verdict:
    """Decide by both policies if an edit qualifies; `policy` selects the decision that counts.

    Unscored criteria leave a decision open (None) unless the scored ones already exclude the edit: under "all-pass" if
    one of them failed, under "weighted" if the score stays below `threshold` even with full marks for the open ones.

    Args:
        observations: one judge's report; must contain every criterion of the rubric.
        rubric: the criteria, and the weights for the score.
        judge: name of the judge, for the verdict.
        policy: "all-pass" (Med-Banana-50K, 4.1) or "weighted" (2.3: score at or above `threshold`).
        threshold: in [0, 1]; the paper uses about 0.7.

    Returns:
        The verdict; its score is the sum of weight times share (`RubricCriterion.share`), in [0, 1]. The score is None
        if a criterion is unscored; without weights, the score and the decision by "weighted" are None.

    Raises:
        ValueError: unknown policy, or a criterion is missing.
    """
    missing = [c.name for c in rubric.criteria if c.name not in observations.criteria]
    if missing:
        raise ValueError(f"judge {judge} left out {', '.join(missing)}")
    shares = [(c.weight, c.share(observations.criteria[c.name])) for c in rubric.criteria]
    most = round(sum(weight * (1.0 if share is None else share) for weight, share in shares), 6)
    score = None if not rubric.weighted or any(share is None for _, share in shares) else most
    passed = [observations.criteria[c.name].passed for c in rubric.criteria]
    all_pass = False if False in passed else None if None in passed else True
    weighted = None if not rubric.weighted or (score is None and most >= threshold) else most >= threshold
    decisions = {"all-pass": all_pass, "weighted": weighted}
    if policy not in decisions:
        raise ValueError(f"policy {policy!r}: choose one of {', '.join(POLICIES)}")
    return Verdict(judge, observations, all_pass, weighted, score, decisions[policy])


def majority(panel: Sequence[tuple[str, Observations]], rubric: Rubric, direction: Direction) -> Observations:
    """Combine a panel's reports to one: a criterion passes if more than half passes it; numbers become the median.

    A tie fails. A judge that left a criterion unscored has no vote on it; a criterion without any score is unscored.
    Evidence and codes of the judges who agree with the result are joined.

    A tie over a fact counts against the edit: a finding to remove counts as visible, one to add as not visible, another
    finding as present. A tie over any other fact leaves it out.

    Args:
        panel: each judge's name and report; ValueError is raised if it is empty.
        rubric: the rubric of all reports.
        direction: direction of the edit.
    """
    if not panel:
        raise ValueError("a panel needs at least one judge")
    opinions = [o.opinion for _, o in panel if o.opinion is not None]
    return Observations(
        criteria={
            c.name: _together([o.criteria[c.name] for _, o in panel], c, rubric) for c in rubric.criteria
        },
        facts=_facts_together([o.facts for _, o in panel], direction),
        opinion=_more_than_half(opinions) if opinions else None,
        reason=" | ".join(f"{name}: {o.reason}" for name, o in panel),
        differences=" | ".join(f"{name}: {o.differences}" for name, o in panel if o.differences),
    )


def unfavourable(direction: Direction) -> dict[str, bool]:
    """Return the answer that counts against an edit, for the facts `has_disease` and `other_disease`."""
    return {"has_disease": direction is Direction.REMOVE, "other_disease": True}


def _facts_together(reports: Sequence[Mapping[str, bool]], direction: Direction) -> dict[str, bool]:
    against = unfavourable(direction)
    joint = {}
    for name in dict.fromkeys(name for facts in reports for name in facts):
        votes = [facts[name] for facts in reports if name in facts]
        if 2 * sum(votes) != len(votes):
            joint[name] = _more_than_half(votes)
        elif name in against:
            joint[name] = against[name]
    return joint


def _together(results: list[CriterionResult], criterion: RubricCriterion, rubric: Rubric) -> CriterionResult:
    value: float | None = None
    if criterion.scale is None:
        votes = [r for r in results if r.passed is not None]
        if not votes:
            return CriterionResult(None, evidence=" | ".join(r.evidence for r in results if r.evidence))
        results = votes
        passed: bool | None = _more_than_half([bool(r.passed) for r in votes])
    else:
        values = [r.value for r in results if r.value is not None]
        value = float(median(values)) if 2 * len(values) > len(results) else None
        passed = None if value is None else rubric.passes(criterion.name, value)
    agreeing = [r for r in results if r.passed == passed]
    codes = tuple(dict.fromkeys(code for r in agreeing for code in r.codes))
    evidence = " | ".join(r.evidence for r in agreeing if r.evidence)
    return CriterionResult(passed, len(agreeing) / len(results), codes, evidence, value)


def _more_than_half(votes: Sequence[bool]) -> bool:
    return 2 * sum(votes) > len(votes)


MED_BANANA = read_rubric(Path(__file__).with_name("med_banana.toml"))
MED_BANANA_PUBLISHED = read_rubric(Path(__file__).with_name("med_banana_published.toml"))
MEDEBENCH = read_rubric(Path(__file__).with_name("medebench.toml"))
EDITSCORE = read_rubric(Path(__file__).with_name("editscore.toml"))
EDITREWARD = read_rubric(Path(__file__).with_name("editreward.toml"))
OURS = (MED_BANANA, MED_BANANA_PUBLISHED, MEDEBENCH, EDITSCORE, EDITREWARD)


def identity_of(rubric: Rubric) -> list[str | int]:
    """Return a rubric's identity for request hashes: [name, version], and `digest_of` if it is not plantain's."""
    known: list[str | int] = [rubric.name, rubric.version]
    return known if rubric in OURS else [*known, digest_of(rubric)]


def frozen(rubric: Rubric) -> dict[str, str]:
    """Convert a rubric to the form that a run stores: `name`, `sha256` of the content, and JSON `text`."""
    return {"name": rubric.name, "sha256": digest_of(rubric), "text": as_text(rubric)}


def recorded(frozen: Mapping[str, Any]) -> Rubric:
    """Read the rubric from a run's stored settings; Med-Banana's if they have none, as for an import."""
    return rubric_of(frozen["rubric"]["text"]) if "rubric" in frozen else MED_BANANA
