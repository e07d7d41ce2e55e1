"""The provider `vlm`: `vlm/FOLDER` asks a vision-language model on this machine what hosted ones are asked."""

from __future__ import annotations

from dataclasses import replace

from plantain.models.diffusers.weights import trained_side
from plantain.models.extras import require_extra
from plantain.models.vlm.local import find_local
from plantain.records import InputError
from plantain.roles.options import ProviderOptions

LOCAL = True
MODELS: dict[str, tuple[str, ...]] = {}

TAKES = frozenset({"form", "device", "dtype", "max_output_tokens", "revision", "cache_dir", "accept_licence"})


def load(name: str, role: str, options: ProviderOptions) -> object:
    """The role; weights are loaded when it is first asked. What `plantain train judge` made is shown pictures as there.

    Raises:
        InputError: an editor is wanted, a package is missing, no such weights, or a licence that was not accepted.
    """
    if role == "editor":
        raise InputError(
            f"models.{role}: {name!r} reads pictures and draws none; it can be a writer or a judge"
        )
    options.check("vlm", TAKES)
    require_extra(name, "torch", "torch", "transformers", "peft")
    from plantain.models.hosted.writer_and_judge import language_role
    from plantain.models.vlm.conversation import LocalConversation

    local = find_local(name, options)
    side = options.shown_side or trained_side(local.folder)
    return language_role(role, LocalConversation(local), replace(options, shown_side=side))
