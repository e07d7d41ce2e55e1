"""The site of a leaderboard: what stands on it, that it asks for nothing, and that it comes out byte for byte again."""

from __future__ import annotations

import hashlib
import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from bench.scored_run import make_all
from bench.submission.tampering import read_rows, reseal, write_rows
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.site.assembling import boards
from plantain.bench.site.pages import write_site
from plantain.bench.submission.bundle import ComparisonRow, open_bundle
from plantain.bench.submission.packing import pack_run
from plantain.cli import main
from plantain.records import InputError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    run = make_all(folder, organs=("Skin", "Eyes"), per_organ=4).run
    pack_run(run, folder / "first", name="first")
    labels = list(open_bundle(folder / "first").header.arms)
    pairs = [
        ComparisonRow(
            left=labels[0], right=labels[1], outcome=1 if n % 4 else -1, reader=f"r{n % 3}", case=f"c{n % 5}"
        )
        for n in range(30)
    ]
    pack_run(run, folder / "second", name="second", arms=labels[:2], pairs=pairs)
    return folder


def sums(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_site_has_a_page_for_everything_and_asks_for_nothing(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "site"
    bundles = [str(made / name) for name in ("first", "second")]
    assert main(["bench", "site", *bundles, "--to", str(out), "--space"]) == 0
    board = next(path for path in out.iterdir() if path.is_dir())
    names = {path.name for path in board.iterdir()}
    assert {"index.html", "leaderboard.html", "compare.html", "judges.html", "leaderboard.csv"} <= names
    assert {"organ-skin.html", "organ-eyes.html"} <= names
    assert any(name.startswith("task-") for name in names)
    assert (out / "README.md").read_text().startswith("---\ntitle:")
    for path in out.rglob("*.html"):
        text = html.unescape(path.read_text(encoding="utf-8"))
        assert "default-src 'none'" in text
        assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text), path
        for address in re.findall(r'<a href="([^"#]+)"', text):
            assert (path.parent / address).is_file(), (path, address)
    shown = (board / "index.html").read_text(encoding="utf-8")
    assert "People, two at a time" in shown
    assert "(first)" in shown
    assert "(second)" in shown


def test_the_same_bundles_give_the_same_bytes_elsewhere(made: Path, tmp_path: Path) -> None:
    write_site([open_bundle(made / "first"), open_bundle(made / "second")], tmp_path / "here")
    for name in ("first", "second"):
        shutil.copytree(made / name, tmp_path / "another folder" / f"copy of {name}")
    elsewhere = {"TZ": "Asia/Kolkata", "LC_ALL": "de_DE.UTF-8", "PYTHONHASHSEED": "77"}
    argv = [str(tmp_path / "another folder" / f"copy of {name}") for name in ("second", "first")]
    command = [sys.executable, "-m", "plantain", "bench", "site", *argv, "--to", str(tmp_path / "there")]
    subprocess.run(command, env={**os.environ, **elsewhere}, check=True, capture_output=True)
    assert sums(tmp_path / "here") == sums(tmp_path / "there")


def test_two_versions_never_share_a_table(made: Path, tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    shutil.copytree(made / "second", newer)
    told = orjson.loads((newer / "bundle.json").read_bytes())
    told |= {"edition": "2.0.0", "digest": hashlib.sha256(b"other").hexdigest(), "name": "newer"}
    (newer / "bundle.json").write_bytes(orjson.dumps(told))
    reseal(newer)
    found = boards([open_bundle(made / "first"), open_bundle(newer)])
    assert [(board.edition, len(board.scores.arms)) for board in found] == [
        ("2.0.0", 2),
        ("", len(open_bundle(made / "first").header.arms)),
    ]


def test_bundles_that_contradict_each_other_are_refused(made: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(made / "second", other)
    told = orjson.loads((other / "bundle.json").read_bytes())
    told["samples"][0]["organ"] = "Teeth"
    (other / "bundle.json").write_bytes(orjson.dumps(told))
    reseal(other)
    with pytest.raises(InputError, match="disagrees about the samples"):
        boards([open_bundle(made / "first"), open_bundle(other)])


def test_names_of_strangers_stay_text_and_restricted_pictures_stay_away(made: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    shutil.copytree(made / "second", bad)
    told = orjson.loads((bad / "bundle.json").read_bytes())
    told["name"] = "<script>alert(1)</script>"
    for row in told["samples"]:
        row["licence"] = "credentialed"
    (bad / "bundle.json").write_bytes(orjson.dumps(told))
    write_rows(bad, "outputs.jsonl", read_rows(bad, "outputs.jsonl"))
    reseal(bad)
    write_site([open_bundle(bad)], tmp_path / "site", [Benchmark.load(made / "bench")])
    for path in (tmp_path / "site").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "<script>alert" not in text
        if path.name != "leaderboard.html":
            assert "data:image" not in text
