from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from plantain.findings import load_taxonomy
from plantain.records import InputError, Licence
from plantain.sources.folder import FolderReader
from plantain.sources.registry import Setting, SourceKind, SourceOptions, kinds, load

MODULE = """
from plantain.sources.registry import SourceKind
KIND = SourceKind("pictures from the moon", None)
"""

PHASES = SourceKind(
    "pictures from the moon",
    lambda options, taxonomy: FolderReader(replace(options, settings={}), taxonomy),
    settings={"phase": Setting("full", ("full", "new"))},
)
"""A kind whose reader looks at no setting: what it declares is held all the same."""


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution as pip would leave it, with three entry points: a good one, a broken one, and a thief."""
    (tmp_path / "moon_source.py").write_text(MODULE)
    info = tmp_path / "moon-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: moon\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[plantain.sources]\nmoon = moon_source:KIND\nbroken = moon_gone:KIND\nfolder = moon_source:KIND\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "moon_source", raising=False)


@pytest.mark.usefixtures("other_package")
def test_a_broken_kind_stops_no_other_and_ours_cannot_be_replaced() -> None:
    assert (kinds()["moon"], load("moon").summary) == ("pictures from the moon",) * 2
    assert kinds()["broken"].startswith("unusable: ")
    with pytest.raises(InputError, match="cannot be loaded"):
        load("broken")
    assert "moon" not in load("folder").summary


def options_with(root: Path, **settings: str) -> SourceOptions:
    return SourceOptions(root, "chest_xray", Licence.OPEN, settings=settings)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (PHASES, {"phse": "new"}, "--set phse: moon has no such setting; did you mean 'phase'"),
        (PHASES, {"phase": "nwe"}, "--set phase=nwe: did you mean 'new'"),
        (
            replace(PHASES, settings={}),
            {"phase": "new"},
            "--set phase: moon has no such setting; it has none",
        ),
    ],
)
def test_a_setting_that_a_kind_does_not_declare_is_refused(
    tmp_path: Path, kind: SourceKind, settings: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        kind.reader("moon", options_with(tmp_path, **settings), load_taxonomy())
