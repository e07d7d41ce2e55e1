"""Changes to frames that decide, by how they were made, what a probe must say of them.

Frames are uint8 (SIDE, SIDE), one channel, as `plantain.models.probe.frame.framed` cuts them.
"""

from __future__ import annotations

import cv2
import numpy as np

from plantain.models.probe.frame import SIDE, Frame, Inside, inside_of
from plantain.pixels.arrays import Field


def core(one: Frame, other: Frame, depth: float, soft: float) -> Field:
    """A soft mask of what lies inside both contents, in [0, 1].

    Args:
        one, other: two frames.
        depth: how far inside the outline it ends, as a share of the side.
        soft: sigma of its edge in pixels.
    """
    both = np.pad((inside_of(one) & inside_of(other)).astype(np.uint8), 1)
    deep = cv2.distanceTransform(both, cv2.DIST_L2, 3)[1:-1, 1:-1] > depth * SIDE
    return np.asarray(cv2.GaussianBlur(deep.astype(np.float32), (0, 0), soft), np.float32)


def disc(at: tuple[float, float], radius: float, soft: float) -> Field:
    """A soft disc about (x, y), all in pixels."""
    ys, xs = np.mgrid[:SIDE, :SIDE]
    away = np.hypot(xs - at[0], ys - at[1])
    return np.asarray(1.0 / (1.0 + np.exp((away - radius) / soft)), np.float32)


def blended(rim: Frame, inside: Frame, alpha: Field, *, matched: bool = True) -> Frame:
    """What `inside` shows where `alpha` is 1, `rim` elsewhere; if `matched`, in the tones that the rim had there."""
    donor = inside.astype(np.float32)
    where = alpha > 0.5
    if matched and where.any():
        to, of = rim[where].astype(np.float32), donor[where]
        (a, b, c), (d, e, f) = np.percentile(of, (15, 50, 85)), np.percentile(to, (15, 50, 85))
        donor = (donor - b) * float(np.clip((f - d) / max(c - a, 4.0), 0.4, 2.5)) + e
    mixed = rim + alpha * (donor - rim)
    return np.asarray(np.clip(np.rint(mixed), 0, 255), np.uint8)


def mirrored(frame: Frame, side: int) -> Frame:
    """One half of the frame shown twice: the left one (side 0), or the right one (side 1), mirrored onto the other."""
    out = frame.copy()
    half = SIDE // 2
    if side == 0:
        out[:, SIDE - half :] = frame[:, :half][:, ::-1]
    else:
        out[:, :half] = frame[:, SIDE - half :][:, ::-1]
    return out


def soft_mass(frame: Frame, rng: np.random.Generator) -> Frame:
    """A plain mass: a soft ellipse inside the content, brighter or darker than it, flat or faintly grained."""
    x, y = _place(frame, rng)
    wide, high = rng.uniform(0.04, 0.17, 2) * SIDE
    turn = rng.uniform(0, np.pi)
    ys, xs = np.mgrid[:SIDE, :SIDE]
    u, v = (
        (xs - x) * np.cos(turn) + (ys - y) * np.sin(turn),
        (ys - y) * np.cos(turn) - (xs - x) * np.sin(turn),
    )
    away = np.hypot(u / wide, v / high)
    edge = rng.uniform(0.04, 0.5)
    alpha = 1.0 / (1.0 + np.exp(np.clip((away - 1) / edge, -30, 30)))
    return _lifted(frame, alpha.astype(np.float32), rng)


def rough_mass(frame: Frame, rng: np.random.Generator) -> Frame:
    """A mass of uneven outline: where smooth noise under a hill is high. Nothing that learns is shown this kind."""
    x, y = _place(frame, rng)
    radius = rng.uniform(0.06, 0.15) * SIDE
    noise = cv2.GaussianBlur(rng.normal(0, 1, (SIDE, SIDE)).astype(np.float32), (0, 0), radius / 3)
    noise /= max(float(noise.std()), 1e-6)
    ys, xs = np.mgrid[:SIDE, :SIDE]
    hill = 1.6 * (1.0 - np.hypot(xs - x, ys - y) / radius) + 0.45 * noise
    alpha = cv2.GaussianBlur((hill > 0).astype(np.float32), (0, 0), rng.uniform(0.6, 1.6))
    return _lifted(frame, np.asarray(alpha, np.float32), rng, sign=1.0)


def covered(frame: Frame, other: Frame, at: tuple[float, float], radius: float) -> Frame:
    """A disc of the frame replaced by what another frame shows there, its tones matched."""
    return blended(frame, other, disc(at, radius, 2.0))


