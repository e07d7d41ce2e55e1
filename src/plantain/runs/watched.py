"""An open editor whose attention is recorded, opened for a benchmark's arm."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import TYPE_CHECKING

from plantain.files.installing import install_line
from plantain.records import InputError
from plantain.runs.opening import edition_begun
from plantain.runs.settings.terms import Terms

if TYPE_CHECKING:
    from plantain.models.diffusers.attention.attender import Attender
    from plantain.models.diffusers.attention.watching import Watching


def watched_editor(terms: Terms, model: str, fingerprint: str, watching: Watching) -> Attender:
    """The editor of that name, watched; to be closed by the caller. It runs here, and makes no call.

    Raises:
        InputError: torch is missing, or weights or settings are not those of `fingerprint`.
    """
    if importlib.util.find_spec("torch") is None:
        raise InputError(f"bench attend needs torch: {install_line('torch')}")
    from plantain.models.diffusers.quiet import quiet_libraries

    quiet_libraries()
    from plantain.models.diffusers.attention.attender import Attender
    from plantain.models.diffusers.devices import device_names
    from plantain.models.diffusers.editor import fingerprint_of
    from plantain.models.diffusers.plan import plan_editor

    edition = edition_begun(fingerprint, None)
    plan = plan_editor(model, replace(terms.provider(model).options(), edition=edition))
    if fingerprint_of(plan) != fingerprint:
        raise InputError(
            f"{model}: was generated with other weights or settings than these; give the same --settings"
        )
    return Attender(plan, device_names(plan.options.device)[0], watching)
