"""Submissions: what is packed is whole, what was tampered with is named, and nothing in a bundle leads anywhere."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from bench.discs import PLANTED, make_run
from bench.small_bench import small_bench
from bench.submission.conftest import Submitted
from bench.submission.tampering import TAMPERINGS, Tampering, read_rows, reseal, write_rows
from plantain.bench.edition.hiding import hide
from plantain.bench.generate.export_outputs import marked, unmarked
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.bench.submission.bundle import HEADER, open_bundle
from plantain.bench.submission.checking import check_bundle
from plantain.bench.submission.packing import pack_run
from plantain.bench.submission.rescoring import rescore
from plantain.cli import main
from plantain.metrics.networks.encoders import Networks
from plantain.records import InputError


def named(root: Path, submitted: Submitted) -> list[str]:
    """What a holder's rescoring says of a bundle."""
    try:
        return list(rescore(root, submitted.bench, Networks()).problems)
    except InputError as error:
        return [str(error)]


def test_what_is_packed_is_whole_and_follows_from_its_outputs(
    submitted: Submitted, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = str(submitted.bench.root)
    assert main(["bench", "submit-check", str(submitted.bundle), "--bench", bench]) == 0
    assert "masked_ssim" in capsys.readouterr().out
    assert main(["bench", "rescore", str(submitted.bundle), "--bench", bench, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    outputs = read_rows(submitted.bundle, "outputs.jsonl")
    assert told["compared"] == {"masked_ssim": len(outputs), "psnr": len(outputs)}
    header = open_bundle(submitted.bundle).header
    assert set(header.arms) == set(PLANTED)
    assert header.models[next(iter(PLANTED))] == "knows the truth"


def test_packing_twice_gives_the_same_bytes(submitted: Submitted, tmp_path: Path) -> None:
    pack_run(submitted.run, tmp_path / "again", models={next(iter(PLANTED)): "knows the truth"})
    assert (tmp_path / "again" / "SHA256SUMS").read_bytes() == (submitted.bundle / "SHA256SUMS").read_bytes()


@pytest.mark.parametrize("tamper", TAMPERINGS, ids=lambda tamper: str(tamper.__name__))
def test_every_tampering_is_named(tamper: Tampering, submitted: Submitted, tmp_path: Path) -> None:
    shutil.copytree(submitted.bundle, tmp_path / "bundle")
    tamper(tmp_path / "bundle", random.Random(7))
    reseal(tmp_path / "bundle")
    assert named(tmp_path / "bundle", submitted)


def test_a_file_changed_without_its_checksum_is_named(submitted: Submitted, tmp_path: Path) -> None:
    shutil.copytree(submitted.bundle, tmp_path / "bundle")
    row = next(row for row in read_rows(tmp_path / "bundle", "outputs.jsonl") if row["file"])
    path = tmp_path / "bundle" / row["file"]
    path.write_bytes(path.read_bytes()[:-1])
    problems = check_bundle(tmp_path / "bundle").problems
    assert any("checksum" in line and row["file"] in line for line in problems)


def test_outputs_replaced_with_all_their_scores_are_another_submission(
    submitted: Submitted, tmp_path: Path
) -> None:
    """No bundle can show it: the documentation says so."""
    root = tmp_path / "bundle"
    shutil.copytree(submitted.bundle, root)
    first, second = tuple(PLANTED)[:2]
    for name in ("outputs.jsonl", "scores.jsonl", "replies.jsonl"):
        rows = [row for row in read_rows(root, name) if row["arm"] in (first, second)]
        for row in rows:
            row["arm"] = second if row["arm"] == first else first
        write_rows(root, name, rows)
    told = json.loads((root / "bundle.json").read_text())
    told["arms"] = {label: told["arms"][label] for label in (first, second)}
    (root / "bundle.json").write_text(json.dumps(told))
    kept = {row["file"] for row in read_rows(root, "outputs.jsonl")}
    for path in root.glob("outputs/*/*.png"):
        if str(path.relative_to(root)) not in kept:
            path.unlink()
    reseal(root)
    assert named(root, submitted) == []


def test_another_benchmark_is_refused_and_a_folder_that_is_no_bundle_too(
    submitted: Submitted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_bench(tmp_path / "other", 2)
    assert main(["bench", "rescore", str(submitted.bundle), "--bench", str(tmp_path / "other")]) == 2
    assert "not of Small" in capsys.readouterr().err
    assert main(["bench", "submit-check", str(tmp_path / "other")]) == 1
    assert "SHA256SUMS is missing" in capsys.readouterr().out


def test_a_header_that_is_no_object_is_refused_in_plain_words(submitted: Submitted, tmp_path: Path) -> None:
    root = tmp_path / "bundle"
    shutil.copytree(submitted.bundle, root)
    (root / HEADER).write_bytes(b"[]")
    reseal(root)
    assert named(root, submitted) == [f"bundle/{HEADER}: an object is needed"]


def test_a_mark_goes_on_and_off_and_leaves_the_pixels(tmp_path: Path) -> None:
    png = cv2.imencode(".png", np.arange(300, dtype=np.uint8).reshape(10, 10, 3))[1].tobytes()
    assert unmarked(marked(png)) == png
    assert unmarked(png) == png
    assert (
        cv2.imdecode(np.frombuffer(marked(png), np.uint8), 1) == cv2.imdecode(np.frombuffer(png, np.uint8), 1)
    ).all()


def test_the_holder_of_hidden_truths_scores_what_was_measured_without_them(
    submitted: Submitted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = hide(submitted.bench, 0.3, bytes(32), tmp_path / "public", tmp_path / "private")
    make_run(parts.public, tmp_path / "run")
    asyncio.run(score_run(tmp_path / "run", parts.public, ScoreRequest(("psnr",), networks=Networks())))
    pack_run(tmp_path / "run", tmp_path / "bundle")
    hidden = {sample.id for sample in parts.private.samples}
    told = read_rows(tmp_path / "bundle", "scores.jsonl")
    assert not [row for row in told if row["sample"] in hidden and row["value"] is not None]
    argv = ["bench", "rescore", str(tmp_path / "bundle"), "--bench", str(tmp_path / "private")]
    assert main([*argv, "--to", str(tmp_path / "scored")]) == 0
    said = capsys.readouterr().out
    assert "psnr" in said and "OK: scored against the hidden truths" in said
    scored = open_bundle(tmp_path / "scored")
    assert set(scored.header.samples) == hidden
    assert scored.header.rescored
    assert any(row.metric == "psnr" and row.value is not None for row in scored.scores)
    assert main(["bench", "rescore", str(submitted.bundle), "--bench", str(tmp_path / "private")]) == 2
    bundle = tmp_path / "bundle"
    rows = read_rows(bundle, "outputs.jsonl")
    (bundle / next(row["file"] for row in rows if row["file"])).unlink()
    capsys.readouterr()
    assert main([*argv, "--to", str(tmp_path / "not kept")]) == 1
    assert "NOT OK" in capsys.readouterr().out and not (tmp_path / "not kept").exists()
    gone = [row | {"file": "", "blob": "", "reason": "no answer"} for row in rows]
    write_rows(bundle, "outputs.jsonl", gone)
    shutil.rmtree(bundle / "outputs")
    reseal(bundle)
    main(argv)
    assert "scored against" not in capsys.readouterr().out