def recoded(frame: Frame, quality: int) -> Frame:
    """Through JPEG at a quality and back."""
    _, data = cv2.imencode(".jpg", frame, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE), np.uint8)


def blurred(frame: Frame, sigma: float) -> Frame:
    """Smoothed by a Gaussian of sigma in pixels."""
    return np.asarray(cv2.GaussianBlur(frame, (0, 0), sigma), np.uint8)


def with_tones_of(frame: Frame, other: Frame) -> Frame:
    """The frame with the histogram of another one's content."""
    inside, there = inside_of(frame), inside_of(other)
    if not inside.any() or not there.any():
        return frame
    counts = np.bincount(frame[inside], minlength=256)
    share = (np.cumsum(counts) - counts / 2) / counts.sum()
    table = np.quantile(other[there], share)
    return np.where(inside, np.rint(table[frame]).astype(np.uint8), frame)


def with_border_of(frame: Frame, other: Frame) -> Frame:
    """The frame's content, and beyond it what surrounds the other one's."""
    return np.where(inside_of(frame), frame, np.where(inside_of(other), 0, other)).astype(np.uint8)


def curved(frame: Frame, rng: np.random.Generator) -> Frame:
    """Another tone curve: gamma, gain, offset, at times a bend in the middle."""
    at = np.arange(256) / 255.0
    curve = at ** float(np.exp(rng.normal(0, 0.35)))
    curve += rng.normal(0, 0.06) * np.sin(2 * np.pi * at)
    curve = rng.uniform(0.6, 1.1) * np.maximum.accumulate(np.clip(curve, 0, 1))
    return np.asarray(np.clip(curve * 255, 0, 255).astype(np.uint8)[frame])


def handled(frame: Frame, rng: np.random.Generator) -> Frame:
    """Codec, sharpness, grain and tone as if it had come from anywhere."""
    out = curved(frame, rng)
    what = rng.random(4)
    if what[0] < 0.35:
        out = blurred(out, float(rng.uniform(0.4, 1.2)))
    if what[1] < 0.3:
        out = np.clip(out + rng.normal(0, rng.uniform(1, 6), out.shape), 0, 255).astype(np.uint8)
    if what[2] < 0.25:
        side = int(rng.integers(56, 100))
        out = cv2.resize(cv2.resize(out, (side, side), interpolation=cv2.INTER_AREA), (SIDE, SIDE))
    if what[3] < 0.5:
        out = recoded(np.ascontiguousarray(out), int(rng.integers(25, 95)))
    return np.asarray(out, np.uint8)


def moved(frame: Frame, rng: np.random.Generator) -> Frame:
    """Turned, scaled, shifted and at times mirrored, by little."""
    turn, scale = rng.uniform(-12, 12), rng.uniform(0.9, 1.1, 2)
    matrix = cv2.getRotationMatrix2D((SIDE / 2, SIDE / 2), turn, 1.0)
    matrix[:, :2] *= scale
    matrix[:, 2] += rng.uniform(-6, 6, 2) + (1 - scale) * SIDE / 2
    out = cv2.warpAffine(frame, matrix, (SIDE, SIDE), flags=cv2.INTER_LINEAR)
    return np.asarray(out[:, ::-1] if rng.random() < 0.5 else out, np.uint8)


def _place(frame: Frame, rng: np.random.Generator) -> tuple[float, float]:
    deep = cv2.distanceTransform(np.pad(inside_of(frame).astype(np.uint8), 1), cv2.DIST_L2, 3)[1:-1, 1:-1]
    ys, xs = np.nonzero(deep > min(0.16 * SIDE, 0.8 * float(deep.max())))
    if not len(xs):
        return SIDE / 2, SIDE / 2
    chosen = int(rng.integers(len(xs)))
    return float(xs[chosen]), float(ys[chosen])


def _lifted(frame: Frame, alpha: Field, rng: np.random.Generator, sign: float | None = None) -> Frame:
    inside: Inside = inside_of(frame)
    spread = float(np.ptp(np.percentile(frame[inside], (10, 90)))) if inside.any() else 40.0
    up = sign or (1.0 if rng.random() < 0.7 else -1.0)
    level = up * rng.uniform(0.4, 1.4) * max(spread, 30.0)
    here = alpha > 0.5
    plain = float(np.median(frame[here])) if here.any() else 0.0
    flat = rng.uniform(0, 1)  # 0 keeps what lies below, 1 covers it
    grain = rng.normal(0, rng.uniform(0, 4), frame.shape)
    below = (1 - flat) * frame.astype(np.float32) + flat * plain
    out = frame + alpha * inside * (below + level + grain - frame)
    return np.asarray(np.clip(np.rint(out), 0, 255), np.uint8)
