"""Judges' scores in a submission: whether they follow from the replies that came along."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping

import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.score.judging import MOST_AGAIN, MOST_DRAWS, report_from_json
from plantain.bench.submission.bundle import Bundle, ReplyRow, ScoreRow
from plantain.bench.submission.packing import draws_of
from plantain.records import Step, derive_seed
from plantain.rubrics import MEDEBENCH

CLOSE = 1e-9
"""How far a judge's score may lie from the mean of its replies."""

Place = tuple[str, str, int]


def judged_problems(bundle: Bundle, bench: Benchmark | None = None) -> Iterator[str]:
    """What is wrong with the judges' scores of a bundle, a line each.

    A score must be the mean of its draws, each draw must be a reply of the bundle, and each reply must be behind a
    score. With the benchmark at hand, each reply must also be to the question about this very output.
    """
    replies = {(row.arm, row.sample, row.k, row.model, row.draw): row for row in bundle.replies}
    if len(replies) != len(bundle.replies):
        yield "replies.jsonl: a draw stands twice"
    used: set[tuple[str, str, int, str, int]] = set()
    for row in bundle.scores:
        if "@" not in row.metric:
            continue
        where = f"{row.arm}, sample {row.sample}, output {row.k}: {row.metric}"
        draws, model = draws_of(row.detail), str(row.detail.get("judge", ""))
        if row.value is None and not draws:
            continue  # nobody was asked; the reason says why
        answers = {draw: replies.get((row.arm, row.sample, row.k, model, draw)) for draw in draws}
        used |= {(row.arm, row.sample, row.k, model, draw) for draw in draws}
        if not draws or len(draws) != row.detail.get("asked") or None in answers.values():
            yield f"{where}: not every reply that it says to be made of came along"
            continue
        known = {draw: reply for draw, reply in answers.items() if reply is not None}
        if wrong := _score_wrong(row, known):
            yield f"{where}: {wrong}"
        if bench is not None and any(
            reply.request != _request(row, bundle, bench, reply) for reply in known.values()
        ):
            yield f"{where}: a reply is not to the question about this output"
    for key in sorted(replies.keys() - used):
        yield f"{key[0]}, sample {key[1]}, output {key[2]}: a reply of {key[3]} that no score is made of"


def _score_wrong(row: ScoreRow, replies: Mapping[int, ReplyRow]) -> str:
    """Why a score does not follow from its replies; "" where it does."""
    values: list[float] = []
    for reply in replies.values():
        try:
            value = _value(row, reply) if reply.answer else None
        except (ValueError, KeyError, TypeError, AttributeError):
            return "a reply that cannot be read"
        values += [] if value is None else [value]
    if not values:
        return "" if row.value is None else "a value, where no reply has one"
    least, most = _scale(row)
    if not all(least <= value <= most for value in values):
        return f"a reply off the scale of {least:g} to {most:g}"
    mean = (sum(values) / len(values) - least) / (most - least)
    if row.value is None or not math.isclose(row.value, mean, rel_tol=0, abs_tol=CLOSE):
        stored = "none" if row.value is None else f"{row.value:.4f}"
        return f"{stored}, its replies say {mean:.4f}"
    return ""


def _value(row: ScoreRow, reply: ReplyRow) -> float | None:
    report = report_from_json(reply.answer)
    base = row.metric.partition("@")[0].partition(":")[0]
    short = {(c.short or c.name).lower(): c.name for c in MEDEBENCH.criteria}
    named = {name.lower(): name for name in report.criteria}
    result = report.criteria[short.get(base, "") if short.get(base) in report.criteria else named[base]]
    if result.value is not None or result.passed is None:
        return result.value
    return float(result.passed)


def _scale(row: ScoreRow) -> tuple[float, float]:
    scale = row.detail.get("scale")
    if isinstance(scale, list) and len(scale) == 2 and ":" in row.metric.partition("@")[0]:
        least, most = (float(str(end)) for end in scale)
        if least < most:
            return least, most
    return 0.0, 10.0


def _request(row: ScoreRow, bundle: Bundle, bench: Benchmark, reply: ReplyRow) -> str:
    """The hash of the question that a draw answers, as `bench score` asks it."""
    number, again = reply.draw % MOST_DRAWS, reply.draw // MOST_DRAWS % MOST_AGAIN
    identity = {
        "fingerprint": str(row.detail.get("version", "")).partition(" ")[2],
        "seed": derive_seed(bundle.header.seed, "judge", row.sample, number, again),
        "sample": bench.sample_digest(bench.sample(row.sample)),
        "edited": row.detail.get("blob"),
        "variant": row.detail.get("variant"),
        "truth": row.detail.get("truth"),
    }
    payload = orjson.dumps([reply.model, Step.JUDGE.value, identity], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(payload).hexdigest()
