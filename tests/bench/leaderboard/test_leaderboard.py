"""The leaderboard as a file and as a page: complete, repeatable, harmless."""

from __future__ import annotations

import base64
import io
import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from PIL import Image

from bench.scored_run import WEAK, Made
from plantain.bench.leaderboard.page import write_leaderboard
from plantain.cli import main
from plantain.pixels.encode import XMP_PACKET


@pytest.fixture(scope="module")
def board(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_leaderboard([made.run], tmp_path_factory.mktemp("out"))


def test_a_copy_of_the_run_gives_every_file_byte_for_byte(made: Made, board: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made.run, tmp_path / "copy")
    again = write_leaderboard([copy], tmp_path / "again")
    files = sorted(path.relative_to(board.parent) for path in board.parent.rglob("*") if path.is_file())
    assert {path.suffix for path in files} == {".html", ".json", ".csv", ".tex", ".svg"}
    for file in files:
        assert (board.parent / file).read_bytes() == (again.parent / file).read_bytes(), file


def test_the_page_has_no_address_and_names_stay_text(board: Path) -> None:
    text = re.sub(r'data:image/jpeg;base64,[^"]+', "", board.read_text(encoding="utf-8"))
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", text))
    assert {address for address in addresses if "w3.org" not in address} <= {"https://matplotlib.org/"}
    assert "default-src 'none'" in unescape(text)
    assert "<i>noisy</i>" not in text and "planted/&lt;i&gt;noisy&lt;/i&gt;" in text
    assert "<b>below</b>" not in text
    assert "23 of 24" in text and "refused (1)" in text


def test_outputs_of_models_carry_the_synthetic_mark_and_inputs_do_not(board: Path) -> None:
    text = board.read_text(encoding="utf-8")
    marked = []
    for shot in re.findall(r'<figure class="shot[^"]*">.*?</figure>', text, flags=re.DOTALL):
        found = re.search(r'data:image/jpeg;base64,([^"]+)"', shot)
        if found:
            data = base64.b64decode(found.group(1))
            Image.open(io.BytesIO(data)).verify()
            marked.append((XMP_PACKET in data, "Before</figcaption>" in shot or "copy-input" in shot))
    assert {synthetic for synthetic, real in marked if real} == {False}
    assert {synthetic for synthetic, real in marked if not real} >= {True}


def test_the_command_prints_each_form(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "table", str(made.run)]) == 0
    assert "bold: best" in capsys.readouterr().out
    assert main(["bench", "table", str(made.run), "--to", str(tmp_path / "to")]) == 0
    assert (tmp_path / "to" / "leaderboard.html").exists()
    assert (tmp_path / "to" / "leaderboard.tex").read_text().startswith("% needs")
    assert (tmp_path / "to" / "leaderboard.csv").read_text().startswith("task,model,organ,metric")
    capsys.readouterr()
    assert main(["bench", "table", str(made.run), "--json", "--paper"]) == 2
    assert "choose one" in capsys.readouterr().err


def test_tables_of_the_paper_are_printed_by_name_with_what_is_missing(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run has three organs, one refused output and a study of demonstrations; no people, attention, training."""
    assert main(["bench", "table", str(made.run), "--paper"]) == 0
    lines = capsys.readouterr().out.splitlines()
    absent = next(line for line in lines if "the benchmark has no sample of them" in line)
    assert absent.startswith("missing from Table 2: ") and "Nose" in absent and "Skin" not in absent
    assert f"missing from Table 2: {WEAK.label}, EA: 1 of 24 outputs: refused (1)" in lines
    assert "bench rank --ratings reads them" in next(li for li in lines if "Table 3" in li)
    assert "Table 4: missing: no outputs of an open editor (diffusers/…)" in lines
    assert any(line.startswith("Table 7 (a): missing: no models trained") for line in lines)
    assert "Table 7 (b): demonstrations in the prompt of gemini/m" in lines
