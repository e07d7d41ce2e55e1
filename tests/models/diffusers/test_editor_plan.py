"""From names and settings to what is loaded: found on disk, chosen by class, gated by licence, or refused."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fakes.caller import options_of
from fakes.hub import Hub
from plantain.findings import shown_sides
from plantain.models.diffusers.download import fetch_files, fetch_pipeline
from plantain.models.diffusers.editor import DiffusersEditor
from plantain.models.diffusers.licences import terms_of
from plantain.models.diffusers.plan import EditorPlan, plan_editor
from plantain.models.diffusers.settings import Settings
from plantain.models.diffusers.weights import find_weights, folder_digest, hub_cache, missing_part
from plantain.models.resolver import resolve_editor, resolve_judge
from plantain.pixels.encode import encode_png
from plantain.records import Geometry, InputError, Licence, SourceImage
from plantain.roles import EditRequest, EncodedImage

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FLUX = "flux-1-dev-non-commercial-license"


def plan(name: object, **settings: object) -> EditorPlan:
    return plan_editor(f"diffusers/{name}", Settings(**settings))  # type: ignore[arg-type]


def cached(cache: Path, name: str, folder: Path, commit: str = COMMIT) -> Path:
    """A folder as it lies in the hub's cache."""
    place = cache / f"models--{name.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(commit)
    shutil.copytree(folder, place / "snapshots" / commit)
    return place / "snapshots" / commit


def test_method_follows_from_the_folders_class(tiny_folder: Callable[[str], Path]) -> None:
    for method in ("instruct-pix2pix", "sdxl-instruct-pix2pix", "flux2-klein", "qwen-image-edit-plus"):
        chosen = plan(tiny_folder(method))
        assert chosen.method.name == method
        assert chosen.loading.folder == tiny_folder(method).resolve()
        assert (chosen.steering.settings, chosen.terms.licence) == ({}, "unknown")


def test_base_model_needs_a_preset_to_say_how_it_edits(tiny_folder: Callable[[str], Path]) -> None:
    folder = tiny_folder("imagic")
    with pytest.raises(InputError, match=r"medebench-imagic@.* or diffusers/ledits-pp@"):
        plan(folder)
    imagic = plan(f"medebench-imagic@{folder}", guidance=9.0)
    assert imagic.method.name == "imagic"
    assert imagic.steering.settings == {"steps": 50, "guidance": 9.0, "alpha": 1.3}
    assert plan(f"ledits-pp@{folder}").method.name == "ledits"


