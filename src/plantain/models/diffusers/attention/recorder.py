"""The base of attention recorders: removable hooks, a count of steps, a running sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn


class AttentionRecorder:
    """Sum attention while a pipeline runs inside its `with` block; the edit is unchanged.

    If a pipeline calls its network twice for a timestep (with the words, then without), the first call is recorded.

    Args:
        network: the pipeline's UNet or transformer; LoRA layers must be on it already.

    Attributes:
        layers: names of the layers that are recorded.
        recorded: number of maps in the sum, one for each layer and step.
        step: number of the current step, from 0.
    """

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._steps: tuple[int, ...] | None = None
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        self._timestep: float | None = None
        self._repeated = False
        self._total: Tensor | None = None
        self.layers: tuple[str, ...] = ()
        self.recorded = 0
        self.step = -1

    def hang(self) -> None:
        """Register the hooks that record attention; subclasses implement it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._handles.append(self._network.register_forward_pre_hook(self._count, with_kwargs=True))
        try:
            self.hang()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *ended: object) -> None:
        self._remove()

    def _remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def keep(self, handle: torch.utils.hooks.RemovableHandle) -> None:
        """Store a hook's handle, to be removed at the end of the `with` block."""
        self._handles.append(handle)

    @property
    def wanted(self) -> bool:
        """True if the current call of the network is recorded."""
        return not self._repeated and (self._steps is None or self.step in self._steps)

    def add(self, seen: Tensor) -> None:
        """Add one layer's map of one step to the sum: float32, all of one shape. The first map is modified in place."""
        self._total = seen if self._total is None else self._total.add_(seen)
        self.recorded += 1

    def _count(self, _network: nn.Module, args: tuple[Any, ...], arguments: dict[str, Any]) -> None:
        timestep = arguments["timestep"] if "timestep" in arguments else args[1]
        now = float(timestep.flatten()[0]) if isinstance(timestep, Tensor) else float(timestep)
        self._repeated = now == self._timestep
        if not self._repeated:
            self.step += 1
            self._timestep = now

    def maps(self) -> Tensor:
        """Return the mean attention over heads, layers and steps: float32, in [0, 1].

        Of shape (n, tokens, height, width): the attention of each place of the output to each token. For
        cross-attention these are all tokens, which sum to 1 at each place.

        Raises:
            ValueError: nothing was recorded.
        """
        if self._total is None:
            raise ValueError("no attention was recorded: nothing ran")
        return self._total / self.recorded


def last_output(
    waiting: dict[str, Tensor], name: str
) -> Callable[[nn.Module, tuple[Any, ...], Tensor], None]:
    """Return a forward hook that stores a module's last output, detached, in `waiting[name]`."""

    def hook(_module: nn.Module, _inputs: tuple[Any, ...], states: Tensor) -> None:
        waiting[name] = states.detach()

    return hook
