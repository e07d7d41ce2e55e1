"""Ways to tamper with a submission. Each changes what is said or shown, and then makes every checksum right again."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import orjson

from plantain.bench.generate.export_outputs import marked, unmarked

Row = dict[str, Any]
Tampering = Callable[[Path, random.Random], None]


def read_rows(root: Path, name: str) -> list[Row]:
    """The rows of a table of a bundle."""
    return [orjson.loads(line) for line in (root / name).read_bytes().splitlines()]


def write_rows(root: Path, name: str, rows: list[Row]) -> None:
    """Replaces a table of a bundle."""
    (root / name).write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


def reseal(root: Path) -> None:
    """Makes SHA256SUMS right for whatever the folder holds now."""
    files = sorted(
        p for p in root.rglob("*") if p.is_file() and not p.is_symlink() and p.name != "SHA256SUMS"
    )
    lines = {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
    (root / "SHA256SUMS").write_text("".join(f"{lines[name]}  {name}\n" for name in sorted(lines)))


def _some(rows: list[Row], draw: random.Random, wanted: Callable[[Row], bool]) -> Row:
    return draw.choice([row for row in rows if wanted(row)])


def _measured(row: Row) -> bool:
    return "@" not in row["metric"] and row["value"] is not None


def _judged(row: Row) -> bool:
    return "@" in row["metric"] and row["value"] is not None


def better_score(root: Path, draw: random.Random) -> None:
    """A measured score is a little better than its output."""
    rows = read_rows(root, "scores.jsonl")
    _some(rows, draw, _measured)["value"] += draw.choice([0.001, 0.01, 0.1])
    write_rows(root, "scores.jsonl", rows)


def better_arm(root: Path, draw: random.Random) -> None:
    """All scores of one arm and metric are better."""
    rows = read_rows(root, "scores.jsonl")
    chosen = _some(rows, draw, _measured)
    for row in rows:
        if (row["arm"], row["metric"]) == (chosen["arm"], chosen["metric"]) and row["value"] is not None:
            row["value"] *= 1.01
    write_rows(root, "scores.jsonl", rows)


def score_withheld(root: Path, draw: random.Random) -> None:
    """A score has a reason in place of its value."""
    rows = read_rows(root, "scores.jsonl")
    _some(rows, draw, _measured).update(value=None, reason="identical images")
    write_rows(root, "scores.jsonl", rows)


def score_left_out(root: Path, draw: random.Random) -> None:
    """The row of a score is gone."""
    rows = read_rows(root, "scores.jsonl")
    rows.remove(draw.choice(rows))
    write_rows(root, "scores.jsonl", rows)


def sample_left_out(root: Path, draw: random.Random) -> None:
    """A sample is gone with outputs, scores and replies."""
    sample = draw.choice(read_rows(root, "outputs.jsonl"))["sample"]
    for row in read_rows(root, "outputs.jsonl"):
        if row["sample"] == sample and row["file"]:
            (root / row["file"]).unlink()
    for name in ("outputs.jsonl", "scores.jsonl", "replies.jsonl"):
        write_rows(root, name, [row for row in read_rows(root, name) if row["sample"] != sample])


def scores_exchanged(root: Path, draw: random.Random) -> None:
    """Two samples of an arm exchange a score."""
    rows = read_rows(root, "scores.jsonl")
    first = _some(rows, draw, _measured)
    second = _some(
        rows,
        draw,
        lambda r: _measured(r) and r["metric"] == first["metric"] and abs(r["value"] - first["value"]) > 1e-4,
    )
    first["value"], second["value"] = second["value"], first["value"]
    write_rows(root, "scores.jsonl", rows)


def _replace(root: Path, row: Row, data: bytes) -> None:
    """Another picture for an output, with every hash that names it."""
    blob = hashlib.sha256(unmarked(data)).hexdigest()
    for name in ("outputs.jsonl", "scores.jsonl"):
        rows = read_rows(root, name)
        for one in rows:
            if (one["arm"], one["sample"], one["k"]) == (row["arm"], row["sample"], row["k"]):
                if name == "outputs.jsonl":
                    one["blob"] = blob
                else:
                    one["detail"]["blob"] = blob
        write_rows(root, name, rows)
    (root / row["file"]).write_bytes(data)


def picture_exchanged(root: Path, draw: random.Random) -> None:
    """An output shows what the other arm, or another sample, made; its scores stay."""
    rows = [row for row in read_rows(root, "outputs.jsonl") if row["file"]]
    first = draw.choice(rows)
    other = _some(rows, draw, lambda row: (row["arm"], row["sample"]) != (first["arm"], first["sample"]))
    _replace(root, first, (root / other["file"]).read_bytes())


def picture_retouched(root: Path, draw: random.Random) -> None:
    """An output is another picture by a few grey levels in one place; its scores stay."""
    row = _some(read_rows(root, "outputs.jsonl"), draw, lambda row: bool(row["file"]))
    pixels = cv2.imdecode(np.frombuffer((root / row["file"]).read_bytes(), np.uint8), cv2.IMREAD_COLOR)
    y, x = draw.randrange(pixels.shape[0] - 20), draw.randrange(pixels.shape[1] - 20)
    pixels[y : y + 20, x : x + 20] = 255 - pixels[y : y + 20, x : x + 20]
    _replace(root, row, marked(cv2.imencode(".png", pixels)[1].tobytes()))


def picture_resized(root: Path, draw: random.Random) -> None:
    """An output has another size than its sample."""
    row = _some(read_rows(root, "outputs.jsonl"), draw, lambda row: bool(row["file"]))
    pixels = cv2.imdecode(np.frombuffer((root / row["file"]).read_bytes(), np.uint8), cv2.IMREAD_COLOR)
    smaller = cv2.resize(pixels, (pixels.shape[1] // 2, pixels.shape[0] // 2))
    _replace(root, row, marked(cv2.imencode(".png", smaller)[1].tobytes()))


def better_judgement(root: Path, draw: random.Random) -> None:
    """A judge's score is better than its replies."""
    rows = read_rows(root, "scores.jsonl")
    row = _some(rows, draw, _judged)
    row["value"] = 0.95 if row["value"] < 0.9 else 0.5
    write_rows(root, "scores.jsonl", rows)


