"""Key concepts from prompts. The tasks are those of the paper's Table 5; the phrases were marked by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.small_bench import small_bench
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.concepts import concept_in, concept_of
from plantain.cli import main


@pytest.mark.parametrize(
    ("prompt", "concept"),
    [
        ("Remove birthmark", "birthmark"),
        ("Add a missing tooth in this dental image", "missing tooth"),
        ("Reconstruct missing or injured eye.", "injured eye"),
        ("Reconstruct eyelid or lower eyelid skin.", "eyelid"),
        ("Remove excess fat from neck.", "excess fat"),
        ("Make hair thicker.", "hair"),
        ("Improve hand appearance by injectable filler.", "hand"),
        ("Remove moles, nevi, or black marks.", "moles"),
        ("Remove or fade scar on nose.", "scar"),
        ("Please reduce the size of the Tumour completely", "Tumour"),
        ("Could you get rid of the eye bags?", "eye bags"),
        ("Perform lip augmentation.", "lip"),
        ("Carefully remove the upper and lower wisdom teeth", "lower wisdom teeth"),
        ("Make the eyebrows thicker and darker.", "eyebrows"),
        ("Make teeth whiter in this picture", "teeth"),
        ("Make a new ear.", "new ear"),
        *((f"Make {article} {name} smaller.", name) for article, name in (("a", "cancer"), ("an", "eye"))),
        ("Make the ring finger of the left hand longer", "ring finger"),
        ("Make the gall bladder in the scan larger", "gall bladder"),
        ("Make the left shoulder in this image higher", "left shoulder"),
        ("Make the skin cancer on the nose vanish", "skin cancer"),
        ("Turn the lung cancer into healthy tissue", "lung cancer"),
        *((f"{verb} the new teeth", "new teeth") for verb in ("Supply", "Multiply")),
        ("In the image, take two of the stitches out", "stitches"),
        ("Whiten.", ""),
        ("Edit the image so that it looks better", ""),
        ("The mole should vanish.", ""),
    ],
)
def test_concept_is_the_object_of_the_prompt_or_has_a_reason(prompt: str, concept: str) -> None:
    found, reason = concept_in(prompt)
    assert found == concept
    assert bool(reason) != bool(concept)
    assert found in prompt  # attention is read at words of the prompt


def test_editing_concepts_keeps_outputs_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = small_bench(tmp_path / "bench", 3)
    file = tmp_path / "concepts.csv"
    command = ["bench", "prepare", str(before.root), "--concepts", str(file)]
    assert main(command) == 0
    assert "concepts of 3 samples" in capsys.readouterr().out
    rows = file.read_text().splitlines()
    assert rows[0] == "sample,prompt,concept,reason" and len(rows) == 4
    file.write_text("sample,concept\n2,the bright disc\n")
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"changed": 1}
    after = Benchmark.load(before.root)
    assert concept_of(after.sample("2")) == ("the bright disc", "")
    assert after.digest == before.digest  # runs of the benchmark stay usable
    file.write_text("sample,concept\n9,disc\n")
    assert main(command) == 2
    assert "--concepts: no sample '9'" in capsys.readouterr().err
