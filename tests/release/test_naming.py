"""Names that come from outside cannot leave the release's folder or hide in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plantain.release.naming import safe


@given(st.text(max_size=60))
def test_safe_names_are_plain(name: str) -> None:
    made = safe(name)
    assert made and made.isascii() and not made.startswith(".")
    assert not set(made) & set('/\\ :*?"<>|\x00')
    assert safe(made) == made


def test_published_names_stay() -> None:
    for name in ("s50000230", "Te-noTr_0001", "0_left", "ODIR-5K", "rg1-chest-pa+Pneumothorax"):
        assert safe(name) == name
    assert safe("Pleural Effusion") == "Pleural_Effusion"
    assert safe("../../etc/passwd") == "___.._etc_passwd"
