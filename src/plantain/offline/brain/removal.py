"""Removal of a tumour inside the brain or on its dura: find it, then put healthy tissue in its place."""

from __future__ import annotations

import numpy as np

from plantain.offline.brain.anatomy import analyse
from plantain.offline.brain.fields import finish
from plantain.offline.brain.locate import find_tumour
from plantain.offline.brain.protocol import read_protocol
from plantain.offline.brain.restore import healthy_from_mirror, healthy_from_slice
from plantain.offline.brain.symmetry import find_midline
from plantain.offline.rendering import CannotShow, Rendering, Scene


def remove_glioma(scene: Scene) -> Rendering:
    """Finds a glioma and restores healthy tissue.

    Raises:
        CannotShow: not a brain slice, or no glioma found.
    """
    return _remove(scene, "glioma", extra_axial=False)


def remove_meningioma(scene: Scene) -> Rendering:
    """Finds a meningioma and restores healthy tissue.

    Raises:
        CannotShow: not a brain slice, or no meningioma found.
    """
    return _remove(scene, "meningioma", extra_axial=True)


def _remove(scene: Scene, name: str, *, extra_axial: bool) -> Rendering:
    brain = analyse(scene.pixels)
    protocol = read_protocol(scene.image, brain)
    midline = None if protocol.plane == "sagittal" else find_midline(brain)
    suspect = find_tumour(brain, protocol, midline, scene.intent, extra_axial=extra_axial)
    if suspect is None:
        raise CannotShow(f"no {name} found")
    if midline is not None:
        window, healthy = healthy_from_mirror(brain, midline, suspect.mask)
        source = "the other hemisphere"
    else:
        window, healthy = healthy_from_slice(brain, suspect.mask)
        source = "a like part of the slice"
    across = 2 * np.sqrt(float(suspect.mask.sum()) / np.pi) * protocol.mm
    note = (
        f"{name} removed, region about {across:.0f} mm wide, restored after {source}: "
        f"a plausible normal, not this patient's anatomy{protocol.remark}"
    )
    return finish(scene.pixels, window, healthy, window.cut_mask(suspect.mask), note)
