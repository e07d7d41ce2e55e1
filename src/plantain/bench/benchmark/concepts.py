"""Key concepts of samples whose metadata name none: the noun phrase of the edited object, from the prompt.

MedEBench (section 4) reads attention at the key visual concept of a prompt and does not publish the concepts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import orjson

from plantain.bench.benchmark.benchmark import Benchmark, metadata_of
from plantain.bench.benchmark.samples import Sample
from plantain.files.opening import replace_file
from plantain.files.tables import read_table, written_csv
from plantain.records import InputError
from plantain.records.messages import fold, suggest

COLUMNS = ("sample", "prompt", "concept", "reason")

_POLITE = re.compile(
    r"\W*(?:(?:please|(?!(?:ap|sup|multi)ply\b)\w+ly|(?:can|could|would) you|i(?:'d| would) like to|i want to|"
    r"(?:in|from|on) (?:the|this) (?:image|picture|photo(?:graph)?))[\s,]+)*",
    re.I,
)
# fmt: off
_PARTICLES = frozenset(("out", "off", "away", "up", "down", "rid", "or", "and", "of"))
_DETERMINERS = frozenset((
    "a", "an", "the", "any", "all", "some", "this", "that", "these", "those", "his", "her", "their", "its",
    "your", "my", "both",
))
_ENDS = frozenset((
    "from", "in", "on", "at", "with", "to", "within", "over", "under", "near", "along", "across", "into",
    "by", "for", "while", "so", "without", "around", "between", "after", "before", "using", "as", "that",
    "which", "where", "until", "look", "looks", "appear", "more", "less", "or", "and", "but",
))
_ASPECTS = frozenset((
    "size", "shape", "appearance", "look", "amount", "number", "visibility", "colour", "color", "thickness",
    "alignment", "position", "presence", "augmentation", "removal", "reconstruction", "liposuction",
    "tightening", "image", "picture", "photo", "photograph", "scan", "one", "two", "three", "half", "part", "parts",
))
"""Words for a property or a number of the object."""

_ADJECTIVES = frozenset((
    "upper", "lower", "left", "right", "front", "back", "first", "second", "third", "inner", "outer", "small",
    "large", "dark", "black", "brown", "red", "white", "yellow", "blue", "visible", "old", "new",
))
"""Words that share the noun after "and": "upper and lower teeth"; also those that end in -ing and -ed."""

_COMPARATIVES = frozenset((
    "better", "bigger", "brighter", "clearer", "darker", "deeper", "denser", "fainter", "firmer", "flatter", "fuller",
    "healthier", "higher", "larger", "lighter", "longer", "narrower", "paler", "redder", "rounder", "sharper",
    "shorter", "smaller", "smoother", "softer", "straighter", "thicker", "thinner", "whiter", "wider", "younger",
))
_RESULTS = frozenset(("make", "keep", "render", "turn"))
"""Verbs whose object is followed by the result: "make hair thicker"."""
# fmt: on


def concept_in(prompt: str) -> tuple[str, str]:
    """Return (the words of a prompt that name the edited object, ""), or ("", the reason if it names none).

    The object is the phrase after the opening verbs up to a preposition, a conjunction or a comma, without
    determiners; of "the size of the tumour" only "tumour" is returned.

    Example:
        >>> concept_in("Please remove the two lower wisdom teeth from this image.")
        ('two lower wisdom teeth', '')
        >>> concept_in("Whiten.")
        ('', "the prompt names no object after 'Whiten'")
    """
    start = _POLITE.match(prompt)
    words = list(re.finditer(r"[\w'’-]+|[^\w\s]", prompt[start.end() if start else 0 :]))
    tokens = [word[0].casefold() for word in words]
    if not tokens or not tokens[0][0].isalpha() or tokens[0] in _DETERMINERS:
        return "", "the prompt does not start with a verb"
    at = 1
    while at < len(tokens) and tokens[at] in _PARTICLES:  # "remove or fade", "take out", "get rid of"
        at += 2 if tokens[at] in ("or", "and") else 1
    phrase: list[int] = []
    for place in range(at, len(tokens)):
        token = tokens[place]
        ahead = tokens[phrase[-1]] if phrase else ""
        adjective = ahead in _ADJECTIVES or ahead.endswith(("ing", "ed"))  # "missing or injured eye"
        if (token == "of" and ahead in _ASPECTS) or (token in ("or", "and") and adjective):
            phrase = []
        elif token in _ENDS or token == "of" or not token[0].isalnum():
            if phrase or not token[0].isalnum():
                break
        elif token not in _DETERMINERS:
            phrase.append(place)
    result = phrase[-1] + 1 if phrase else 0
    if tokens[0] in _RESULTS and len(phrase) > 1:
        ends = tokens[result : result + 1] in ([], ["."], [","], ["!"], ["and"], ["or"], ["but"])
        ends = ends and tokens[at] not in ("a", "an")  # not "make a new tooth"
        phrase = phrase[:-1] if ends or tokens[phrase[-1]] in _ADJECTIVES | _COMPARATIVES else phrase
    after = _ASPECTS | _PARTICLES  # "take the stitches out"
    while phrase and (tokens[phrase[-1]] in after or tokens[phrase[-1]].endswith("ly")):
        phrase = phrase[:-1]
    if not phrase:
        return "", f"the prompt names no object after {words[0][0]!r}"
    offset = start.end() if start else 0
    return prompt[offset + words[phrase[0]].start() : offset + words[phrase[-1]].end()], ""


def concept_of(sample: Sample) -> tuple[str, str]:
    """Return (a sample's key concept, else its finding, else the prompt's object, ""), or ("", the reason)."""
    named = sample.key_concept or sample.finding
    return (named, "") if named else concept_in(sample.prompt)


def write_concepts(benchmark: Benchmark, file: Path) -> dict[str, str]:
    """Write every sample's concept to a CSV file for editing; return, by sample id, why a concept is missing."""
    found = {sample.id: concept_of(sample) for sample in benchmark.samples}
    rows = [[sample.id, sample.prompt, *found[sample.id]] for sample in benchmark.samples]
    replace_file(file, written_csv([list(COLUMNS), *rows]).encode())
    return {sample: reason for sample, (_, reason) in found.items() if reason}


def read_concepts(file: Path) -> dict[str, str]:
    """Return the concepts of a CSV table by sample id. Raise InputError, with the line, if it is malformed."""
    rows = read_table(file).require("sample", "concept").whole_rows()
    return {cells["sample"]: cells["concept"] for _, cells, _ in rows}


def store_concepts(root: Path, concepts: Mapping[str, str]) -> int:
    """Write concepts, by sample id, into a benchmark's metadata, skipping empty ones; return how many changed.

    Raises:
        InputError: the benchmark has no sample of an id.
    """
    path = metadata_of(root)
    data = orjson.loads(path.read_bytes())
    given = data["samples"] if isinstance(data, dict) and "samples" in data else data
    pairs = given.items() if isinstance(given, dict) else (("", row) for row in given)
    spelt = [(key, row, {fold(name): name for name in row}) for key, row in pairs]  # Figure 8 has "Id"
    rows = {str(row.get(names.get("id"), key)): (row, names) for key, row, names in spelt}
    changed = 0
    for sample, concept in concepts.items():
        if sample not in rows:
            raise InputError(f"--concepts: no sample {sample!r}; {suggest(sample, rows)}")
        row, names = rows[sample]
        name = names.get("keyconcept", names.get("concept", "key_concept"))
        if concept and row.get(name, "") != concept:
            row[name] = concept
            changed += 1
    replace_file(path, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
    return changed
