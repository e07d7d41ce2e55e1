"""Asking a vision-language model on this machine: greedily, one question at a time, in its own chat format."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import orjson

from plantain.engines.contract import remote_engine
from plantain.models.hosted.asking import Heard, Question
from plantain.models.remote import on_worker
from plantain.models.vlm.local import LocalModel, VisionLanguageModel, open_local
from plantain.records import InputError, Outcome, OutcomeKind, Usage
from plantain.roles import EncodedImage

_ONE_AT_A_TIME = threading.Lock()


class LocalConversation:
    """One model; its most likely answer, so that a seed changes nothing."""

    def __init__(self, local: LocalModel) -> None:
        self._local = local
        self.name = local.name
        dtype = local.dtype or "usual"
        self.sampling = f"weights={local.digest} dtype={dtype} greedy max_output_tokens={local.most_tokens}"

    async def ask(self, question: Question) -> Heard:
        """The answer, from a worker of the run's engine where there is one."""
        engine = remote_engine()
        if engine is None:
            return await asyncio.to_thread(answer, self._local, question)
        found = await on_worker(engine, "judge", answer, self._local, question)
        return Heard(outcome=found) if isinstance(found, Outcome) else found

    async def aclose(self) -> None:
        """Nothing is open."""


_opened = lru_cache(maxsize=2)(open_local)


def answer(local: LocalModel, question: Question) -> Heard:
    """A model's answer by this process's own copy of it, which is loaded once."""
    with _ONE_AT_A_TIME:
        try:
            return _generated(_opened(local), local, question)
        except InputError as error:
            return Heard(outcome=Outcome(OutcomeKind.TRANSPORT, str(error), fatal=True))


def _generated(vlm: VisionLanguageModel, local: LocalModel, question: Question) -> Heard:
    import torch

    inputs = vlm.inputs(as_messages(question), answer=True)
    asked = int(inputs["input_ids"].shape[1])
    text = getattr(vlm.model.config, "text_config", vlm.model.config)
    room = int(getattr(text, "max_position_embeddings", asked + local.most_tokens)) - asked
    if room < 1:
        reason = f"{local.name}: the question has {asked} tokens, more than the model takes; set shown_side"
        return Heard(outcome=Outcome(OutcomeKind.NOT_APPLICABLE, reason))
    most = min(local.most_tokens * question.room, room)
    with torch.inference_mode():
        written = vlm.model.generate(**inputs, max_new_tokens=most, do_sample=False)[0, asked:]
    words = vlm.processor.tokenizer.decode(written, skip_special_tokens=True).strip()
    count = len(written)
    usage = Usage(
        served_model=f"{local.name}@{local.digest}", input_tokens=asked, output_tokens=count, ran_on=""
    )
    raw = orjson.dumps({"text": words, "tokens": count}).decode()
    ends = vlm.model.generation_config.eos_token_id
    cut = count == most and int(written[-1]) not in (ends if isinstance(ends, Sequence) else (ends,))
    problem = "the answer was cut at its limit of tokens" if cut else "" if words else "the answer was empty"
    return Heard(words, usage, raw, problem=problem, cut=cut)


def as_messages(question: Question) -> list[dict[str, Any]]:
    """A question in the form of transformers' chat templates, with pictures as PIL has them."""
    from PIL import Image

    def shown(part: str | EncodedImage) -> dict[str, Any]:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        return {"type": "image", "image": Image.open(io.BytesIO(part.data)).convert("RGB")}

    return [
        {"role": "system", "content": [{"type": "text", "text": question.system}]},
        {"role": "user", "content": [shown(part) for part in question.parts]},
    ]
