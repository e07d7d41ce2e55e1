"""LoRA of a vision-language model on conversations: the likelihood of the answer alone, the question being given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from plantain.models.vlm.local import VisionLanguageModel
from plantain.records import InputError
from plantain.train.judge.conversations import Conversations
from plantain.train.loop.training import Schedule, Trained, batch_of, identity_of, run

TARGETS = r"(?!.*(vision|visual)).*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"
"""Layers that get adapters: every projection of the language model; what sees stays as it is."""


def make_adapters(
    vlm: VisionLanguageModel, rank: int, seed: int
) -> tuple[nn.Module, dict[str, nn.Parameter]]:
    """Freezes everything and hangs LoRA adapters on the language model, in float32.

    Returns:
        The model with adapters, and these by name.

    Raises:
        InputError: its layers have other names.
    """
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=TARGETS, task_type="CAUSAL_LM")
    try:
        model = get_peft_model(vlm.model, config)
    except ValueError as error:
        raise InputError(f"this model has no layers that adapters are known to fit: {error}") from error
    weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    for weight in weights.values():
        weight.data = weight.data.float()
    return model, weights


def answer_loss(
    vlm: VisionLanguageModel, model: nn.Module, conversations: Conversations, number: int
) -> Tensor:
    """Mean negative log-likelihood of the answer's tokens, in nats: float32, a scalar.

    Raises:
        InputError: the chat format does not put the answer after the question, so that nobody knows which tokens it is.
    """
    messages = conversations.messages(number)
    asked = vlm.inputs(messages[:-1], answer=True)["input_ids"]
    whole = vlm.inputs(messages, answer=False)
    given = asked.shape[1]
    if not torch.equal(whole["input_ids"][:, :given], asked):
        raise InputError(
            "the model's chat template does not begin a whole conversation as it begins a question"
        )
    logits = model(**whole).logits[:, given - 1 : -1].float()
    return nn.functional.cross_entropy(logits.flatten(0, 1), whole["input_ids"][:, given:].flatten())


def mean_loss(vlm: VisionLanguageModel, model: nn.Module, conversations: Conversations) -> float:
    """Over all conversations."""
    with torch.no_grad():
        losses = [
            float(answer_loss(vlm, model, conversations, number)) for number in range(len(conversations))
        ]
    return sum(losses) / len(losses)


def tune(
    vlm: VisionLanguageModel,
    model: nn.Module,
    weights: dict[str, nn.Parameter],
    conversations: Conversations,
    schedule: Schedule,
    folder: Path,
    *,
    base: str,
    rank: int,
    on_step: Callable[[int, dict[str, float]], None] = lambda step, noted: None,
    stop: Callable[[], bool] = lambda: False,
) -> Trained:
    """Trains the adapters in place, or goes on where `folder` stands; examples of a batch one by one.

    Args:
        vlm, model, weights: of `make_adapters`.
        conversations: what to learn.
        schedule: how.
        folder: of the checkpoint.
        base, rank: parts of the training's identity.
        on_step, stop: as for `plantain.train.loop.training.run`.

    Raises:
        InputError: as `answer_loss` and `plantain.train.loop.training.run`.
    """
    same = [(0, 0)] * len(
        conversations
    )  # every conversation is a batch of its own: none has to fit another's shape
    identity = identity_of(
        schedule, {"kind": "judge", "base": base, "data": conversations.digest, "lora_rank": rank}
    )

    def loss_of(step: int) -> tuple[Tensor, dict[str, float]]:
        *others, last = batch_of(schedule, step, same)
        count, total = len(others) + 1, 0.0
        for number in others:
            part = answer_loss(vlm, model, conversations, number) / count
            part.backward()
            total += float(part.detach())
        loss = answer_loss(vlm, model, conversations, last) / count + total
        return loss, {"loss": float(loss.detach())}

    return run(weights, loss_of, schedule, folder, identity, on_step=on_step, stop=stop)
