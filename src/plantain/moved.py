"""Where modules of the first edition that other packages import have gone: they still import, and warn once."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "plantain.build": "plantain.pipeline",
    "plantain.models.batch.rules": "plantain.roles.batch_rules",
    "plantain.models.offline": "plantain.offline",
    "plantain.models.options": "plantain.roles.options",
    "plantain.sources.catalogue": "plantain.catalogue.store",
    **{
        f"plantain.metrics.{name}": f"plantain.metrics.statistics.{name}"
        for name in ("agreement", "clusters", "intervals", "paired", "ranks", "resampling")
    },
}
"""Old name -> today's, of a module or a folder: what the manual named, and what a package of one's own needs."""


def today(name: str) -> str:
    """Today's name of a module; "" for one that has not moved."""
    for old, new in MOVED.items():
        if name == old or name.startswith(f"{old}."):
            return new + name.removeprefix(old)
    return ""


class MovedModules(MetaPathFinder, Loader):
    """Finds the modules of the table under their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if today(fullname) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        warnings.warn(f"{spec.name} is now {today(spec.name)}", DeprecationWarning, stacklevel=2)
        module = importlib.import_module(today(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run again; the import system has just told the module that it was another."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def remember_old_names() -> None:
    """Puts the table before the other ways of finding a module, which would find one twice in a folder that moved."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())
