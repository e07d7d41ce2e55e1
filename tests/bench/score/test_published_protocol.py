"""`bench score --prompts published`: MedEBench's protocol goes to a server, its answers become columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.small_bench import made, planted_editor, small_bench
from fakes import openai_format
from fakes.server import KEY, Answer, FakeProvider, Request
from plantain.bench.generate.requests import ArmRequest
from plantain.cli import main

ANSWER = """**Visual Difference Description**

1. The spot is brighter.

### Editing Accuracy: {accuracy}/10
- As bright as it should be.

### • Visual Quality: 8/10
"""
"""The layout of the answer that MedEBench's appendix E.1 prints."""


def judge(request: Request) -> Answer | None:
    """Score the description of the change higher than the prompt."""
    if not request.path.endswith("/responses"):
        return None
    described = "expected change" in openai_format.prompt_text(request)
    return openai_format.text_answer(ANSWER.format(accuracy=9 if described else 6), chat=False)


def test_published_protocol_gives_columns_under_their_published_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    benchmark = small_bench(tmp_path / "bench", samples=3)
    exact = planted_editor("planted/exact", benchmark)
    made(benchmark, tmp_path / "run", ArmRequest(own={exact.name: exact}))
    with FakeProvider([judge]) as server:
        settings = tmp_path / "settings.toml"
        settings.write_text(f'[providers.openai]\nbase_url = "{server.url}/v1"\n')
        given = [str(tmp_path / "run"), "--settings", str(settings), "--judge", "openai/m", "--draws", "1"]
        server.script.append(lambda request, good: openai_format.text_answer("Looks good.", chat=False))
        assert main(["bench", "score", *given, "--prompts", "published", "--metrics", "psnr", "--json"]) == 0
        kept = {row["metric"]: row for row in json.loads(capsys.readouterr().out)["scores"]}
        # Three samples of five arms, by prompt and by description. One request was repeated.
        assert len(server.calls) == 15 + 15 + 1
    for name in ("ea:published@openai/m/P", "vq:published@openai/m/D"):
        assert (kept[name]["scored"], kept[name]["unscored"]) == (15, 0)
    assert kept["cp:published@openai/m/P"]["reasons"] == {"not requested": 15}
    assert main(["bench", "table", str(tmp_path / "run"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    means = {
        row["metric"]: row["mean"]
        for row in rows
        if (row["model"], row["organ"]) == ("planted/exact", "overall")
    }
    assert {name: means[name] for name in ("Accuracy_P", "Accuracy_D", "Quality_P", "Quality_D")} == {
        "Accuracy_P": pytest.approx(0.6),
        "Accuracy_D": pytest.approx(0.9),
        "Quality_P": pytest.approx(0.8),
        "Quality_D": pytest.approx(0.8),
    }
    # The table of a run that was judged by the published protocol alone has its scores.
    assert main(["bench", "table", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "Accuracy_D, Quality_D, published protocol: openai/m/D" in " ".join(printed.split())
    row = next(line for line in printed.splitlines() if line.strip().startswith("planted/exact"))
    assert {"0.90", "0.80"} <= set(row.split())
    assert f"(plantain judge audit {tmp_path / 'run'} --settings {settings} --judge openai/m --run" in printed
