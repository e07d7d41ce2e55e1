"""`plantain audit`: what a person is told who asks for the wrong thing, and the report as JSON."""

from __future__ import annotations

import json

import pytest

from plantain.cli import main
from plantain.offline.workers import close_workers


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--judge", "offline/instrument"], "did you mean 'offline/instruments'"),
        (["no-such-folder"], "no such folder"),
        (["--findings", "Gliom"], "did you mean 'glioma'"),
    ],
)
def test_audit_of_something_unknown_is_one_line_and_code_2(arguments, told, capsys):
    assert main(["audit", *arguments]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_audit_of_a_folder_that_is_no_run_says_so(tmp_path, capsys):
    assert main(["audit", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


@pytest.mark.slow
def test_audit_json_has_every_defect(capsys):
    try:
        assert main(["audit", "--pairs", "1", "--findings", "Lung Lesion,AMD", "--json"]) == 0
    finally:
        close_workers()
    report = json.loads(capsys.readouterr().out)
    assert report["judge"] == "offline/instruments"
    assert len(report["defects"]) == 10
    assert all(row["caught"]["n"] == 1 for row in report["defects"])
