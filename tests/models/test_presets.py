from __future__ import annotations

import pytest

from plantain.models.diffusers.methods import METHODS
from plantain.models.diffusers.settings import Settings
from plantain.models.facts import facts_of
from plantain.models.frames import FramePolicy
from plantain.models.presets import known_weights, preset, presets
from plantain.models.registry import provider_names
from plantain.records import InputError

OPTIONS = set(Settings.model_fields)


def test_the_seven_baselines_of_the_paper_with_their_settings() -> None:
    """MedEBench's appendix; its SEED-X and Gemini have words of their own before the instruction."""
    table = {
        row.name.partition("medebench-")[2]: row for row in presets().values() if "medebench-" in row.name
    }
    assert set(table) == {
        "instruct-pix2pix",
        "imagic",
        "instruct-diffusion",
        "paint-by-inpaint",
        "icedit",
        "seed-x",
        "gemini",
    }
    assert table["instruct-pix2pix"].sweep == {"image_guidance": (1.55, 1.6, 1.65), "guidance": (7.5, 7.6)}
    assert table["imagic"].sweep == {"alpha": (1.3, 1.35), "guidance": (7.5, 7.6)}
    stated = {name: dict(row.settings) for name, row in table.items()}
    assert stated["instruct-pix2pix"]["steps"] == stated["imagic"]["steps"] == 50
    assert (stated["instruct-diffusion"]["guidance"], stated["instruct-diffusion"]["image_guidance"]) == (
        5.0,
        1.25,
    )
    assert stated["paint-by-inpaint"] == {"steps": 50, "guidance": 7.0, "image_guidance": 1.7}
    assert stated["icedit"] == {"steps": 28, "guidance": 50.0}
    assert stated["seed-x"]["steps"] == 50
    assert table["seed-x"].words("Add a tooth") == "Edit this image: Add a tooth"
    assert table["gemini"].words("Add a tooth").startswith("You are good at image editing.")
    assert all(row.source.startswith("paper") for row in table.values())


def test_every_row_can_be_run() -> None:
    for name, row in presets().items():
        provider = name.partition("/")[0]
        assert provider in provider_names()
        assert row.source
        assert set(row.settings) <= OPTIONS
        assert "{instruction}" in row.prompt
        if provider == "diffusers":
            method = METHODS[row.method]
            assert set(row.settings) | set(row.sweep) <= method.takes
            assert not row.weights or row.weights in known_weights()
        if provider == "process":
            assert row.worker
            FramePolicy.of(row.frame)


def test_words_with_braces_are_data() -> None:
    assert preset("process/medebench-seed-x").words("{0} {x}") == "Edit this image: {0} {x}"


def test_facts_name_licence_size_and_where_the_weights_are(tmp_path: object) -> None:
    facts = facts_of(preset("diffusers/medebench-icedit"), tmp_path)  # type: ignore[arg-type]
    assert facts.conditions
    assert facts.licence == "flux-1-dev-non-commercial-license"
    assert (facts.on_disk, facts.disk_gb) == ("no", 34.2)
    assert "brought by you" in facts_of(preset("diffusers/medebench-instruct-diffusion")).on_disk


def test_nearest_preset_is_named() -> None:
    with pytest.raises(InputError, match="did you mean 'diffusers/medebench-imagic'"):
        preset("diffusers/medebench-imagick")