def better_reply(root: Path, draw: random.Random) -> None:
    """A reply is better than the score that was made of it."""
    rows = read_rows(root, "replies.jsonl")
    row = _some(rows, draw, lambda row: bool(row["answer"]))
    told = orjson.loads(row["answer"])
    name = draw.choice([key for key, one in told["criteria"].items() if one.get("value") is not None])
    told["criteria"][name]["value"] = 10.0 if told["criteria"][name]["value"] < 9 else 3.0
    row["answer"] = orjson.dumps(told).decode()
    write_rows(root, "replies.jsonl", rows)


def replies_exchanged(root: Path, draw: random.Random) -> None:
    """Two outputs exchange their replies and judges' scores."""
    replies = read_rows(root, "replies.jsonl")
    first, second = draw.sample(replies, 2)
    places = [(row["arm"], row["sample"], row["k"]) for row in (first, second)]
    for name in ("answer", "request"):
        first[name], second[name] = second[name], first[name]
    write_rows(root, "replies.jsonl", replies)
    scores = read_rows(root, "scores.jsonl")
    judged = [{r["metric"]: r for r in scores if (r["arm"], r["sample"], r["k"]) == p and "@" in r["metric"]}
              for p in places]  # fmt: skip
    for metric, row in judged[0].items():
        row["value"], judged[1][metric]["value"] = judged[1][metric]["value"], row["value"]
    write_rows(root, "scores.jsonl", scores)


def reply_left_out(root: Path, draw: random.Random) -> None:
    """A reply is gone, its scores stay."""
    rows = read_rows(root, "replies.jsonl")
    rows.remove(draw.choice(rows))
    write_rows(root, "replies.jsonl", rows)


def other_version(root: Path, draw: random.Random) -> None:
    """A score says to be of another version of its metric."""
    rows = read_rows(root, "scores.jsonl")
    _some(rows, draw, _measured)["detail"]["version"] = "0"
    write_rows(root, "scores.jsonl", rows)


def other_benchmark(root: Path, draw: random.Random) -> None:
    """The bundle says to be of other content."""
    told = orjson.loads((root / "bundle.json").read_bytes())
    told["digest"] = hashlib.sha256(str(draw.random()).encode()).hexdigest()
    (root / "bundle.json").write_bytes(orjson.dumps(told))


def other_facts(root: Path, draw: random.Random) -> None:
    """A sample is said to belong to another organ, which moves a score to another row."""
    told = orjson.loads((root / "bundle.json").read_bytes())
    draw.choice(told["samples"])["organ"] = "Teeth"
    (root / "bundle.json").write_bytes(orjson.dumps(told))


def file_added(root: Path, draw: random.Random) -> None:
    """Something lies in the bundle that no row names."""
    (root / "outputs" / f"run{draw.randrange(99)}.py").write_text("print('never run')")


def linked(root: Path, draw: random.Random) -> None:
    """An output is a link to a file outside."""
    row = _some(read_rows(root, "outputs.jsonl"), draw, lambda row: bool(row["file"]))
    path = root / row["file"]
    outside = root.parent / f"{root.name}-outside.png"
    path.replace(outside)
    path.symlink_to(outside)


def leads_out(root: Path, draw: random.Random) -> None:
    """An output names a file outside of the bundle."""
    rows = read_rows(root, "outputs.jsonl")
    _some(rows, draw, lambda row: bool(row["file"]))["file"] = draw.choice(
        ["../secret.png", "/etc/passwd", "outputs/../../x.png", "C:\\x.png"]
    )
    write_rows(root, "outputs.jsonl", rows)


TAMPERINGS: tuple[Tampering, ...] = (
    *(better_score, better_arm, score_withheld, score_left_out, sample_left_out, scores_exchanged),
    *(picture_exchanged, picture_retouched, picture_resized, better_judgement, better_reply),
    *(replies_exchanged, reply_left_out, other_version, other_benchmark, other_facts),
    *(file_added, linked, leads_out),
)
