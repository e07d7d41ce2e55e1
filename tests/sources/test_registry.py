from __future__ import annotations

import sys
from pathlib import Path

import pytest

from plantain.records import InputError
from plantain.sources.registry import SourceKind, kinds, load

MODULE = """
from plantain.sources.registry import SourceKind
KIND = SourceKind("pictures from the moon", None)
"""


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


def test_folder_is_there() -> None:
    assert isinstance(load("folder"), SourceKind)
    assert "PATH/labels.csv" in kinds()["folder"]


@pytest.mark.usefixtures("other_package")
def test_a_third_party_adds_a_kind_by_entry_point() -> None:
    assert load("moon").summary == "pictures from the moon"
    assert kinds()["moon"] == "pictures from the moon"


@pytest.mark.usefixtures("other_package")
def test_a_broken_kind_stops_no_other_and_ours_cannot_be_replaced() -> None:
    assert kinds()["broken"].startswith("unusable: ")
    with pytest.raises(InputError, match="cannot be loaded"):
        load("broken")
    assert "moon" not in load("folder").summary


def test_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'folder'"):
        load("foldr")
