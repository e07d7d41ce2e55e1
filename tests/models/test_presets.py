from __future__ import annotations

from plantain.models.presets import presets


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
