"""What every chest renderer starts and ends with: the picture as a plane, its anatomy, and an honest hand-over.

A radiograph's grey levels are about linear in thickness times attenuation (the display curve is logarithmic in
exposure), so an opacity is added and ribs and vessels keep their contrast through it; only towards white the
curve's shoulder is imitated. Nothing outside the change's own support, nor a marker or device, is touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.chest.anatomy import Chest, find_chest
from plantain.offline.chest.outline import Lung
from plantain.offline.rendering import CannotShow, Rendering, Scene
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate, feather

THORAX_MM = 280.0
"""Inner width of an adult thorax, for sizes in mm where the pixel spacing is not known."""

EXTENTS = ("small", "moderate", "large")
CONSPICUITIES = ("subtle", "moderate", "marked")
SOFTNESSES = ("crisp", "medium", "soft")


@dataclass(frozen=True, slots=True, eq=False)
class Canvas:
    """A scene opened for drawing.

    Attributes:
        scene: what was asked for.
        chest: the anatomy found.
        gray: float32 (H, W), grey levels of the original.
        rng: the scene's generator, moved on once per `variant` so that another variant is another drawing.
    """

    scene: Scene
    chest: Chest
    gray: Field
    rng: np.random.Generator

    @property
    def pixels_per_mm(self) -> float:
        spacing = self.scene.image.spacing_mm
        return 1.0 / spacing if spacing else self.chest.thoracic_width / THORAX_MM

    @property
    def scale_words(self) -> str:
        return "" if self.scene.image.spacing_mm else " (scaled by the width of the thorax)"

    @property
    def supine(self) -> bool:
        return self.scene.image.position == "supine"

    @property
    def position_words(self) -> str:
        return "; position unknown, drawn as erect" if self.scene.image.position == "unknown" else ""

    def level(self, choices: tuple[str, ...], asked: str | None, weights: tuple[float, ...]) -> int:
        """Index into `choices` of what was asked for, or a draw."""
        if asked in choices:
            return choices.index(asked)
        return int(self.rng.choice(len(choices), p=np.array(weights)))

    def extent(self) -> int:
        return self.level(EXTENTS, self.scene.intent.extent, (0.2, 0.5, 0.3))

    def conspicuity(self) -> int:
        return self.level(CONSPICUITIES, self.scene.intent.conspicuity, (0.1, 0.55, 0.35))

    def softness(self) -> int:
        return self.level(SOFTNESSES, self.scene.intent.softness, (0.2, 0.6, 0.2))

    def side(self, allowed: tuple[str, ...] = ("left", "right")) -> str:
        """The side asked for, if the finding has it there, else a draw among left and right."""
        if self.scene.intent.side in allowed:
            return str(self.scene.intent.side)
        return str(self.rng.choice(["left", "right"]))

    def zone(self, allowed: tuple[str, ...]) -> str:
        if self.scene.intent.zone in allowed:
            return str(self.scene.intent.zone)
        return str(self.rng.choice(list(allowed)))

    def contrast(self, side: str) -> float:
        """Grey levels between the lung and soft tissue beside it: the size of a full opacity here."""
        return self.contrast_of(self.chest.lung(side))

    def contrast_of(self, of: Lung) -> float:
        """`contrast` of one lung."""
        lung = of.mask
        rows = slice(int(of.top), int(of.bottom))
        middle = np.zeros_like(lung)
        half = int(0.06 * self.chest.thoracic_width)
        middle[rows, int(self.chest.midline) - half : int(self.chest.midline) + half] = True
        middle &= ~self.chest.left.mask & ~self.chest.right.mask
        return max(25.0, float(np.median(self.gray[middle])) - float(np.median(self.gray[lung])))

    def finish(self, drawn: Field, support: Mask, kind: str, note: str) -> Rendering:
        """Hands over: only pixels of `support`, faded out within 6 px of it, and no marker or device.

        Args:
            drawn: float32 (H, W), grey levels.
            support: bool (H, W), what was meant to change; becomes the mask.
            kind: "local", "diffuse" or "warp".
            note: one line for a person.
        """
        allowed = feather(dilate(support, 3), 3.0)
        protected = self.chest.protected & dilate(support, 8)
        if protected.any():
            allowed *= 1.0 - feather(dilate(protected, 3), 2.0)
        allowed[~self.chest.field] = 0.0
        change = (drawn - self.gray) * allowed
        before = self.scene.pixels.astype(np.float32)
        pixels = np.clip(np.rint(before + change[..., None]), 0, 255).astype(np.uint8)
        if np.array_equal(pixels, self.scene.pixels):
            raise CannotShow("the change would be too faint to store")
        return Rendering(pixels, support & self.chest.field, kind, note)


def open_canvas(scene: Scene) -> Canvas:
    """Finds the anatomy.

    Raises:
        CannotShow: a lateral view, or no pair of lungs is found.
    """
    if scene.image.view == "lateral":
        raise CannotShow("a lateral view: the finding is drawn on frontal views only")
    plane = np.ascontiguousarray(scene.pixels[..., 0]).astype(np.float32)
    rng = scene.rng
    for _ in range(scene.intent.variant):
        rng = np.random.default_rng(rng.integers(2**62))
    return Canvas(scene, find_chest(scene.pixels), plane, rng)


def add_opacity(gray: Field, opacity: Field) -> Field:
    """Adds grey levels with the display's shoulder: less the nearer to white, nothing beyond."""
    room = np.clip((262.0 - gray) / 90.0, 0.0, 1.0)
    brighter: Field = gray + opacity * room
    return brighter


