"""Where a vision-language model lies, and its processor and weights in memory; nothing is fetched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plantain.models.diffusers.licences import check_terms, terms_of
from plantain.models.diffusers.quiet import quiet_libraries
from plantain.models.diffusers.weights import find_weights
from plantain.records import InputError
from plantain.roles.options import ProviderOptions

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

ADAPTER = "adapter"
"""In a folder that `plantain train judge` made: what was learned, as peft saves it; the rest is the base."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model on disk and how it is run.

    Attributes:
        name: "vlm/…", as the user wrote it.
        folder: of the weights.
        digest: of its files.
        licence: of the weights; "unknown" where nobody says.
        device: of torch; "" for a GPU where there is one.
        dtype: of the weights; "" for float32 on a processor and the weights' own elsewhere.
        most_tokens: of one answer.
    """

    name: str
    folder: Path
    digest: str
    licence: str
    device: str
    dtype: str
    most_tokens: int


def find_local(name: str, options: ProviderOptions) -> LocalModel:
    """The model behind "vlm/<folder or hub id in the cache>".

    Raises:
        InputError: it is not on disk, is no model of transformers, or has a licence that was not accepted.
    """
    where = name.partition("/")[2]
    found = find_weights(where, options.revision, options.cache_dir)
    if found is None:
        raise InputError(f"{name}: not in the hub's cache; fetch it with `hf download {where}`")
    if not (found.folder / "config.json").is_file():
        raise InputError(f"{name}: {found.folder} holds no model of transformers: it has no config.json")
    terms = terms_of(where, found.folder)
    check_terms(name, terms, options.accept_licence, "vlm")
    limit = options.max_output_tokens
    return LocalModel(name, found.folder, found.digest, terms.licence, options.device, options.dtype, limit)


@dataclass(frozen=True, slots=True, eq=False)
class VisionLanguageModel:
    """A processor, which knows the model's chat format and how it sees pictures, and the weights."""

    processor: ProcessorMixin
    model: PreTrainedModel

    def inputs(self, messages: list[dict[str, Any]], *, answer: bool) -> dict[str, Any]:
        """Tokens and pictures of a conversation, a batch of one, on the model's device and in its precision.

        Args:
            messages: in the form of transformers' chat templates.
            answer: the model's turn comes next.
        """
        found = self.processor.apply_chat_template(
            messages, tokenize=True, add_generation_prompt=answer, return_dict=True, return_tensors="pt"
        )
        return {
            name: value.to(self.model.device, self.model.dtype if value.is_floating_point() else value.dtype)
            for name, value in found.items()
        }


def open_local(local: LocalModel) -> VisionLanguageModel:
    """Loads weights, with what was learned on top of them.

    Raises:
        InputError: they cannot be loaded; the line has the library's reason.
    """
    quiet_libraries()
    import torch
    from peft import PeftModel
    from transformers import AutoModelForImageTextToText, AutoProcessor

    device = local.device or ("cuda" if torch.cuda.is_available() else "cpu")
    dtype = local.dtype or ("float32" if device == "cpu" else "auto")
    try:
        processor = AutoProcessor.from_pretrained(local.folder, local_files_only=True)
        model = AutoModelForImageTextToText.from_pretrained(local.folder, local_files_only=True, dtype=dtype)
        if (local.folder / ADAPTER).is_dir():
            model = PeftModel.from_pretrained(model, local.folder / ADAPTER)
    except (OSError, ValueError, RuntimeError, TypeError, KeyError, ImportError) as error:
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(f"{local.name}: {local.folder} cannot be loaded: {first.strip()}") from error
    if getattr(processor, "chat_template", None) is None:
        raise InputError(f"{local.name}: {local.folder} has no chat template, so nobody knows how to ask it")
    return VisionLanguageModel(processor, model.to(device).eval())
