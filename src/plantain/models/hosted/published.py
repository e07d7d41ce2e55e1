"""Read MedEBench's published answer format: a description of the differences, then lines `Editing Accuracy: 8/10`.

The format is that of the paper's judging prompts (H.2, H.3, an answer is in E.1); its published script also asks for
`Contextual Preservation`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from plantain.models.hosted.answers import Unreadable, without_thoughts
from plantain.records import CriterionResult, Observations, Rubric

SCALE = (0, 10)
LABELS = {
    "editing_accuracy": r"editing\s+accuracy",
    "context_preservation": r"context(?:ual)?\s+preservation",
    "visual_quality": r"visual\s+quality",
}
"""Criterion -> pattern of its published name."""

_NAMES = "|".join(f"(?P<{name}>{label})" for name, label in LABELS.items())
_LINE = re.compile(
    rf"(?im)^[ \t>•·*+–—-]*(?:\(?(?:\d+|[a-z])[.)][ \t]*)?(?:{_NAMES})[ \t]*(?:\(0[ \t]*[-–][ \t]*10\))?[ \t]*"
    r"(?:[:：=]|[-–—](?=[ \t]))?[ \t]*[\[(]?(?P<value>[+−-]?\d+(?:\.\d+)?)(?P<rest>.*)$"
)
"""A line that states a score, markup removed: list mark, name, optional scale and separator, number."""

_SCALE = re.compile(r"[\])]?\s*(?:/|\(?(?:out )?of\b)\s*\[?(?P<most>\d+(?:\.\d+)?)[\])]*", re.IGNORECASE)
_NOT_ALONE = re.compile(r"[^\W_]|½|\.\d|[\])]?\s*(?:%|/|,\d|(?:[-–~]|to\b)\s*\d)", re.IGNORECASE)
"""A continuation that makes the number part of a longer number, a range, a percentage or a fraction."""

_MARKUP = re.compile(r"[*_`#|\\]+")


def names_in(text: str) -> tuple[str, ...]:
    """Return the criteria whose published names occur in a text."""
    return tuple(name for name, label in LABELS.items() if re.search(label, text, re.IGNORECASE))


def can_answer_in_lines(rubric: Rubric) -> bool:
    """Return True if every criterion has a published name and its scale of 0 to 10."""
    return all(criterion.name in LABELS and criterion.scale == SCALE for criterion in rubric.criteria)


def read_lines(text: str, rubric: Rubric, asked: Collection[str]) -> Observations:
    """Read the scores from an answer in the published format.

    A criterion's value is stated by every line that starts, after markup, with its name followed by `n/10`, `[n]/10`
    or `n`. Equal values count once. The reason follows on the same line or below.

    Args:
        text: the answer.
        rubric: its criteria; those that were not requested are unscored.
        asked: the criteria that the prompt requests.

    Raises:
        Unreadable: a criterion has no value, different values, another denominator, or a value off the scale.
    """
    plain = _MARKUP.sub("", without_thoughts(text))
    lines = list(_LINE.finditer(plain))
    bounds = [*(line.start() for line in lines), len(plain)]
    values: dict[str, set[float]] = {name: set() for name in LABELS}
    reasons = dict.fromkeys(LABELS, "")
    problems: list[str] = []
    for line, end in zip(lines, bounds[1:], strict=True):
        name = next(name for name in LABELS if line[name])
        scale = _SCALE.match(line["rest"])
        rest = line["rest"][scale.end() :] if scale else line["rest"]
        value = float(line["value"].replace("−", "-"))
        if (scale and float(scale["most"]) != SCALE[1]) or _NOT_ALONE.match(rest) or not 0 <= value <= 10:
            problems.append(f"{name} must be a number from 0 to 10, not {line['value']}{line['rest'][:20]}")
        values[name].add(value)
        reasons[name] = reasons[name] or (rest.lstrip(" ])\t,.;:-–—") + plain[line.end() : end]).strip()
    criteria: dict[str, CriterionResult] = {}
    for criterion in rubric.criteria:
        stated = sorted(values[criterion.name])
        if len(stated) == 1:
            passed = rubric.passes(criterion.name, stated[0])
            criteria[criterion.name] = CriterionResult(passed, None, (), reasons[criterion.name], stated[0])
        elif stated:
            problems.append(f"{criterion.name} has different values: {', '.join(f'{n:g}' for n in stated)}")
        elif criterion.name in asked:
            problems.append(f"{criterion.name} has no line such as `{_label(criterion.name)}: n/10`")
        else:
            criteria[criterion.name] = CriterionResult(None, evidence="not requested")
    if problems:
        raise Unreadable("; ".join(problems))

    words = [f"{c.short or c.name}: {reasons[c.name]}" for c in rubric.criteria if reasons[c.name]]
    return Observations(criteria, reason=" ".join(words), differences=plain[: bounds[0]].strip()[:4000])


def _label(name: str) -> str:
    return name.replace("context_", "contextual_").replace("_", " ").title()
