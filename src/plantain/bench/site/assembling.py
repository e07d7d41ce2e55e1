"""Submissions of one benchmark's content as one table: bundles in, the leaderboard's own `Scores` out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import orjson

from plantain.bench.generate.arms import Arm
from plantain.bench.leaderboard.table_rows import Scores, in_table_order
from plantain.bench.submission.bundle import Bundle, OutputRow
from plantain.journal.cards import Standing, from_json, standing_of
from plantain.metrics.statistics.bradley_terry import Comparison
from plantain.pixels.arrays import Floats
from plantain.records import InputError
from plantain.rubrics import MEDEBENCH


@dataclass(frozen=True, slots=True)
class Board:
    """All submissions of one content of a benchmark.

    Attributes:
        name, edition, digest: of the benchmark.
        scores: of all arms.
        outputs: by (label, sample), the first output and the bundle that holds it.
        models: label -> what its submitter says of it; submissions: label -> name of the submission.
        compared: what people said of two arms side by side.
        cards: what judges rest on, by their label.
    """

    name: str
    edition: str
    digest: str
    scores: Scores
    outputs: Mapping[tuple[str, str], tuple[Bundle, OutputRow]]
    models: Mapping[str, str]
    submissions: Mapping[str, str]
    compared: Sequence[Comparison]
    cards: Mapping[str, Standing]


def boards(bundles: Sequence[Bundle]) -> list[Board]:
    """One board for each content of a benchmark, newest version first; content without a version last.

    Raises:
        InputError: two bundles say different things of one content's samples.
    """
    groups: dict[str, list[Bundle]] = defaultdict(list)
    for bundle in sorted(bundles, key=lambda one: (one.header.name, one.sums.get("bundle.json", ""))):
        groups[bundle.header.digest].append(bundle)
    made = [_board(group) for group in groups.values()]
    return sorted(made, key=lambda one: (one.name, _order(one.edition), one.digest), reverse=True)


def _order(edition: str) -> tuple[int, ...]:
    numbers = edition.partition("+")[0].split(".")
    return tuple(int(one) for one in numbers) if all(one.isdigit() for one in numbers) else (-1,)


def _board(bundles: Sequence[Bundle]) -> Board:
    first = bundles[0].header
    samples = tuple(first.samples.values())
    for bundle in bundles[1:]:
        if dict(bundle.header.samples) != dict(first.samples):
            raise InputError(
                f"{bundle.root}: disagrees about the samples of {first.benchmark} {first.edition} than "
                f"{bundles[0].root}; `plantain bench submit-check --bench` tells which one is right"
            )
    names = _labels(bundles)
    place = {facts.id: i for i, facts in enumerate(samples)}
    arms: list[Arm] = []
    values: dict[tuple[str, str], Floats] = {}
    missing: dict[tuple[str, str], Counter[str]] = {}
    outputs: dict[tuple[str, str], tuple[Bundle, OutputRow]] = {}
    for number, bundle in enumerate(bundles):
        label = {old: names[number, old] for old in bundle.header.arms}
        own = {old: replace(arm, label=label[old]) for old, arm in bundle.header.arms.items()}
        arms += own.values()
        for row in bundle.scores:
            if row.arm not in own or row.sample not in place or row.k >= len(own[row.arm].grid):
                continue
            key = (label[row.arm], row.metric)
            if row.value is None:
                if row.k in own[row.arm].scored:
                    missing.setdefault(key, Counter())[row.reason[:200]] += 1
                continue
            table = values.setdefault(key, np.full((len(samples), len(own[row.arm].grid)), np.nan))
            table[place[row.sample], row.k] = row.value
        for output in bundle.outputs:
            if output.k == 0 and output.file and output.arm in label:
                outputs[label[output.arm], output.sample] = (bundle, output)
    cards = _standings(bundles)
    scores = Scores(
        run=first.benchmark,
        benchmark=" ".join(filter(None, (first.benchmark, first.edition))),
        seed=0,
        samples=samples,
        arms=in_table_order(arms),
        outputs=values,
        missing=missing,
        standings=cards,
    )
    described = {names[n, old]: text for n, b in enumerate(bundles) for old, text in b.header.models.items()}
    by = {names[n, old]: b.header.name for n, b in enumerate(bundles) for old in b.header.arms}
    return Board(
        first.benchmark,
        first.edition,
        first.digest,
        scores,
        outputs,
        described,
        by,
        _compared(bundles, names),
        cards,
    )


def _labels(bundles: Sequence[Bundle]) -> dict[tuple[int, str], str]:
    """A label of its own for each arm of each bundle: its own, with the submission's name where two have it."""
    used = Counter(label for bundle in bundles for label in bundle.header.arms)
    found: dict[tuple[int, str], str] = {}
    for number, bundle in enumerate(bundles):
        for label in bundle.header.arms:
            unique = label if used[label] == 1 else f"{label} ({bundle.header.name})"
            found[number, label] = unique if unique not in found.values() else f"{unique} #{number + 1}"
    return found


def _standings(bundles: Sequence[Bundle]) -> dict[str, Standing]:
    cards = [
        from_json(orjson.dumps(card), str(bundle.root)) for bundle in bundles for card in bundle.header.cards
    ]
    found: dict[str, Standing] = {}
    for bundle in bundles:
        for row in bundle.header.judges:
            label = row.get("label", "")
            one = standing_of(cards, label.rpartition("/")[0], MEDEBENCH.name, row.get("fingerprint", ""))
            if label not in found or one.card is not None:
                found[label] = one
    return found


def _compared(bundles: Sequence[Bundle], names: Mapping[tuple[int, str], str]) -> tuple[Comparison, ...]:
    """People's comparisons: only arms of one submission were shown side by side."""
    return tuple(
        Comparison(names[n, row.left], names[n, row.right], row.outcome, f"{n}/{row.reader}", row.case)
        for n, bundle in enumerate(bundles)
        for row in bundle.pairs
        if row.left in bundle.header.arms and row.right in bundle.header.arms and row.left != row.right
    )
