"""What the libraries warn of is said. That they say nothing while they are imported: `runs/test_trial.py`."""

from __future__ import annotations

import logging

import pytest


def test_other_warnings_of_the_same_loggers_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("diffusers")
    from plantain.models.diffusers.quiet import quiet_libraries

    quiet_libraries()
    with caplog.at_level(logging.WARNING):
        logging.getLogger("torchao").warning("Failed to load /k.so: no such file")
        logging.getLogger("torchao").warning("Skipping import of cpp extensions")
    assert [record.message for record in caplog.records] == ["Skipping import of cpp extensions"]