def test_preset_finds_its_weights_in_the_hubs_cache(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "timbrooks/instruct-pix2pix"
    folder = cached(tmp_path, name, tiny_folder("instruct-pix2pix"))
    found = plan("medebench-instruct-pix2pix", cache_dir=tmp_path)
    assert found.loading.folder == folder
    assert found.weights.digest == COMMIT[:12]
    assert found.terms.licence == "mit"
    assert found.steering.settings == {"steps": 50, "guidance": 7.5, "image_guidance": 1.6}
    assert COMMIT[:12] in found.fingerprint
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert plan(name).loading.folder == folder
    assert plan(name, revision=COMMIT).loading.folder == folder
    with pytest.raises(InputError, match="not on this machine"):
        plan(name, revision="other")


def test_cache_is_where_the_hubs_own_variables_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert hub_cache(None) == tmp_path / ".cache" / "huggingface" / "hub"
    monkeypatch.setenv("HF_HOME", "/data/hf")
    assert hub_cache(None) == Path("/data/hf/hub")


def test_weights_that_are_not_here_are_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for name in ("flux2-klein-4b", "some/model"):
        with pytest.raises(InputError) as caught:
            plan(name)
        said = str(caught.value)
        assert "allow_downloads = true" in said
        assert "\n" not in said
    with pytest.raises(InputError, match=r"its weights are in no hub.*@FOLDER"):
        plan("medebench-instruct-diffusion")
    with pytest.raises(InputError, match="did you mean 'diffusers/flux1-kontext'"):
        plan("flux1-kontex")
    with pytest.raises(InputError, match="no such folder"):
        plan("./nothing-here/at/all")


def test_incomplete_and_strange_folders_are_refused(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tiny_folder("instruct-pix2pix"), folder)
    (weights,) = (folder / "unet").glob("*.safetensors")
    weights.unlink()
    with pytest.raises(InputError, match=r"unet/\*.safetensors is missing"):
        plan(folder)
    (folder / "unet" / "diffusion_pytorch_model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})
    )
    (folder / "unet" / "one.safetensors").write_bytes(b"x")
    found = find_weights(str(folder), "", None)
    assert found is not None
    assert missing_part(found) == "unet/two.safetensors"
    (folder / "unet" / "two.safetensors").symlink_to(
        folder / "gone"
    )  # as a hub's cache that somebody cleaned
    assert missing_part(found) == "unet/two.safetensors"
    text = folder / "text_encoder"
    for stale in ("pytorch_model.bin.index.json", "model.safetensors.index.fp16.json"):
        (text / stale).write_text(
            '{"weight_map": {"a": "model-00001-of-00002.bin"}}'
        )  # of files that nobody wanted
    assert missing_part(found) == "unet/two.safetensors"
    shutil.rmtree(folder / "unet")
    assert missing_part(found) == "unet/"
    tokenizer = folder / "tokenizer"
    for file in (*tokenizer.glob("tokenizer.json"), *tokenizer.glob("vocab.*")):
        file.unlink()
    (folder / "unet").mkdir()
    (folder / "unet" / "whole.safetensors").write_bytes(b"x")
    assert missing_part(found) == "tokenizer/tokenizer.json"
    (folder / "model_index.json").write_text('{"_class_name": "StableAudioPipeline"}')
    with pytest.raises(
        InputError, match=r"StableAudioPipeline, which is not supported; these are: Flux2KleinPipeline"
    ):
        plan(folder)
    for text in ("[]", "{", "{}"):
        (folder / "model_index.json").write_text(text)
        with pytest.raises(InputError, match=r"model_index\.json"):
            plan(folder)
    (folder / "model_index.json").unlink()
    with pytest.raises(InputError, match="no folder of a diffusers pipeline"):
        plan(folder)


def test_licence_with_conditions_is_to_be_accepted_by_name(tiny_folder: Callable[[str], Path]) -> None:
    """Every weights of these classes are FLUX.1-dev's, whatever folder they lie in."""
    for method in ("flux-kontext", "icedit"):
        with pytest.raises(InputError, match=f'accept_licence = \\["{FLUX}"\\]'):
            plan(tiny_folder(method))
        assert plan(tiny_folder(method), accept_licence=(FLUX,)).terms.licence == FLUX
        with pytest.raises(InputError, match="not free for every use"):
            plan(tiny_folder(method), accept_licence=("mit",))


@pytest.mark.parametrize(
    ("header", "licence", "conditions"),
    [
        ("license: apache-2.0", "apache-2.0", False),
        ("license: other\nlicense_name: flux-non-commercial-license", "flux-non-commercial-license", True),
        ("license: cc-by-nc-4.0", "cc-by-nc-4.0", True),
        ("license: other", "other", True),
        ("license: mit\nextra_gated_prompt: Say who you are", "mit", True),
        ("tags: [x]", "unknown", False),
    ],
)
def test_the_weights_own_card_is_believed(
    tmp_path: Path, header: str, licence: str, conditions: bool
) -> None:
    (tmp_path / "README.md").write_text(f"---\n{header}\n---\n# A model\nlicense: none\n")
    terms = terms_of(str(tmp_path), tmp_path)
    assert (terms.licence, terms.conditions) == (licence, conditions)


def test_settings_that_a_method_does_not_follow_are_refused(tiny_folder: Callable[[str], Path]) -> None:
    folder = tiny_folder("flux2-klein")
    with pytest.raises(InputError, match=r"providers\.diffusers\.image_guidance"):
        plan(folder, image_guidance=1.5)
    with pytest.raises(InputError, match=r"unknown key 'providers\.diffusers\.thinking'"):
        options_of("diffusers", thinking="high")
    with pytest.raises(InputError, match="imagic needs the whole model on its device"):
        plan(f"medebench-imagic@{tiny_folder('imagic')}", offload="model")


def test_fingerprint_changes_with_whatever_answers_depend_on(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tiny_folder("instruct-pix2pix"), folder)
    usual = plan(folder).fingerprint
    assert plan(folder).fingerprint == usual
    for settings in (
        {"steps": 3},
        {"guidance": 2.0},
        {"side": 256},
        {"dtype": "bfloat16"},
        {"safety_checker": False},
    ):
        assert plan(folder, **settings).fingerprint != usual
    for settings in ({"device": "cuda:1"}, {"offload": "model"}, {"batch_size": 8}):
        assert plan(folder, **settings).fingerprint == usual
    (weights,) = (folder / "unet").glob("*.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert plan(folder).fingerprint != usual
    assert len(folder_digest(weights)) == 12


def test_lora_is_found_gated_and_part_of_the_fingerprint(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tiny_folder("icedit")
    with pytest.raises(InputError, match=r"RiverZ/normal-lora are not on this machine"):
        plan(f"medebench-icedit@{folder}", accept_licence=(FLUX,))
    lora = tmp_path / "lora.safetensors"
    lora.write_bytes(b"weights")
    chosen = plan(f"medebench-icedit@{folder}", accept_licence=(FLUX,), lora=str(lora))
    assert chosen.loading.loras == ((lora.resolve(), 1.0),)
    assert folder_digest(lora) in chosen.fingerprint


def test_registry_knows_the_provider_and_the_hosted_preset(tiny_folder: Callable[[str], Path]) -> None:
    editor = resolve_editor(f"diffusers/{tiny_folder('instruct-pix2pix')}")
    assert "instruct-pix2pix" in editor.fingerprint
    with pytest.raises(InputError, match="can be an editor, not a judge"):
        resolve_judge("diffusers/flux2-klein-4b")
    with pytest.raises(InputError, match=r"in a recipe name gemini/gemini-3\.1-flash-image"):
        resolve_editor("gemini/medebench-gemini")


def test_resolving_an_editor_imports_no_torch(tiny_folder: Callable[[str], Path]) -> None:
    code = (
        "import sys; from plantain.models.resolver import resolve_editor\n"
        f"resolve_editor('diffusers/{tiny_folder('instruct-pix2pix')}')\n"
        "print(*(m for m in ('torch', 'diffusers', 'transformers', 'huggingface_hub') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_download_is_asked_for_only_when_allowed_and_after_the_licence(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def fetch(name: str, revision: str, cache_dir: Path | None, disk_gb: float) -> None:
        asked.append(name)
        cached(tmp_path, name, tiny_folder("flux2-klein" if "klein" in name else "icedit"))

    monkeypatch.setattr("plantain.models.diffusers.download.fetch_pipeline", fetch)
    monkeypatch.setattr("plantain.models.diffusers.download.fetch_files", lambda *place: None)
    with pytest.raises(InputError, match="not on this machine"):
        plan("flux2-klein-4b", cache_dir=tmp_path)
    with pytest.raises(InputError, match=FLUX):
        plan("black-forest-labs/FLUX.1-Fill-dev", cache_dir=tmp_path, allow_downloads=True)
    assert asked == []
    assert plan("flux2-klein-4b", cache_dir=tmp_path, allow_downloads=True).weights.digest == COMMIT[:12]
    assert asked == ["black-forest-labs/FLUX.2-klein-4B"]
    plan("flux2-klein-4b", cache_dir=tmp_path, allow_downloads=True)
    assert len(asked) == 1  # what is here is not fetched again


def test_a_half_download_is_gone_on_with_and_the_card_is_read_first(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub's own client against a hub on loopback; only what is missing is fetched again."""
    from huggingface_hub import hf_api

    source, cache = tmp_path / "source", tmp_path / "cache"
    shutil.copytree(tiny_folder("instruct-pix2pix"), source)
    (source / "README.md").write_text("---\nlicense: mit\n---\n# A model")
    hub = Hub(source, COMMIT)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(hf_api.api, "endpoint", hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)

    def planned(*accepted: str, fetch: bool) -> EditorPlan:
        return plan("some/model", cache_dir=cache, allow_downloads=fetch, accept_licence=accepted)

    try:
        with pytest.raises(InputError, match="not on this machine"):
            planned(fetch=False)
        whole = planned(fetch=True)
        assert (whole.terms.licence, whole.weights.digest) == ("mit", COMMIT[:12])
        first = dict(hub.asked)
        (weights,) = (whole.weights.folder / "unet").glob("*.safetensors")
        weights.resolve().unlink()
        weights.unlink()
        with pytest.raises(
            InputError, match=r"unet/\*.safetensors is missing.*allow_downloads = true to fetch the rest"
        ):
            planned(fetch=False)
        assert planned(fetch=True).terms.licence == "mit"
        again = {name for name, times in hub.asked.items() if times > first.get(name, 0)}
        assert f"unet/{weights.name}" in again
        assert not any(name.startswith(("vae/", "text_encoder/")) for name in again)
        (source / "README.md").unlink()
        hub.commit = COMMIT[::-1]
        shutil.rmtree(cache)
        with pytest.raises(InputError, match=r'accept_licence = \["unknown"\]'):
            planned(fetch=True)
        assert not list(cache.rglob("*.safetensors"))
        assert planned("unknown", fetch=True).terms.licence == "unknown"
    finally:
        hub.close()


def test_no_room_is_said_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=5_000_000_000)
    monkeypatch.setattr("plantain.models.diffusers.download.shutil.disk_usage", lambda folder: usage)
    with pytest.raises(InputError, match=r"needs 16\.0 GB more .* 5\.0 GB left"):
        fetch_pipeline("black-forest-labs/FLUX.2-klein-4B", "", tmp_path, 16.0)


def test_a_known_models_id_takes_its_makers_settings(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """klein is distilled to 4 steps; its class's default is 50. The paper's settings are not the makers'."""
    cached(tmp_path, "black-forest-labs/FLUX.2-klein-4B", tiny_folder("flux2-klein"))
    assert plan("black-forest-labs/FLUX.2-klein-4B", cache_dir=tmp_path).steering.steps == 4
    cached(tmp_path, "timbrooks/instruct-pix2pix", tiny_folder("instruct-pix2pix"))
    assert plan("timbrooks/instruct-pix2pix", cache_dir=tmp_path).steering.steps is None
    assert (
        plan(
            cached(tmp_path, "black-forest-labs/FLUX.1-Kontext-dev", tiny_folder("flux-kontext")),
            accept_licence=(FLUX,),
        ).terms.licence
        == FLUX
    )  # a folder of the cache is known by its id


def test_fault_of_the_hub_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's own client, told that it is offline: it opens no connection and raises what it raises without one."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for fetch in (
        lambda: fetch_pipeline("some/model", "", tmp_path),
        lambda: fetch_files("some/model", "", tmp_path, ["README.md"]),
    ):
        with pytest.raises(InputError, match="some/model: could not be fetched from the hub") as caught:
            fetch()
        assert "\n" not in str(caught.value)


def test_missing_extra_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plantain.models.extras.has_module", lambda module: False)
    with pytest.raises(InputError, match=r"needs the package diffusers: pip install -e '\.\[torch\]'"):
        resolve_editor("diffusers/flux2-klein-4b")


def test_an_open_editor_is_told_where_left_and_right_are_unless_it_has_a_lora(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """LoRA weights were trained on instructions without that."""

    class Device:
        def __init__(self) -> None:
            self.orders: list[Any] = []

        def submit(self, order: Any) -> Future[Any]:
            self.orders.append(order)
            future: Future[Any] = Future()
            future.set_exception(InterruptedError())
            return future

    chest = SourceImage(
        "x", "d", "chest_xray", (), Licence.OPEN, "", "", Geometry(8, 8, "pad", 0, 0, 8, 8), view="frontal"
    )
    (tmp_path / "lora.safetensors").write_bytes(b"x")

    def given(**settings: object) -> str:
        editor = DiffusersEditor(plan(tiny_folder("instruct-pix2pix"), device="cpu", **settings))
        device = Device()
        editor._devices = device  # type: ignore[assignment]
        picture = EncodedImage(encode_png(np.zeros((8, 8, 3), np.uint8)), "image/png")
        with pytest.raises(InterruptedError):
            asyncio.run(editor.edit(EditRequest(chest, picture, "Add air on the left.", 1)))
        instruction: str = device.orders[0].job.instruction
        return instruction

    assert given() == f"Add air on the left. {shown_sides(chest)}"
    assert given(lora=str(tmp_path / "lora.safetensors")) == "Add air on the left."
