"""Without the torch extra nothing here can run."""

import pytest

pytest.importorskip("torch", reason="needs the torch extra")
pytest.importorskip("diffusers", reason="needs the torch extra")
pytest.importorskip("peft", reason="needs the torch extra")


@pytest.fixture(autouse=True)
def _short_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """FLUX pads texts to 512 tokens, nearly all that a tiny transformer then attends to; the texts here are short."""
    from diffusers import Flux2KleinPipeline, FluxKontextPipeline

    for pipeline in (FluxKontextPipeline, Flux2KleinPipeline):
        encode = pipeline.encode_prompt
        monkeypatch.setattr(
            pipeline,
            "encode_prompt",
            lambda pipe, encode=encode, **said: encode(pipe, **{**said, "max_sequence_length": 32}),
        )
