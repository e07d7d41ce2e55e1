"""Names that come from outside cannot leave the release's folder or hide in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from plantain.catalogue.groups import Groups
from plantain.records import Licence
from plantain.release.naming import Pseudonyms, safe
from release.runs import source_image


@given(st.text(max_size=60))
def test_safe_names_are_plain(name: str) -> None:
    made = safe(name)
    assert made and made.isascii() and not made.startswith(".")
    assert not set(made) & set('/\\ :*?"<>|\x00')
    assert safe(made) == made


def test_near_duplicates_of_an_open_and_a_credentialed_source_stay_in_one_group(tmp_path: Path) -> None:
    # Ingest joined two images of different datasets that look alike; the owner of one of them restricts its names.
    restricted = replace(source_image(1, Licence.CREDENTIALED), dataset="restricted", group="joined:0123")
    free = replace(source_image(2), dataset="free", group="joined:0123")
    other = replace(source_image(4, Licence.CREDENTIALED), dataset="restricted", group="patient 9")
    names = Pseudonyms(tmp_path, imported=False)
    names.prepare([free, restricted, other])
    released = [names.released(image) for image in (restricted, free, other)]
    assert Groups(released).count(released) == 2
    assert Groups(released).group(released[0]) == Groups(released).group(released[1])
    assert not any(name in str(image.group) for image in released for name in ("0123", "patient 9"))
    # Withdrawing by either name finds the same images.
    assert names.behind(str(released[0].group)) == {"joined:0123"}
    again = Pseudonyms(tmp_path, imported=False)
    again.prepare([restricted, free])
    assert again.released(free).group == released[1].group