def blur(plane: Field, sigma: float) -> Field:
    """Gaussian blur; wide ones at reduced size, which changes nothing that can be seen."""
    if sigma > 12:
        factor = 4 if sigma < 40 else 8
        small = cv2.resize(plane, None, fx=1 / factor, fy=1 / factor, interpolation=cv2.INTER_AREA)
        small = cv2.GaussianBlur(small, (0, 0), sigma / factor)
        wide: Field = cv2.resize(small, plane.shape[::-1], interpolation=cv2.INTER_CUBIC)
        return wide
    narrow: Field = cv2.GaussianBlur(plane, (0, 0), sigma)
    return narrow


def blur_row(row: Field, sigma: float) -> Field:
    """Gaussian blur of one row (1, W), its ends carried on."""
    wide: Field = cv2.GaussianBlur(row, (0, 0), sigmaX=sigma, sigmaY=0.1, borderType=cv2.BORDER_REPLICATE)
    return wide


def masked_blur(plane: Field, known: Mask, sigma: float) -> Field:
    """Gaussian mean over the known pixels only, carried smoothly into the unknown."""
    weight = known.astype(np.float32)
    share: Field = np.maximum(blur(weight, sigma), np.float32(1e-4))
    mean: Field = blur(plane * weight, sigma) / share
    return mean


def cloud(shape: tuple[int, int], scale: float, rng: np.random.Generator) -> Field:
    """Smooth random unevenness of a given scale in pixels: mean 0, deviation 1."""
    rows, columns = (max(4, int(np.ceil(side / scale * 2)) + 3) for side in shape)
    coarse = rng.standard_normal((rows, columns)).astype(np.float32)
    coarse = cv2.GaussianBlur(coarse, (0, 0), 1.0)
    wide = cv2.resize(coarse, (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC)
    even: Field = (wide - wide.mean()) / max(float(wide.std()), 1e-6)
    return even


def lung_coordinates(canvas: Canvas, side: str) -> tuple[Field, Field]:
    """For every pixel its share of the way from chest wall (0) to mediastinum (1), and from apex (0) to base (1)."""
    lung = canvas.chest.lung(side)
    rows = np.arange(canvas.gray.shape[0], dtype=np.float64)
    wall, middle = lung.wall_at(rows), lung.medial_at(rows)
    span = middle - wall
    span = np.where(np.abs(span) < 5, 5.0 if side == "right" else -5.0, span)
    columns = np.arange(canvas.gray.shape[1], dtype=np.float64)[None]
    share = (columns - wall[:, None]) / span[:, None]
    down = np.repeat(((rows - lung.top) / (lung.bottom - lung.top))[:, None], share.shape[1], axis=1)
    return share.astype(np.float32), down.astype(np.float32)


def coordinates(shape: tuple[int, ...]) -> tuple[Field, Field]:
    """y and x of every pixel, float32, broadcastable."""
    return (
        np.arange(shape[0], dtype=np.float32)[:, None],
        np.arange(shape[1], dtype=np.float32)[None, :],
    )
