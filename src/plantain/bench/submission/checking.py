"""Whether a submission is whole: files as their checksums say, outputs all there and of the right size, scored alike.

What is looked at is the bundle alone, and the benchmark where it is at hand.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.export_outputs import unmarked
from plantain.bench.generate.plan import content_of, sample_facts
from plantain.bench.submission.bundle import (
    LARGEST_TEXT,
    PICTURES,
    SUMS,
    Bundle,
    OutputRow,
    entries_of,
    open_bundle,
    read_listed,
)
from plantain.bench.submission.judged import judged_problems
from plantain.pixels.decode import BadImage, declared_size, decode_untrusted
from plantain.records import InputError


@dataclass(frozen=True, slots=True)
class CheckedBundle:
    """What a check found.

    Attributes:
        bundle: None where it could not be read at all.
        problems: a line each; none where the submission is whole.
        metrics: scored outputs by metric.
    """

    bundle: Bundle | None
    problems: tuple[str, ...]
    metrics: dict[str, int]


def check_bundle(root: Path, bench: Benchmark | None = None) -> CheckedBundle:
    """Checks a submission.

    Args:
        root: its folder.
        bench: that it says to be of; None to look at the bundle alone.

    Raises:
        InputError: there is no such folder.
    """
    if not root.is_dir():
        raise InputError(f"{root}: no such folder")
    try:
        problems = list(_entries(root))
        bundle = open_bundle(root)
    except (InputError, OSError) as error:
        return CheckedBundle(None, (str(error),), {})
    problems += _files(bundle)
    problems += _of_benchmark(bundle, bench) if bench is not None else ()
    problems += _coverage(bundle)
    problems += _pictures(bundle)
    problems += _scored(bundle)
    problems += judged_problems(bundle)
    metrics = Counter(row.metric for row in bundle.scores if row.value is not None)
    return CheckedBundle(bundle, tuple(problems), dict(sorted(metrics.items())))


def _entries(root: Path) -> Iterator[str]:
    for name, wrong in entries_of(root):
        if wrong:
            yield f"{name}: {wrong}"


def _files(bundle: Bundle) -> Iterator[str]:
    """Files that the checksums do not name, and named ones that are missing or changed."""
    there = {name for name, _ in entries_of(bundle.root)}
    for name in sorted(there - bundle.sums.keys() - {SUMS}):
        yield f"{name}: {SUMS} does not name it"
    for name in bundle.sums:
        try:
            read_listed(bundle.root, name, bundle.sums, LARGEST_TEXT)
        except InputError as error:
            yield str(error)
    used = {row.file for row in bundle.outputs}
    for name in sorted(name for name in bundle.sums if name.startswith(f"{PICTURES}/") and name not in used):
        yield f"{name}: no output is this file"


def _of_benchmark(bundle: Bundle, bench: Benchmark) -> Iterator[str]:
    if bundle.header.digest != bench.digest:
        yield (
            f"benchmark: {bundle.header.benchmark} {bundle.header.edition} ({bundle.header.digest[:12]}) is not the "
            f"one that was given: {bench.name} {bench.edition} ({bench.digest[:12]})"
        )
        return
    claimed = bundle.header.samples
    for sample in bench.samples:
        facts = claimed.get(sample.id)
        if facts is not None and facts != sample_facts(bench, sample, content_of(bench, sample)):
            yield f"sample {sample.id}: what the bundle says of it is not what the benchmark says"
    if set(claimed) != {sample.id for sample in bench.samples}:
        yield "samples: not those of the benchmark"


def _coverage(bundle: Bundle) -> Iterator[str]:
    """Every output of every arm has one row, of a sample that exists."""
    seen = Counter((row.arm, row.sample, row.k) for row in bundle.outputs)
    for (arm, sample, k), n in seen.items():
        if n > 1:
            yield f"{arm}, sample {sample}, output {k}: stands {n} times"
    wanted = {
        (label, sample, k)
        for label, arm in bundle.header.arms.items()
        for sample in bundle.header.samples
        if arm.covers(sample)
        for k in range(len(arm.grid))
    }
    for arm, sample, k in sorted(wanted - seen.keys()):
        yield f"{arm}, sample {sample}, output {k}: missing, without a reason"
    for arm, sample, k in sorted(seen.keys() - wanted):
        yield f"{arm}, sample {sample}, output {k}: no such output of this benchmark and arm"


def _pictures(bundle: Bundle) -> Iterator[str]:
    for row in bundle.outputs:
        where = f"{row.arm}, sample {row.sample}, output {row.k}"
        facts = bundle.header.samples.get(row.sample)
        if bool(row.file) == bool(row.reason):
            yield f"{where}: needs a file, or a reason why there is none, and not both"
        elif row.file and facts is not None:
            yield from (f"{where}: {wrong}" for wrong in _picture(bundle, row, facts.size))


def _picture(bundle: Bundle, row: OutputRow, size: tuple[int, int]) -> Iterator[str]:
    try:
        data = bundle.read(row)
        if declared_size(data) != size:
            yield f"{'x'.join(map(str, declared_size(data)))} pixels; the sample has {'x'.join(map(str, size))}"
            return
        decode_untrusted(data, row.file)
    except (InputError, BadImage) as error:
        yield str(error)
        return
    if hashlib.sha256(unmarked(data)).hexdigest() != row.blob:
        yield "the picture is not the one that the row names"


def _scored(bundle: Bundle) -> Iterator[str]:
    """One score of a metric and output; every made output has what any made output of the bundle has."""
    made = {(row.arm, row.sample, row.k): row for row in bundle.outputs}
    counted = Counter((row.arm, row.sample, row.k, row.metric) for row in bundle.scores)
    by_metric: dict[str, set[tuple[str, str, int]]] = defaultdict(set)
    for row in bundle.scores:
        place = (row.arm, row.sample, row.k)
        where = f"{row.arm}, sample {row.sample}, output {row.k}: {row.metric}"
        by_metric[row.metric].add(place)
        if counted[(*place, row.metric)] > 1:
            yield f"{where}: stands {counted[(*place, row.metric)]} times"
        if place not in made:
            yield f"{where}: a score of no output"
        elif (row.value is None) != bool(row.reason):
            yield f"{where}: needs a value, or a reason why there is none, and not both"
        elif row.value is not None and not made[place].file:
            yield f"{where}: a score of an output without a picture"
        elif row.detail.get("blob") != (made[place].blob or None):
            yield f"{where}: is of another picture than the output's"
    for metric, places in by_metric.items():
        arms = {arm for arm, _, _ in places}
        scored = {(arm, k) for arm, _, k in places}
        lacking = [p for p in made if p[0] in arms and (p[0], p[2]) in scored and p not in places]
        for arm, sample, k in lacking:
            yield f"{arm}, sample {sample}, output {k}: {metric}: has no row, where its neighbours have"
