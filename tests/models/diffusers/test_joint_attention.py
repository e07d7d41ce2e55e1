"""Recording joint attention: it changes nothing, equals the softmax written out, and keeps to what was chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")
pytest.importorskip("diffusers", reason="needs the torch extra")

from diffusers.models.transformers import (  # noqa: E402
    transformer_flux,
    transformer_flux2,
    transformer_qwenimage,
)

from plantain.models.diffusers.attention.attender import Attender  # noqa: E402
from plantain.models.diffusers.attention.watching import Watching, chosen, usual_steps  # noqa: E402
from plantain.models.diffusers.jobs import Job, Steering  # noqa: E402
from plantain.models.diffusers.methods import FLUX_DEV  # noqa: E402
from plantain.models.diffusers.plan import plan_editor  # noqa: E402
from plantain.models.diffusers.settings import Settings  # noqa: E402
from plantain.records import InputError  # noqa: E402

MODULES = {
    "flux-kontext": transformer_flux,
    "flux2-klein": transformer_flux2,
    "qwen-image-edit": transformer_qwenimage,
    "qwen-image-edit-plus": transformer_qwenimage,
}
PICTURE = np.random.default_rng(0).integers(0, 255, (64, 96, 3), np.uint8)
STEPS = 3


@pytest.fixture(scope="module")
def watched(tiny_folder: Callable[[str], Path]) -> Callable[..., Attender]:
    loaded: dict[str, Attender] = {}

    def attender(method: str, **choices: object) -> Attender:
        watching = Watching(**choices)
        if method not in loaded:
            options = Settings(device="cpu", side=64, steps=STEPS, accept_licence=(FLUX_DEV,))
            loaded[method] = Attender(
                plan_editor(f"diffusers/{tiny_folder(method)}", options), "cpu", watching
            )
        loaded[method].watching = watching
        return loaded[method]

    return attender


def plain_edit(attender: Attender, words: str) -> np.ndarray:
    frame = attender.plan.method.frame.frame(96, 64, 64)
    steering = Steering.of(attender.plan.steering.settings)
    (drawn,) = attender._runner.edit([Job(frame.enter(PICTURE), words, 3, side=64)], steering)
    return frame.leave(drawn)


@pytest.mark.parametrize("method", MODULES)
def test_it_equals_the_softmax_written_out_and_changes_no_pixel(
    method: str, watched: Callable[..., Attender], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer sees the queries and keys that the model multiplies, where it multiplies them."""
    attender = watched(method, layers="all", steps="all", tokens="mean")
    words = "remove the mole from the skin"
    plain = plain_edit(attender, words)
    tokens = attender._tokens(words, "mole")
    assert tokens
    seen: list[torch.Tensor] = []
    usual = MODULES[method].dispatch_attention_fn

    def spy(query, key, value, **said):
        scores = torch.einsum("nqhd,nkhd->nhqk", query.double(), key.double()) / query.shape[-1] ** 0.5
        seen.append(scores.softmax(-1).mean(1)[0])
        return usual(query, key, value, **said)

    monkeypatch.setattr(MODULES[method], "dispatch_attention_fn", spy)
    looks = {block: watched(method, layers="all", steps="all", tokens="mean", block=block).look(
        PICTURE, words, 3, "mole", {}
    ) for block in ("output", "reference")}  # fmt: skip
    calls = len(seen) // 2 // STEPS
    layers = looks["output"].layers
    first = [
        map_ for at, map_ in enumerate(seen[: len(seen) // 2]) if at % calls < layers
    ]  # without words come after
    mean = torch.stack(first).mean(0)
    height, width = looks["output"].attention.shape
    places = height * width
    text = mean.shape[0] - 2 * places
    columns = [token % text for token in tokens]
    for start, block in ((text, "output"), (text + places, "reference")):
        wanted = mean[start : start + places][:, columns].mean(1).reshape(height, width)
        assert np.abs(looks[block].attention - wanted.numpy()).max() < 1e-6
        assert looks[block].what == f"joint attention, text to {block} ({layers} layers, 3 of 3 steps)"
        assert np.array_equal(looks[block].edited, plain)
    assert not np.allclose(looks["output"].attention, looks["reference"].attention)
    transformer = attender._runner.pipe.transformer
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in transformer.modules())


@pytest.mark.parametrize("method", MODULES)
def test_the_tokens_are_those_of_the_phrase(method: str, watched: Callable[..., Attender]) -> None:
    """What the model reads at these places, turned back into letters, is the phrase."""
    attender = watched(method)
    pipe, read = attender._runner.pipe, []
    encoder = pipe.text_encoder_2 if method == "flux-kontext" else pipe.text_encoder
    hook = encoder.register_forward_pre_hook(
        lambda _, args, said: read.append((*args, said.get("input_ids"))[0]), with_kwargs=True
    )
    words = "Skin: remove the mole; keep the skin."
    plain_edit(attender, words)
    hook.remove()
    tokenizer = pipe.tokenizer_2 if method == "flux-kontext" else pipe.tokenizer
    for phrase in ("mole", "the mole", "skin"):
        tokens = attender._tokens(words, phrase)
        assert tokenizer.decode(read[0][0][list(tokens)]).strip() == phrase
    assert attender._tokens(words, "ol") == ()


def test_layers_steps_and_heads_are_chosen(watched: Callable[..., Attender]) -> None:
    def look(**choices: object):
        return watched("flux-kontext", **choices).look(PICTURE, "remove the mole", 3, "mole", {})

    by_step = [look(steps=(step,), layers=(0,)).attention for step in range(STEPS)]
    both = look(layers=(0,))
    assert np.allclose(both.attention, np.mean(by_step, axis=0), atol=1e-7)
    assert both.layers == 1
    by_head = [look(heads=(head,), layers=(1,), steps=(0,)).attention for head in (0, 1)]
    assert np.allclose(look(layers=(1,), steps=(0,)).attention, np.mean(by_head, axis=0), atol=1e-7)
    assert not np.allclose(*by_head)
    assert look(steps=(7,)).reason == "no layer of the chosen parts, resolutions and steps ran"
    assert look(layers=(7,)).reason == "no layer of the chosen parts, resolutions and steps ran"
    with pytest.raises(InputError, match="--heads: a layer has 2"):
        look(heads=(2,))
    assert chosen("some", 28, some=4) == (3, 10, 17, 24)


def test_by_default_at_most_a_twelfth_of_all_attention_is_recorded(
    watched: Callable[..., Attender],
) -> None:
    """Each call that is recorded costs about itself again; one step is the least, as of these few layers and steps."""
    for layers, total in ((57, 28), (25, 4), (60, 40), (12, 8), (60, 4)):
        steps = usual_steps(layers, 4, total)
        assert steps == 4 or 12 * 4 * (steps + 1) > layers * total
        assert 12 * 4 * steps <= layers * total
    assert usual_steps(2, 2, 3) == 1
    look = watched("flux-kontext").look(PICTURE, "remove the mole", 3, "mole", {})
    assert "(2 layers, 1 of 3 steps)" in look.what


def test_a_phrase_may_be_too_long_or_absent(watched: Callable[..., Attender]) -> None:
    attender = watched("flux2-klein")
    long = "a mole of a most uncommon shape and size"
    said = attender.look(PICTURE, f"remove {long}", 3, long, {})
    assert said.attention is None and "at most 32 are recorded" in said.reason
    assert "does not see 'polyp'" in attender.look(PICTURE, "remove the mole", 3, "polyp", {}).reason


def test_what_cannot_be_looked_into_says_so(tiny_folder: Callable[[str], Path]) -> None:
    options = Settings(device="cpu", side=64, steps=1, accept_licence=(FLUX_DEV,))
    open_ = lambda method, **choices: Attender(  # noqa: E731
        plan_editor(f"diffusers/{tiny_folder(method)}", options), "cpu", Watching(**choices)
    )
    with pytest.raises(InputError, match="icedit cannot be looked into; these can: flux-kontext"):
        open_("icedit")
    with pytest.raises(InputError, match="use --layers"):
        open_("flux-kontext", resolutions=(16,))
    with pytest.raises(InputError, match="this has cross-attention"):
        open_("instruct-pix2pix", block="reference")
    for wrong, said in (
        ({"layers": (-1,)}, "--layers"),
        ({"heads": ()}, "--heads"),
        ({"block": "x"}, "--block x"),
        ({"parts": ("middle",)}, "--parts"),
    ):
        with pytest.raises(InputError, match=said):
            open_("instruct-pix2pix", **wrong)
